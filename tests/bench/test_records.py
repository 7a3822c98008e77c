"""What is measured is kept whole, and the page of performance says what the record says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as command
from bench import performance_page, record
from bench.figure import Figure
from bench.performance_page import filled, missed, table
from bench.record import PartRecord

FIGURES = [
    Figure("speed", "Gbit/s", [12.0, 11.0, 14.0], {"peer": [6.0, 5.0, 7.0]}, "at least 10", True, "two processors"),
    Figure("delay", "us", [7.0], target="at most 5", met=False),
    Figure("gaps", "us", [5.0], {"peer": [2.0]}, marks={"ours": "gaps not kept"}),
    Figure("asked of a peer that is away", "", [3.0], target="half of the peer's", met=None),
]


def part(figures: list[Figure], failure: str = "") -> PartRecord:
    machine = {"date": "today", "cpu": "2 x one", "kernel": "6.18"}
    return PartRecord("Title", "abc", "2026-11-22 15:00", 3.5, False, machine, [1.0, 30.0], 0.2, failure, figures)


def test_a_record_is_read_as_it_was_written_with_every_repetition(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    record.write(path, {"throughput": part(FIGURES)})
    assert record.read(path) == {"throughput": part(FIGURES)}
    assert json.loads(path.read_text())["parts"]["throughput"]["figures"][0]["ours"]["samples"] == [12.0, 11.0, 14.0]
    assert record.read(tmp_path / "absent.json") == {}


def test_a_record_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"format": 99, "parts": {}}))
    with pytest.raises(ValueError, match="format 99; this version reads 1"):
        record.read(path)


def test_a_table_shows_median_range_ratio_goal_and_how_often() -> None:
    lines = table(FIGURES).splitlines()
    assert lines[2] == (
        "| speed, Gbit/s | 12.0 (11.0 to 14.0) | peer: 6.00 (5.00 to 7.00) [2.00] | at least 10 | yes | 3 |"
    )
    assert lines[3] == "| delay, us | 7.00 |  | at most 5 | **no** | 1 |"
    assert "| 5.00; gaps not kept | peer: 2.00 [2.50] |" in lines[4]
    assert lines[-1] == "- speed: two processors."


def test_many_peers_have_a_column_each() -> None:
    peers = {f"p{number}": [float(number)] for number in range(1, 6)}
    lines = table([Figure("rate", "%", [1.0], peers, "within 2", True), Figure("sum", "", [2.0])]).splitlines()
    assert lines[0] == "| figure | ours | p1 | p2 | p3 | p4 | p5 | goal | met | n |"
    assert lines[2] == "| rate, % | 1.00 | 1.00 | 2.00 | 3.00 | 4.00 | 5.00 | within 2 | yes | 1 |"
    assert lines[-1].startswith("| sum | 2.00 |")


def test_what_misses_has_every_goal_that_is_not_met_and_everything_not_measured() -> None:
    told = missed({"throughput": part(FIGURES, "no peer came up")})
    assert told.startswith("1 of 2 goals are met.")
    assert "| `throughput` | delay, us | 7.00 |  | at most 5 | missed |" in told
    assert "asked of a peer that is away | 3.00 |  | half of the peer's | not judged |" in told
    assert "not measured: no peer came up" in told
    assert "| `idle` |" in told
    assert "speed" not in told


def test_the_page_has_what_the_record_gives() -> None:
    page = performance_page.PAGE.read_text(encoding="utf-8")
    # Make it anew: python -m bench.performance_page
    assert filled(page, record.read(performance_page.RECORD)) == page


def test_a_page_without_a_place_for_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for conditions, missed"):
        filled("# A page\n", {})


def test_a_part_is_recorded_with_its_commit_and_machine_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record.json"
    record.write(path, {"throughput": part(FIGURES)})
    fake = ModuleType("bench.idle")
    vars(fake).update(TITLE="Idle", measure=lambda quick, quiet: iter([Figure("nothing", "%", [0.5, 0.25])]))
    monkeypatch.setitem(sys.modules, "bench.idle", fake)
    monkeypatch.setattr("sys.argv", ["bench", "idle", "--quick", "--record", str(path)])
    assert command.main() == 0
    parts = record.read(path)
    assert parts["throughput"] == part(FIGURES)
    assert parts["idle"].figures[0].ours == [0.5, 0.25]
    assert parts["idle"].quick
    assert parts["idle"].machine["kernel"]
    assert parts["idle"].commit
