"""The tests of scripts pass on the virtual clock as on the wall clock, but for what is not there by its nature."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kernels_here import needs_a_kernel
from mininet_scripts import CLOCK

FOLDER = Path(__file__).parent
FILES = ("test_scripts.py", "test_published_scripts.py", "test_parts.py", "test_open_vswitch_tools.py")
NOT_THERE = {
    "test_scripts.py::test_a_controller_beside_the_machine_is_reached_too": "its time is another",
}
"""Tests of what the virtual clock does not have, each with the reason."""


@needs_a_kernel
def test_what_passes_on_the_wall_clock_passes_on_the_virtual_clock() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rf"]
    marks = ["-m", "not wall and not long and not alone"]
    done = subprocess.run(
        [*command, *marks, *(str(FOLDER / file) for file in FILES)],
        cwd=FOLDER.parents[1],
        env={**os.environ, CLOCK: "virtual"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    failed = set(re.findall(r"^FAILED tests/mininet/(\S+)", done.stdout, re.MULTILINE))
    assert failed == set(NOT_THERE), done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 40, done.stdout[-2000:]
