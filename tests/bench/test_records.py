"""What is measured is kept whole, and the page of performance says what the record says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as command
from bench import abw, load, performance_page, record
from bench.figure import Figure
from bench.performance_page import filled, goals, missed, slower, table
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


def test_a_run_that_gives_what_another_gave_is_no_repetition_where_nothing_but_the_seed_moves_it() -> None:
    repeated = Figure("error", "%", [1.5] * 5, {"tool": [3.0]}, deterministic=True)
    assert table([repeated]).splitlines()[2].endswith("| 1 |")
    other_seeds = Figure("error", "%", [1.5, 1.5, 0.5], deterministic=True)
    assert table([other_seeds]).splitlines()[2].endswith("| 2 |")
    # On the wall clock equal values are measured twice all the same.
    assert table([Figure("time", "s", [1.5] * 5)]).splitlines()[2].endswith("| 5 |")


def test_a_goal_of_several_rows_counts_once_and_its_worst_row_is_named() -> None:
    def row(name: str, value: float, goal: str = "within 2") -> Figure:
        return Figure(name, "s", [value], target="within 2", met=value <= 2, goal=goal, strain=value / 2)

    told = goals({"throughput": part([row("a", 1.0), row("b", 3.0), row("c", 2.5), row("alone", 0.5, "")])})
    assert "| `throughput` | 1 of 2 | 2 of 4 | b, s: 3.00; within 2 (**no**) |" in told
    assert "| `idle` | not measured | | |" in told
    # No line has the sum over parts.
    assert sum(" of " in line for line in told.splitlines()) == 1
    assert "| `load` | none judged | | |" in goals({"load": part([Figure("stated", "s", [1.0])])})


def test_a_slower_machine_stands_beside_the_record_with_its_peers() -> None:
    here = [Figure("speed", "Gbit/s", [5.0, 6.0], {"peer": [2.0]}), Figure("gone", "us", [1.0])]
    there = [Figure("speed", "Gbit/s", [3.0], {"peer": [1.0], "absent": []}), Figure("new", "us", [1.0])]
    rows = slower({"load": part(here)}, {"load": part(there), "idle": part(there)}).splitlines()[2:]
    assert rows[0] == "| `load` | speed, Gbit/s | 5.50 (5.00 to 6.00) | peer 2.00 | 3.00 | peer 1.00 | 2, 1 |"
    assert rows[1] == ""


def test_the_rows_on_record_meet_their_goals_by_what_they_take_of_them() -> None:
    rows = [figure for one in record.read(performance_page.RECORD).values() for figure in one.figures]
    judged = [figure for figure in rows if figure.met is not None]
    assert judged
    assert [figure.name for figure in judged if figure.strain is None or figure.met != (figure.strain <= 1)] == []


def test_rows_of_the_virtual_clock_on_record_are_marked_as_deterministic() -> None:
    rows = record.read(performance_page.RECORD)["abw"].figures
    assert {figure.deterministic for figure in rows if "size of the error" in figure.name} == {True}


def test_an_estimate_that_was_not_given_misses_the_goal_and_is_no_error() -> None:
    row, given = abw._Row(10, 4), abw._Run(-0.02, 1_000_000, 2.0)
    silent = abw._Run(None, 3_000_000, 4.0)
    found = abw._figure("igi", "ours", row, [given, silent], 30.0)
    assert (list(found.ours), found.met, found.strain) == ([2.0], False, 1.5)
    assert found.marks["ours"] == "no estimate in 1 of 2 runs" and found.note.endswith("errors -2.0 %; 2.00 MB, 3.0 s")
    good = abw._figure("igi", "ours", row, [given, given], None)
    assert (good.met, good.strain, dict(good.marks)) == (True, 0.2, {})
    assert table([abw._figure("igi", "published", row, [silent], None)]).splitlines()[2].split(" | ")[1] == "-"
    # None of the methods is without a goal.
    assert set(abw._TARGETS) == set(abw.METHODS)


def test_the_rate_of_many_links_is_judged_by_the_worst_link_of_the_worst_run() -> None:
    runs = [load.Outcome((0.01, -0.4, 0.02), "valid"), load.Outcome((0.1, 0.2, 0.0), "doubtful")]
    found = load._rate("3 links", {"twinnet": runs}, 0.3)
    assert (found.value, found.met) == (-0.4, False)
    # The mean over the links of either run is within it.
    valid = load._valid("3 links", runs)
    assert (list(valid.ours), valid.target, valid.met) == ([1.0, 0.0], "all", False)


def test_what_misses_has_every_goal_that_is_not_met_and_everything_not_measured() -> None:
    told = missed({"throughput": part(FIGURES, "no peer came up")})
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
    with pytest.raises(ValueError, match="no place for goals, conditions, missed"):
        filled("# A page\n", {})


def test_a_part_that_is_measured_in_pieces_tells_what_is_missing_and_takes_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    record.write(path, {"idle": part([Figure("of a whole", "%", [9.0])])})
    fake = ModuleType("bench.idle")

    def measured(quick: bool, quiet: object, rows: tuple[str, ...] = ("a", "b", "c")) -> Iterator[Figure]:
        yield from (Figure(row, "s", [1.0, 2.0, 3.0]) for row in ("a", "b", "c") if row in rows)

    vars(fake).update(TITLE="Idle", ROWS=("a", "b", "c"), measure=measured)
    monkeypatch.setitem(sys.modules, "bench.idle", fake)
    monkeypatch.setattr(record, "commit", lambda: "0123abcd")

    def run(*rows: str) -> tuple[list[str], str]:
        monkeypatch.setattr("sys.argv", ["bench", "idle", "--record", str(path), *(["--rows", *rows] if rows else [])])
        assert command.main() == 0
        told = record.read(path)["idle"]
        return [figure.name for figure in told.figures], told.failure

    # What was measured at another commit is no piece of it.
    assert run("b") == (["b"], "not measured yet: a, c")
    assert run("c", "a") == (["b", "a", "c"], "")
    told = record.read(path)["idle"]
    assert (list(told.rows), told.commit) == (["b", "c", "a"], "0123abcd")
    for row, wrong in (
        ("a", "the record has a of idle at this commit; without --rows it is measured anew"),
        ("d", "idle has no row 'd'; allowed are: a; b; c"),
        ("a", "idle is measured as a whole"),
    ):
        vars(fake)["ROWS"] = () if "whole" in wrong else ("a", "b", "c")
        with pytest.raises(SystemExit):
            run(row)
        assert wrong in capsys.readouterr().err
    assert run() == (["a", "b", "c"], "")


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
