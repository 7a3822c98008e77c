"""The eight scripts of the course run and find what they expect, and their page is about all of them."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest
from labs_here import needs_a_lab
from mininet_scripts import twinnet

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "course").glob("*.py"))
PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
NEEDED = {"week6_vlans": (), "week4_routing": (), "week5_spanning_tree": (), "week8_wireshark": ("tshark", "wget")}
"""The programs that a week needs; `iperf` where none is named."""
JUDGES_NO_TIME = ("week5_spanning_tree", "week6_vlans")


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in JUDGES_NO_TIME else [pytest.mark.judged]


@needs_a_lab
@pytest.mark.parametrize("script", [pytest.param(one, marks=_marks(one.stem), id=one.stem) for one in SCRIPTS])
def test_a_week_finds_what_it_expects(script: Path, tmp_path: Path) -> None:
    for program in NEEDED.get(script.stem, ("iperf",)):
        if shutil.which(program) is None:
            pytest.skip(f"{program} not installed")
    done = twinnet("mininet", str(script), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as expected:") >= 3, done.stdout


def test_the_page_has_a_section_for_each_week_and_leads_to_its_script() -> None:
    assert [script.stem[:5] for script in SCRIPTS] == [f"week{number}" for number in range(1, 9)]
    for number, script in enumerate(SCRIPTS, start=1):
        section = PAGE.split(f"## Week {number}:", 1)[1].split("\n## ", 1)[0]
        assert f"<../examples/course/{script.name}>" in section
        for part in ("Students see", "Ask them:"):
            assert part in section, f"week {number} has no {part!r}"
        question = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").splitlines()[0]
        assert question.split(": ", 1)[1] in section, question


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.stem)
def test_a_week_imports_nothing_but_mininet_and_python(script: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= {"mininet", *sys.stdlib_module_names}
