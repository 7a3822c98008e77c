"""The typed client of the lab protocol is what the core tells of its requests."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

import pytest
from twinnet import _core
from twinnet.lab_process.requests import LabRequests

ROOT = Path(__file__).parents[2]
REQUESTS = json.loads(_core.lab_protocol()[1])


def test_the_client_is_written_from_the_core() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import lab_client
    finally:
        sys.path.pop(0)
    for file, text in lab_client.modules().items():
        assert file.read_text() == text, "write it anew: python tools/lab_client.py"


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one["do"])
def test_a_request_is_a_method_with_its_fields(request_: dict[str, list[dict[str, str]]]) -> None:
    method = getattr(LabRequests, str(request_["do"]).replace(".", "_"))
    given = inspect.signature(method).parameters.keys() - {"self", "descriptors"}
    assert given == {field["name"] for field in request_["fields"]}


def test_every_answer_has_a_form() -> None:
    answers = json.loads(_core.lab_protocol()[2])["answers"]
    assert {one["answer"] for one in REQUESTS} <= answers.keys()


def test_no_other_file_names_a_request_as_text() -> None:
    names = "|".join(re.escape(one["do"]) for one in REQUESTS)
    asking = re.compile(rf'\.(?:answer|submit)\(\s*"(?:{names})"')
    package = ROOT / "python/twinnet"
    found = [
        str(path.relative_to(package)) for path in sorted(package.rglob("*.py")) if asking.search(path.read_text())
    ]
    assert found == ["lab_process/requests.py"]
