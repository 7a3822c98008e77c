"""``python -m bench.tcp_grid_table [FILE] [--page PAGE]``: Linux's TCP and the model's, cell by cell.

FILE is what `bench.tcp_grid` wrote on both clocks: by default bench/records/tcp-grid.json, of which
docs/explanation/tcp-beside-linux.md is made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np
from scipy.stats import ttest_rel

from bench.tcp_grid import ALGORITHMS, PROCESSING, Cell, cell_of, grid, kept, valid
from bench.tcp_grid_page import PAGE_HEAD, reason

__all__ = ["PAGE", "RECORD", "Compared", "Pair", "Spread", "compare", "page", "summary"]

_ROOT = Path(__file__).resolve().parent.parent
RECORD = _ROOT / "bench" / "records" / "tcp-grid.json"
PAGE = _ROOT / "docs" / "explanation" / "tcp-beside-linux.md"
TOLERANCE = 0.05
EASY_SHARE = 0.9
"""Of the line: where Linux fills it, any sender that keeps a window open comes to the same."""
Basis = Literal["runs on the virtual clock", "valid runs", "doubtful runs", "a mean without runs", "nothing"]
"""What Linux's goodput in a cell rests on. Of a mean that was kept without its runs, seed, verdict, date, machine and
commit are not known."""


@dataclass(frozen=True)
class Spread:
    """Mean, least and most of some runs, in Mbit/s."""

    mean_mbit: float
    least_mbit: float
    most_mbit: float
    runs: int

    @classmethod
    def of(cls, values_bps: Sequence[float]) -> Spread:
        """Return the spread of goodputs in bit/s."""
        values = [value / 1e6 for value in values_bps]
        return cls(mean(values), min(values), max(values), len(values))

    def __str__(self) -> str:
        middle = f"{self.mean_mbit:.2f}"
        return middle if self.runs == 1 else f"{middle} ({self.least_mbit:.2f} to {self.most_mbit:.2f})"


@dataclass(frozen=True)
class Pair:
    """What Linux's TCP and the model's did in one cell.

    Parameters
    ----------
    linux, model
        Their goodputs; `linux` is ``None`` where no valid run of it is on record.
    by_run
        Goodputs in bit/s of both, run by run with the same random losses; empty where only the mean of Linux's is kept.
    basis
        What Linux's goodput rests on.
    """

    cell: Cell
    linux: Spread | None
    model: Spread
    by_run: tuple[tuple[float, float], ...] = ()
    basis: Basis = "nothing"

    @property
    def difference(self) -> float | None:
        """The model's mean over Linux's, less one."""
        if self.linux is None:
            return None
        return self.model.mean_mbit / self.linux.mean_mbit - 1 if self.linux.mean_mbit else float("inf")

    def within(self, tolerance: float) -> bool:
        """Whether both were measured and differ by no more; what a doubtful run says is no agreement."""
        measured = self.difference is not None and self.basis != "doubtful runs"
        return measured and abs(self.difference or 0) <= tolerance

    @property
    def easy(self) -> bool:
        """Whether Linux fills the line."""
        return self.linux is not None and self.linux.mean_mbit >= EASY_SHARE * self.cell.rate_mbit

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference (paired t); ``None`` when runs do not differ or there are too few."""
        if len(self.by_run) < 2:
            return None
        linux, model = zip(*self.by_run, strict=True)
        reach = ttest_rel(model, linux).confidence_interval()
        return (reach.low / mean(linux), reach.high / mean(linux)) if isfinite(reach.low) else None


Compared = Mapping[Cell, Pair]
Run = tuple[int, str, int, int]
"""A run's seed, lab, place in the lab, and how many seconds it took: the beginning is a larger part of a short one."""


