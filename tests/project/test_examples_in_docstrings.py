"""The examples in docstrings of the package are run, and show what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "python"
WITH_EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 40


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_show_what_they_say(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0, "an example stands where doctest does not look"
    assert found.failed == 0
