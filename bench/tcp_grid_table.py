"""``python -m bench.tcp_grid_table LINUX MODEL [--tolerance 0.05]``: two files of `bench.tcp_grid`, cell by cell."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from bench.tcp_grid import ALGORITHMS, Cell

__all__ = ["Pair", "compare", "page", "table"]


@dataclass(frozen=True)
class Pair:
    """What Linux's TCP and the model's did in one cell, in bit/s, one value for each run.

    The values at one place of both were made with the same random losses.
    """

    cell: Cell
    linux: tuple[float, ...]
    model: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The model's mean over Linux's, less one."""
        return mean(self.model) / mean(self.linux) - 1 if mean(self.linux) else float("inf")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference (paired t); ``None`` when runs do not differ or there are too few."""
        if len(self.linux) < 2 or not mean(self.linux):
            return None
        reach = ttest_rel(self.model, self.linux).confidence_interval()
        return (reach.low / mean(self.linux), reach.high / mean(self.linux)) if isfinite(reach.low) else None


def compare(linux: Sequence[Mapping[str, Any]], model: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """Return the cells that both have, run by run: those of one seed, lab and place, where the losses were the same.

    Runs without a goodput and those of a lab that missed its schedule are left out.
    """
    ours, theirs = _by_cell(linux), _by_cell(model)
    pairs: list[Pair] = []
    for cell, runs in ours.items():
        if both := [run for run in runs if run in theirs.get(cell, {})]:
            pairs.append(Pair(cell, tuple(runs[run] for run in both), tuple(theirs[cell][run] for run in both)))
    return pairs


Run = tuple[int, str, int]
"""A run's seed, lab and place in the lab."""


def _by_cell(rows: Sequence[Mapping[str, Any]]) -> dict[Cell, dict[Run, float]]:
    found: dict[Cell, dict[Run, float]] = defaultdict(dict)
    for row in rows:
        kept = not row["fidelity"] or row["fidelity"]["verdict"] != "invalid"
        if kept and row["goodput_bps"] is not None:
            cell = Cell(**{name: row[name] for name in Cell.__dataclass_fields__})
            found[cell][row["seed"], row["lab"], row["place"]] = row["goodput_bps"]
    return found


