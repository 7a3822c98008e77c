"""``python -m bench.tcp_grid_table LINUX MODEL [--tolerance 0.05]``: two files of `bench.tcp_grid`, cell by cell."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from bench.tcp_grid import ALGORITHMS, Cell

__all__ = ["Pair", "compare", "table"]


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


def table(pairs: Sequence[Pair], tolerance: float) -> str:
    """Return the summary by congestion control and the cells outside of `tolerance`, in Markdown."""
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
    wanted = parser.parse_args()
    linux, model = (json.loads(path.read_text())["rows"] for path in (wanted.linux, wanted.model))
    pairs = compare(linux, model)
    if not pairs:
        parser.error("the two files have no cell in common that can be compared")
    alone = len({*_by_cell(linux)} ^ {*_by_cell(model)})
    print(table(pairs, wanted.tolerance))
    print(f"{alone} cells are in one file only." if alone else "Every cell is in both files.")
    within = sum(abs(pair.difference) <= wanted.tolerance for pair in pairs)
    return 0 if within >= 0.9 * len(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
