"""``python -m bench.record_pages``: write the numbers on other pages that a record has.

On each of `PAGES`, everything between ``<!-- record: NAME -->`` and ``<!-- end -->`` is written from the records of the
benchmarks; the rest is prose. ``--check`` writes nothing, and tells by the status whether the pages have what the
records give. docs/explanation/performance.md and tcp-beside-linux.md are made as a whole: `bench.performance_page`,
`bench.tcp_grid_table`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from bench.figure import Figure, shown
from bench.performance_page import RECORD
from bench.record import PartRecord, read
from bench.tcp_grid import Cell
from bench.tcp_grid_table import RECORD as GRID
from bench.tcp_grid_table import TOLERANCE, compare
from bench.verdict_page import newest

__all__ = ["PAGES", "filled", "words"]

OWN_CODE = RECORD.with_name("own-code.json")
_ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "records" / "programs.json"
"""What was measured of programs on the virtual clock."""
LIVE_PAGE = PROGRAMS.with_name("live-page.json")
PAGES = (
    _ROOT / "README.md",
    _ROOT / "docs" / "how-to" / "run-programs-in-virtual-time.md",
    _ROOT / "docs" / "explanation" / "fidelity.md",
    _ROOT / "docs" / "explanation" / "model-tcp.md",
    _ROOT / "docs" / "how-to" / "bring-your-own.md",
    _ROOT / "docs" / "how-to" / "watch-a-lab.md",
)
_BLOCK = re.compile(r"(<!-- record: (?P<name>[a-z_]+) -->).*?(<!-- end -->)", re.DOTALL)


def words() -> dict[str, str]:
    """Return what the records say, by the name of its place."""
    told: dict[str, Callable[[], str]] = {
        "bursts": lambda: _bursts(read(RECORD)),
        "live_page": lambda: _of_part("live_page", LIVE_PAGE),
        "own_code": lambda: _own_code(read(OWN_CODE)["own_code"]),
        "phase_effects": _phase_effects,
        "programs": lambda: _of_part("virtual_programs", PROGRAMS),
        "repeated_programs": lambda: _of_part("repeated_programs", PROGRAMS),
        "tcp_cells": _tcp_cells,
        "verdict": newest,
    }
    return {name: say() for name, say in told.items()}


def filled(page: str, told: Mapping[str, str]) -> str:
    """Return `page` with what is `told` in its places; raises `ValueError` for a place that nothing fills."""

    def fill(match: re.Match[str]) -> str:
        name = match.group("name")
        if name not in told:
            raise ValueError(f"the page has a place for {name!r}; there are {', '.join(told)}")
        return f"{match.group(1)}{told[name]}{match.group(3)}"

    return _BLOCK.sub(fill, page)


def _figure(part: PartRecord, name: str) -> Figure:
    (found,) = (figure for figure in part.figures if figure.name == name)
    return found


def _bursts(parts: Mapping[str, PartRecord]) -> str:
    """What a receiving host sees of the promise of a line: the worst of both kinds of source."""
    part = parts["line_rate"]
    seen: list[str] = []
    count = 0
    for rate, text in ((100, "100 Mbit/s"), (1000, "1 Gbit/s")):
        figure = _figure(part, f"{rate} Mbit/s: fullest 10 ms beyond rate + 1 frame")
        runs = [*figure.ours, *figure.peers["ours, sender held back"]]
        seen.append(f"{f'{shown(max(runs))} frames' if max(runs) > 0 else 'no frame'} at {text}")
        count = len(runs)
    return (
        f"the fullest 10 ms of a full line held {' and '.join(seen)} beyond the rate and one frame (the worst of"
        f" n = {count} runs, in half of which the source sent twice the rate and in half its own line held it back, by"
        f" `python -m bench line_rate`, {part.begin[:10]}, commit {part.commit})"
    )


def _own_code(part: PartRecord) -> str:
    """What Python of one's own costs, kind by kind."""

    def row(figure: Figure) -> str:
        sides = (figure.ours, figure.peers["built-in"])
        cells = [f"{shown(median(one))} ({shown(min(one))} to {shown(max(one))})" for one in sides]
        return f"| {figure.name} | {' | '.join(cells)} |"

    count = len(part.figures[0].ours)
    return "\n".join(
        [
            "",
            "| events in a second of processor time | own | built in |",
            "|---|---|---|",
            *map(row, part.figures),
            "",
            f"Measured: `python -m bench own_code`, {part.begin[:10]}, commit {part.commit}, medians of n = {count} and"
            " the least to the greatest, on the virtual clock, all of the simulation included.",
            "",
        ]
    )


def _of_part(name: str, record: Path) -> str:
    """All figures of a part that `record` has."""
    part = read(record)[name]
    lines = ["", "", "| figure | median (range) | goal | met | n |", "|---|---|---|---|---:|"]
    for figure in part.figures:
        spread = f" ({shown(min(figure.ours))} to {shown(max(figure.ours))})" if len(set(figure.ours)) > 1 else ""
        unit = f", {figure.unit}" if figure.unit else ""
        unit += " (the worst)" if figure.summary != "median" and len(figure.ours) > 1 else ""
        met = {True: "yes", False: "**no**", None: ""}[figure.met]
        lines.append(
            f"| {figure.name}{unit} | {shown(figure.value)}{spread} | {figure.target} | {met} | {len(figure.ours)} |"
        )
    notes = [f"- {figure.name}: {figure.note}." for figure in part.figures if figure.note]
    command = f"Measured: `python -m bench {name}`, {part.begin[:10]}, commit {part.commit}, {part.machine['cpu']}."
    others = (
        f" Others took {median(part.others_percent):.0f} % of the machine before each." if part.others_percent else ""
    )
    failure = f" The part is not whole: {part.failure}." if part.failure else ""
    return "\n".join([*lines, "", *notes, "", command + others + failure, "", ""])


def _tcp_cells() -> str:
    """How many cells of the grid agree."""
    record = json.loads(GRID.read_text(encoding="utf-8"))
    none, timed = (compare(record, processing) for processing in ("none", "measured"))
    within, with_time = (sum(one.within(TOLERANCE) for one in pairs.values()) for pairs in (none, timed))
    hard = [one for one in none.values() if one.linux is not None and not one.easy]
    of_hard = sum(one.within(TOLERANCE) for one in hard)
    return (
        f"of a grid of {len(none)} cells, {within} are within {TOLERANCE:.0%} ({with_time} with the processing time of"
        f" real hosts), and of the {len(hard)} hard ones {of_hard}"
    )


def _phase_effects() -> str:
    """The cells in which a few frames of buffer meet segments always at the same phase."""
    record = json.loads(GRID.read_text(encoding="utf-8"))
    measured, none = (compare(record, processing) for processing in ("measured", "none"))
    lines = [
        "",
        "",
        "| control, buffer | Linux | model, no processing time | 30 us, standard deviation 20 us |",
        "|---|---:|---:|---:|",
    ]
    for share in (0.25, 1.0):
        for control, name in (("reno", "NewReno"), ("cubic", "CUBIC")):
            cell = Cell(10, 10, share, 0.0, control)
            one = measured[cell]
            frames = cell.buffer_bytes // 1514
            lines.append(f"| {name}, {frames} frames | {one.linux} | {none[cell].model} | {one.model} |")
    return "\n".join([*lines, "", ""])


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m bench.record_pages", description="Write numbers on pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page differs")
    wanted = parser.parse_args()
    told, different = words(), 0
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        made = filled(page, told)
        different += made != page
        if not wanted.check:
            path.write_text(made, encoding="utf-8")
    return 1 if wanted.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
