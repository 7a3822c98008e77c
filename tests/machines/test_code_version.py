"""Two ends of a connection compare the code that they run, not a number that stays between releases."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import twinnet
from twinnet.code_version import code_version

PACKAGE = Path(twinnet.__file__).parent


def test_it_names_the_version_and_the_code() -> None:
    assert re.fullmatch(re.escape(twinnet.__version__) + r" \(code [0-9a-f]{12}\)", code_version())


def test_it_is_the_same_in_another_folder_and_another_where_a_line_differs(tmp_path: Path) -> None:
    copy = tmp_path / "twinnet"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))

    def told() -> str:
        asked = "from twinnet.code_version import code_version; print(code_version())"
        return subprocess.run(
            [sys.executable, "-c", asked], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert told() == code_version()
    with (copy / "machines" / "wire.py").open("a") as changed:
        changed.write("\nMORE = 1\n")
    assert told() != code_version()
