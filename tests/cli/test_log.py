"""``twinnet --log`` and ``TWINNET_LOG``: what twinnet tells of itself on standard error."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from labs_here import needs_a_lab
from twinnet.cli.group import LOG_LEVELS, LOG_VARIABLE

TWINNET = "from twinnet.cli import main; main()"
ASKED_OF_A_MODEL = "import twinnet as tn\nwith tn.templates.single(2).simulate() as lab: lab.fidelity()"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def told(code: str, *arguments: str, status: int = 0, **variables: str) -> list[str]:
    """The lines on standard error of Python that runs `code` with `arguments`."""
    environment = {name: value for name, value in os.environ.items() if name != LOG_VARIABLE} | variables
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == status, done.stderr
    return done.stderr.splitlines()


@needs_a_lab
def test_a_lab_tells_what_it_goes_through_when_it_is_asked_to() -> None:
    lines = told(TWINNET, "--log", "info", "lab", "single:2", "-c", "nodes")
    runs = [line for line in lines if " info: the network runs " in line]
    assert len(runs) == 1 and re.match(rf"twinnet: {TIME} info: the network runs hosts=2 ", runs[0])
    assert not [line for line in lines if " debug: " in line]


@needs_a_lab
def test_a_lab_tells_nothing_unless_it_is_asked_to() -> None:
    assert told(TWINNET, "lab", "single:2", "-c", "nodes") == []


@needs_a_lab
def test_the_option_goes_before_the_variable() -> None:
    assert told(TWINNET, "--log", "off", "lab", "single:2", "-c", "nodes", TWINNET_LOG="debug") == []


def test_a_program_in_python_sets_the_variable() -> None:
    lines = told(ASKED_OF_A_MODEL, TWINNET_LOG="debug")
    assert [line for line in lines if line.endswith(' debug: asked request="fidelity"')]
    assert told(ASKED_OF_A_MODEL, TWINNET_LOG="info") == []
    assert told(ASKED_OF_A_MODEL, TWINNET_LOG="") == []


@pytest.mark.parametrize("given", [{"arguments": ("--log", "loud")}, {"TWINNET_LOG": "loud"}])
def test_a_wrong_level_on_the_command_line_is_wrong_usage(given: dict[str, str | tuple[str, ...]]) -> None:
    arguments = given.pop("arguments", ())
    lines = told(TWINNET, *arguments, "labs", status=2, **{name: str(value) for name, value in given.items()})
    assert len(lines) == 1
    assert all(level in lines[0] for level in ("loud", *LOG_LEVELS))


def test_the_compiled_part_knows_the_same_levels_and_refuses_others() -> None:
    line = told("import twinnet._core", status=1, TWINNET_LOG="loud")[-1]
    assert line == f'ValueError: TWINNET_LOG is "loud"; it can be one of {", ".join(LOG_LEVELS)}'