def compare(record: Mapping[str, Any], processing: str) -> dict[Cell, Pair]:
    """Return every cell of which the record has runs of the model with that `processing`.

    Where rows of Linux's are on record they are compared run by run: those of one seed, lab and place, where the losses
    were the same. Linux on the virtual clock goes before Linux on the wall clock, and there doubtful runs count where
    there is no valid one. Of earlier measurements (``earlier``) only the means are kept, of runs whose losses those of
    the model's rows repeat. Runs without a goodput and those of a lab that missed its schedule are left out.
    """
    rows = [row for row in record["rows"] if kept(row)]
    trusted = _by_cell(row for row in rows if valid(row))
    exact = _by_cell(row for row in rows if row["clock"] == "programs")
    linux = {**_by_cell(row for row in rows if row["clock"] == "wall"), **trusted, **exact}
    model = _by_cell(row for row in rows if row["clock"] == "virtual" and row["processing"] == processing)
    labs = {row["lab"] for row in rows if row["clock"] != "virtual"}
    earlier = {cell_of(row): row for row in record.get("earlier", [])}
    found: dict[Cell, Pair] = {}
    for cell, runs in model.items():
        both = [run for run in linux.get(cell, {}) if run in runs]
        if both:
            by_run = tuple((linux[cell][run], runs[run]) for run in both)
            spreads = (Spread.of([one for one, _ in by_run]), Spread.of([one for _, one in by_run]))
            basis: Basis = "valid runs" if cell in trusted else "doubtful runs"
            found[cell] = Pair(cell, *spreads, by_run, "runs on the virtual clock" if cell in exact else basis)
            continue
        others = [goodput for (_, lab, _, _), goodput in runs.items() if lab not in labs]
        theirs = earlier.get(cell)
        spread = None
        if theirs is not None:
            spread = Spread(theirs["mean_mbit"], theirs["least_mbit"], theirs["most_mbit"], theirs["runs"])
        basis = "nothing" if spread is None else "a mean without runs"
        found[cell] = Pair(cell, spread, Spread.of(others or list(runs.values())), basis=basis)
    return found


def _by_cell(rows: Any) -> dict[Cell, dict[Run, float]]:
    found: dict[Cell, dict[Run, float]] = defaultdict(dict)
    for row in rows:
        found[cell_of(row)][row["seed"], row["lab"], row["place"], row["seconds"]] = row["goodput_bps"]
    return found


