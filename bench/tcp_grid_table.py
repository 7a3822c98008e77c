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

from scipy.stats import ttest_ind

from bench.tcp_grid import ALGORITHMS, Cell

__all__ = ["Pair", "compare", "page", "table"]


@dataclass(frozen=True)
class Pair:
    """What Linux's TCP and the model's did in one cell, in bit/s, one value for each repetition."""

    cell: Cell
    linux: tuple[float, ...]
    model: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The model's mean over Linux's, less one."""
        return mean(self.model) / mean(self.linux) - 1 if mean(self.linux) else float("inf")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference (Welch's t); ``None`` when runs do not differ or there are too few."""
        if min(len(self.linux), len(self.model)) < 2 or not mean(self.linux):
            return None
        reach = ttest_ind(self.model, self.linux, equal_var=False).confidence_interval()
        return (reach.low / mean(self.linux), reach.high / mean(self.linux)) if isfinite(reach.low) else None


def compare(linux: Sequence[Mapping[str, Any]], model: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """Return the cells that both have, rows without a goodput and those of a lab that missed its schedule left out."""
    ours, theirs = _by_cell(linux), _by_cell(model)
    return [Pair(cell, tuple(ours[cell]), tuple(theirs[cell])) for cell in ours if cell in theirs]


def _by_cell(rows: Sequence[Mapping[str, Any]]) -> dict[Cell, list[float]]:
    found: dict[Cell, list[float]] = defaultdict(list)
    for row in rows:
        kept = not row["fidelity"] or row["fidelity"]["verdict"] != "invalid"
        if kept and row["goodput_bps"] is not None:
            found[Cell(**{name: row[name] for name in Cell.__dataclass_fields__})].append(row["goodput_bps"])
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
model hosts on the virtual clock, over the same links, with the same streams of random losses. Goodput is what the
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
    return f"Within {tolerance:.0%} are {'; '.join(counted)}. The aim is nine cells in ten.\n\n"


def _reason(pair: Pair) -> str:
    """What we believe to be why the clocks differ in this cell."""
    cell = pair.cell
    if (reach := pair.interval) is not None and reach[0] <= 0 <= reach[1]:
        losses = cell.loss * mean(pair.linux) * cell.seconds() / 8 / 1448
        return (
            f"about {losses:.0f} random losses a run decide it: {len(pair.linux)} and {len(pair.model)} runs cannot "
            f"tell the difference from chance (95 % interval {reach[0]:+.0%} to {reach[1]:+.0%})"
        )
    frames = cell.buffer_bytes // 1514
    if cell.algorithm != "bbr" and pair.difference > 0 and frames <= 8:
        return (
            f"the buffer holds {frames} frames: which of them are lost hangs on some ten microseconds in the sending "
            "host ([phase effects](model-tcp.md#phase-effects)), of which the model knows mean and deviation only"
        )
    if cell.rate_mbit == 100 and frames <= 24:
        return (
            "a capture on a busy machine shows Linux acknowledge some 15 segments at once, probably because the "
            "receiving app got its processor late; each lets as many go in one burst, more than the buffer of "
            f"{frames} frames takes"
        )
    return "not explained"


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