def _summary(pairs: Sequence[Pair], tolerance: float) -> str:
    lines = [
        f"| congestion control | cells | within {tolerance:.0%} | mean difference | largest |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in (*ALGORITHMS, "all"):
        some = [pair for pair in pairs if name in (pair.cell.algorithm, "all")]
        if some:
            within = sum(abs(pair.difference) <= tolerance for pair in some)
            farthest = max((pair.difference for pair in some), key=abs)
            average = mean(pair.difference for pair in some)
            lines.append(
                f"| {name} | {len(some)} | {within} ({within / len(some):.0%}) | {average:+.1%} | {farthest:+.1%} |"
            )
    return "\n".join(lines)


def table(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return the summary by congestion control and the cells outside of `tolerance`, in Markdown."""
    lines = [_summary(pairs, tolerance)]
    outside = sorted(
        (pair for pair in pairs if abs(pair.difference) > tolerance), key=lambda pair: -abs(pair.difference)
    )
    if outside:
        lines += [
            "",
            "| control | rate | round trip | buffer | loss | Linux, Mbit/s | model, Mbit/s | difference |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [_row(pair) for pair in outside]
    return "\n".join(lines) + "\n"


_PAGE = """\
# The model's TCP beside Linux's

One TCP flow over one bottleneck - host, switch, bottleneck, switch, host - on a grid of rates, round trips, buffers,
random losses and congestion controls: Linux's own TCP between real hosts on the wall clock, and the model's between
model hosts on the virtual clock, over the same links, with the same random losses run by run. Goodput is what the
receiving app got in the last two thirds of 30 s (60 s at 200 ms). Cells whose emulation was invalid are left out. A
cell that was run several times, with other losses, shows its range in brackets. Model hosts take 40 us for a frame
that arrives, with a standard deviation of 20 us, as real hosts of the emulation do.

Measured with `python -m bench.tcp_grid` (`--clock wall` and `--clock virtual`), compared with
`python -m bench.tcp_grid_table`, which wrote this page.

![The congestion window of one CUBIC flow on both clocks](../images/saw-tooth.svg)

One CUBIC flow over 10 Mbit/s with a round trip of 50 ms and a buffer of one bandwidth-delay product: the window that
Linux tells by `TCP_INFO`, and the model's (`python -m bench.tcp_saw_tooth`).

## How many cells agree

"""


def page(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return the page of the documentation: the summary, the cells outside with the reason, and every cell."""
    outside = sorted((one for one in pairs if abs(one.difference) > tolerance), key=lambda one: -abs(one.difference))
    head = "| control | rate | round trip | buffer | loss | Linux, Mbit/s | model, Mbit/s | difference |"
    rule = "|---|---:|---:|---:|---:|---:|---:|---:|"
    lines = [f"## Cells that differ by more than {tolerance:.0%}", ""]
    if outside:
        lines += [f"{head} why |", f"{rule}---|", *(f"{_row(one)} {_reason(one)} |" for one in outside)]
    else:
        lines.append("None.")
    lines += ["", "## Every cell", "", head, rule, *(_row(one) for one in pairs)]
    return _PAGE + _summary(pairs, tolerance) + "\n\n" + _by_kind(pairs, tolerance) + "\n".join(lines) + "\n"


def _by_kind(pairs: Sequence[Pair], tolerance: float) -> str:
    """How many cells of each kind are within `tolerance`, in a sentence."""
    kinds: dict[str, Callable[[Cell], bool]] = {
        "without random losses and with a buffer of at least one bandwidth-delay product": lambda cell: (
            cell.loss == 0 and cell.buffer_bdp >= 1
        ),
        "without random losses": lambda cell: cell.loss == 0,
        "with random losses": lambda cell: cell.loss > 0,
    }
    counted: list[str] = []
    for name, belongs in kinds.items():
        some = [abs(one.difference) <= tolerance for one in pairs if belongs(one.cell)]
        counted.append(f"{sum(some)} of {len(some)} {name}")
    text = f"Within {tolerance:.0%} are {'; '.join(counted)}. The aim is nine cells in ten."
    apart = [
        abs(model / linux - 1)
        for one in pairs
        if one.cell.loss > 0
        for linux, model in zip(one.linux, one.model, strict=True)
        if linux
    ]
    if apart:
        half, most = (f"{share:.1%}" for share in np.quantile(apart, [0.5, 0.9]))
        text += (
            f" Of the single runs with random losses, which both clocks made with the same ones, half are less than "
            f"{half} apart and nine in ten less than {most}."
        )
    return f"{text}\n\n"


def _reason(pair: Pair) -> str:
    """What we believe to be why the clocks differ in this cell."""
    cell = pair.cell
    losses = cell.loss * mean(pair.linux) * cell.seconds() / 8 / 1448
    if losses and len(pair.linux) == 1:
        return f"about {losses:.0f} random losses decide it, and only one run was made"
    if (reach := pair.interval) is not None and reach[0] <= 0 <= reach[1]:
        return (
            f"about {losses:.0f} random losses a run decide it: {len(pair.linux)} runs on each clock cannot tell the "
            f"difference from chance (95 % interval {reach[0]:+.0%} to {reach[1]:+.0%})"
        )
    frames = cell.buffer_bytes // 1514
    if cell.algorithm != "bbr" and pair.difference > 0 and frames <= 8:
        return (
            f"the buffer holds {frames} frames: which of them are lost hangs on some ten microseconds in the sending "
            "host ([phase effects](model-tcp.md#phase-effects)), of which the model knows mean and deviation only"
        )
    if cell.algorithm == "reno" and cell.rtt_ms == 200 and not cell.loss:
        return (
            "the window grows by five segments a second, so the whole run hangs on where the overshoot of slow start "
            "left it; why Linux came out of it with a smaller one is not known"
        )
    return (
        f"the buffer holds {frames} frames; Linux hands bursts of segments to its interface, the model one after the "
        "other, and how far that explains it is not known"
    )


def _row(pair: Pair) -> str:
    cell = pair.cell
    return (
        f"| {cell.algorithm} | {cell.rate_mbit} Mbit/s | {cell.rtt_ms} ms | {cell.buffer_bdp:g} BDP | {cell.loss:.1%} "
        f"| {_spread(pair.linux)} | {_spread(pair.model)} | {pair.difference:+.1%} |"
    )


def _spread(values: Sequence[float]) -> str:
    middle = f"{mean(values) / 1e6:.2f}"
    return middle if len(values) == 1 else f"{middle} ({min(values) / 1e6:.2f} to {max(values) / 1e6:.2f})"


def main() -> int:
    """Print the tables; the status tells whether nine cells in ten are within the tolerance."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tcp_grid_table", description="Compare two grids of TCP flows."
    )
    parser.add_argument("linux", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.05)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation to FILE")
    wanted = parser.parse_args()
    linux, model = (json.loads(path.read_text())["rows"] for path in (wanted.linux, wanted.model))
    pairs = compare(linux, model)
    if not pairs:
        parser.error("the two files have no cell in common that can be compared")
    alone = len({*_by_cell(linux)} ^ {*_by_cell(model)})
    if wanted.page:
        wanted.page.write_text(page(pairs, wanted.tolerance), encoding="utf-8")
    print(table(pairs, wanted.tolerance))
    print(f"{alone} cells are in one file only." if alone else "Every cell is in both files.")
    within = sum(abs(pair.difference) <= wanted.tolerance for pair in pairs)
    return 0 if within >= 0.9 * len(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