def summary(pairs: Compared, tolerance: float = TOLERANCE) -> str:
    """Return how many cells agree, by congestion control: of all cells, and of those with a valid run of Linux's."""
    lines = [
        f"| congestion control | cells | measured | within {tolerance:.0%} | mean difference | largest |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in (*ALGORITHMS, "all"):
        cells = [cell for cell in grid() if name in (cell.algorithm, "all")]
        there = [one for cell in cells if (one := pairs.get(cell)) and one.difference is not None]
        apart = [one.difference or 0 for one in there]
        if apart:
            within = sum(one.within(tolerance) for one in there)
            farthest = max(apart, key=abs)
            lines.append(
                f"| {name} | {len(cells)} | {len(apart)} | {within} ({within / len(apart):.0%} of the measured, "
                f"{within / len(cells):.0%} of all) | {mean(apart):+.1%} | {farthest:+.1%} |"
            )
    return "\n".join(lines)


def _by_difficulty(pairs: Compared, timed: Compared, tolerance: float) -> str:
    """The agreement in easy and in hard cells, without the processing time and with it."""
    lines = [
        f"| cells | measured | within {tolerance:.0%} | within {tolerance:.0%} with processing time |",
        "|---|---:|---:|---:|",
    ]
    for name, easy in ((f"easy: Linux fills {EASY_SHARE:.0%} of the line", True), ("hard: all others", False)):
        some = [one for one in pairs.values() if one.linux is not None and one.easy == easy]
        within = sum(one.within(tolerance) for one in some)
        with_time = sum(timed[one.cell].within(tolerance) for one in some if one.cell in timed)
        share = f" ({within / len(some):.0%})" if some else ""
        lines.append(f"| {name} | {len(some)} | {within}{share} | {with_time} |")
    return "\n".join([*lines, "", "The aim is nine in ten of the hard cells.", ""])


def _by_basis(pairs: Compared, tolerance: float) -> str:
    """What Linux's goodputs rest on, and how many agree of each."""
    lines = [
        f"| Linux's goodput rests on | cells | differ by at most {tolerance:.0%} | counted |",
        "|---|---:|---:|---|",
    ]
    for basis, counted in (
        ("runs on the virtual clock", "yes"),
        ("valid runs", "yes"),
        ("doubtful runs", "not as agreement"),
        ("a mean without runs", "yes, for want of better"),
    ):
        some = [one for one in pairs.values() if one.basis == basis]
        alike = sum(abs(one.difference or 0) <= tolerance for one in some if one.difference is not None)
        lines.append(f"| {basis} | {len(some)} | {alike} | {counted} |")
    return "\n".join([*lines, ""])


def page(record: Mapping[str, Any], tolerance: float = TOLERANCE) -> str:
    """Return the page of the documentation: how many agree, which do not, and every cell."""
    pairs, timed = (compare(record, processing) for processing in ("none", "measured"))
    measured = [one for one in pairs.values() if one.difference is not None]
    apart = [one for one in measured if abs(one.difference or 0) > tolerance]
    outside = sorted(apart, key=lambda one: -abs(one.difference or 0))
    doubtful = [one for one in measured if one.basis == "doubtful runs" and one not in apart]
    absent = [cell for cell in grid() if cell not in pairs or pairs[cell].linux is None]
    head = "| control | rate | round trip | buffer | loss |"
    evidence = _provenance(record)
    lines = [
        PAGE_HEAD,
        "## How many cells agree\n",
        _by_difficulty(pairs, timed, tolerance),
        _by_basis(pairs, tolerance),
        f"Without processing time, as by default:\n\n{summary(pairs, tolerance)}\n",
        f"With that of a real host:\n\n{summary(timed, tolerance)}\n",
        _by_kind(measured, tolerance),
        f"## Linux on both clocks\n\n{_between_clocks(record, tolerance)}",
        f"## Cells that differ by more than {tolerance:.0%}\n",
        f"{head} Linux, Mbit/s | model, Mbit/s | difference | why |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
        *(f"{_path(one.cell)} {one.linux} | {one.model} | {one.difference:+.1%} | {_why(one)} |" for one in outside),
        "\n## Cells of which only doubtful runs tell\n",
        "These differ by less, and are no agreement all the same.\n" if doubtful else "None.\n",
        *(
            [f"{head} Linux, Mbit/s | model, Mbit/s | difference |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
            * bool(doubtful)
        ),
        *(f"{_path(one.cell)} {one.linux} | {one.model} | {one.difference:+.1%} |" for one in doubtful),
        f"\n## Cells that are not measured\n\n{_of_absent(absent)}",
        "## Every cell\n",
        f"{head} Linux, Mbit/s | model, Mbit/s | difference | model with processing time, Mbit/s | difference "
        "| Linux's runs |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        *(f"{_row(cell, pairs.get(cell), timed.get(cell))} {evidence.get(cell, '-')} |" for cell in grid()),
    ]
    return "\n".join(lines) + "\n"


def _of_absent(absent: Sequence[Cell]) -> str:
    if not absent:
        return "None.\n"
    lines = [
        f"- {cell.algorithm}, {cell.rate_mbit} Mbit/s, {cell.rtt_ms} ms, {cell.buffer_bdp:g} BDP, {cell.loss:.1%} loss"
        for cell in absent
    ]
    return (
        f"{len(absent)} of {len(grid())} cells have no valid run of Linux's on record. They count as cells that do not "
        "agree in the share of all. A lab that missed its schedule is not repeated side by side with others; "
        "`--alone --missing` measures what is missing, one flow at a time:\n\n" + "\n".join(lines) + "\n"
    )


def _by_kind(pairs: Sequence[Pair], tolerance: float) -> str:
    """How many cells of each kind are within `tolerance`, in a sentence."""
    kinds = {
        "without random losses and with a buffer of at least one bandwidth-delay product": [
            one for one in pairs if one.cell.loss == 0 and one.cell.buffer_bdp >= 1
        ],
        "without random losses": [one for one in pairs if one.cell.loss == 0],
        "with random losses": [one for one in pairs if one.cell.loss > 0],
    }
    counted = [f"{sum(one.within(tolerance) for one in some)} of {len(some)} {name}" for name, some in kinds.items()]
    text = f"Without it, within {tolerance:.0%} are {'; '.join(counted)}. The aim is nine cells in ten of all."
    apart = [abs(model / linux - 1) for one in pairs if one.cell.loss > 0 for linux, model in one.by_run if linux]
    if apart:
        half, most = (f"{share:.1%}" for share in np.quantile(apart, [0.5, 0.9]))
        text += (
            f" Of the single runs with random losses, which both clocks made with the same ones, half are less than "
            f"{half} apart and nine in ten less than {most} ({len(apart)} runs)."
        )
    return f"{text}\n"


def _why(pair: Pair) -> str:
    assert pair.linux is not None
    return reason(pair.cell, pair.linux.mean_mbit, pair.linux.runs, pair.difference or 0, pair.interval)


def _between_clocks(record: Mapping[str, Any], tolerance: float) -> str:
    """How far Linux on the wall clock is from Linux on the virtual clock: what the machine, not the model, makes."""
    rows = [row for row in record["rows"] if kept(row)]
    exact = _by_cell(row for row in rows if row["clock"] == "programs")
    means = {cell_of(row): row["mean_mbit"] for row in record.get("earlier", [])}
    lines = [
        f"| Linux's goodput on the wall clock rests on | cells | within {tolerance:.0%} of that on the virtual clock | "
        "mean difference | largest |",
        "|---|---:|---:|---:|---:|",
    ]
    apart: dict[str, list[float]] = {"valid runs": [], "a mean without runs": []}
    wall = _by_cell(row for row in rows if row["clock"] == "wall" and valid(row))
    for cell, runs in exact.items():
        virtual_mbit = mean(runs.values()) / 1e6
        if cell in wall:
            apart["valid runs"].append(virtual_mbit / (mean(wall[cell].values()) / 1e6) - 1)
        elif cell in means:
            apart["a mean without runs"].append(virtual_mbit / means[cell] - 1)
    for basis, some in apart.items():
        if some:
            within = sum(abs(one) <= tolerance for one in some)
            farthest = max(some, key=abs)
            lines.append(f"| {basis} | {len(some)} | {within} | {mean(some):+.1%} | {farthest:+.1%} |")
    told = (
        "Valid runs have the same seed and losses on both clocks, other kernels (that of the machine and that of the "
        "guest), and processors that take time. The means are of other random losses, and at 100 Mbit/s of flows three "
        "times as long: they tell less.\n"
    )
    return "\n".join([*lines, "", told])


def _provenance(record: Mapping[str, Any]) -> dict[Cell, str]:
    """What is known of the runs behind Linux's goodput in each cell."""
    found = {cell_of(row): f"mean of {row['runs']}, nothing else kept" for row in record.get("earlier", [])}
    for clock in ("wall", "programs"):
        runs: dict[Cell, list[str]] = {}
        for row in record["rows"]:
            if row["clock"] == clock and kept(row):
                where = f", {row['date']}, {row['commit']}" if "commit" in row else ", commit not kept"
                known = f"trace {row['trace']}" if clock == "programs" else row["fidelity"]["verdict"]
                runs.setdefault(cell_of(row), []).append(f"seed {row['seed']}: {known}{where}")
        found |= {cell: "; ".join(each) for cell, each in runs.items()}
    return found


def _path(cell: Cell) -> str:
    return (
        f"| {cell.algorithm} | {cell.rate_mbit} Mbit/s | {cell.rtt_ms} ms | {cell.buffer_bdp:g} BDP | {cell.loss:.1%} |"
    )


def _row(cell: Cell, pair: Pair | None, timed: Pair | None) -> str:
    linux = pair.linux if pair is not None else None
    found = [f" {linux or 'not measured'} |"]
    for one in (pair, timed):
        apart = one.difference if one is not None else None
        found.append(f" {one.model if one is not None else '-'} | {'' if apart is None else f'{apart:+.1%}'} |")
    return _path(cell) + "".join(found)


def main() -> int:
    """Print the tables; the status tells whether nine cells in ten of the whole grid are within the tolerance."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tcp_grid_table", description="Compare two grids of TCP flows."
    )
    parser.add_argument("file", nargs="?", type=Path, default=RECORD)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation to FILE")
    wanted = parser.parse_args()
    record = json.loads(wanted.file.read_text(encoding="utf-8"))
    if wanted.page:
        wanted.page.write_text(page(record, wanted.tolerance), encoding="utf-8")
    for processing in PROCESSING:
        print(f"processing time of the model's hosts: {processing}\n{summary(compare(record, processing))}\n")
    pairs = compare(record, "none")
    within = sum(one.within(wanted.tolerance) for one in pairs.values())
    return 0 if within >= 0.9 * len(grid()) else 1


if __name__ == "__main__":
    sys.exit(main())
