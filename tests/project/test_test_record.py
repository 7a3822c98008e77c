"""The record of the tests that do not decide in the gate, and its table in CONTRIBUTING.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import test_record as record_of_tests
from tools.test_record import Run, read, table, with_table

ROOT = Path(__file__).parents[2]


def test_a_run_is_added_with_its_counts_and_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_of_tests, "RECORD", tmp_path / "tests.jsonl")
    monkeypatch.setattr(record_of_tests, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(record_of_tests, "_git", lambda *words: "0abc1234" if words[0] == "rev-parse" else "")
    (tmp_path / "page.md").write_text("before\n<!-- tests -->\nold\n<!-- end of tests -->\nafter\n")
    result = {
        "passed": 7,
        "failed": {"tests/a.py::test_b": "def test_b\nE  late"},
        "repeated": {"tests/a.py::test_c": ["late", "later"]},
        "skipped": {"tests/a.py::test_d": "this machine is not quiet enough: 0.3 processors are free, 1.5 are needed"},
        "wrongly_skipped": {},
    }
    (tmp_path / "wall.json").write_text(json.dumps(result))
    record_of_tests.main([f"wall={tmp_path / 'wall.json'}"])
    (run,) = read()
    assert (run.commit, run.door, run.passed) == ("0abc1234", "wall", 7)
    assert run.failed == {"tests/a.py::test_b": "E  late"}
    assert (run.repeated, run.skipped) == (result["repeated"], result["skipped"])
    assert run.speed > 0
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page
    assert f"| {run.moment} | 0abc1234 | wall | {run.speed:.1f} | 7 | 1 | 1 | 1 |" in page


def test_the_newest_runs_stand_first() -> None:
    runs = [Run(f"2026-11-{day:02}", "c", "wall", 1.0, day, {}, {}, {}) for day in range(1, 20)]
    rows = table(runs).splitlines()[2:]
    assert [int(row.split("|")[5]) for row in rows] == list(range(19, 9, -1))


def test_the_page_has_what_is_on_record() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert with_table(page, read()) == page
