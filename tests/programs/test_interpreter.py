"""Our own processes take no module from the folder that a user happens to stand in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from twinnet.interpreter import PYTHON


@pytest.mark.parametrize("module", ["twinnet.programs.python_http_server", "twinnet.lab.lab"])
def test_a_users_file_does_not_stand_in_for_the_standard_library(module: str, tmp_path: Path) -> None:
    for name in ("http.py", "socket.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('the file of the user was imported')\n")
    done = subprocess.run(
        [*PYTHON, "-c", f"import {module}"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
