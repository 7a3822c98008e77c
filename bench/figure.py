"""One figure: what was measured of ours and of the peers, what is aimed at, and whether that is met."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "markdown", "print_figures", "shown"]


@dataclass(frozen=True)
class Figure:
    """A figure and the samples behind it.

    Parameters
    ----------
    name, unit
        What was measured.
    ours
        The samples of ours; empty when it could not be measured.
    peers
        The samples of each peer by its name.
    target
        What is aimed at, in words.
    met
        Whether it is; ``None`` for a figure that is only stated.
    note
        What a reader must know to judge it.
    summary
        How the samples become the value: their median, or the worst of all, which is the greatest.
    """

    name: str
    unit: str
    ours: Sequence[float]
    peers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    target: str = ""
    met: bool | None = None
    note: str = ""
    summary: Literal["median", "worst"] = "median"

    def of(self, samples: Sequence[float]) -> float | None:
        """Return the value of `samples`."""
        if not samples:
            return None
        return median(samples) if self.summary == "median" else max(samples)

    @property
    def value(self) -> float | None:
        """Our value."""
        return self.of(self.ours)

    def ratio(self, peer: str) -> float | None:
        """Our value divided by that of `peer`; ``None`` where one of them is an error with a sign, or nothing."""
        ours, theirs = self.value, self.of(self.peers[peer])
        return ours / theirs if ours is not None and theirs is not None and ours >= 0 < theirs else None

    def beside(self, peer: str) -> str:
        """Return the value of `peer` and how ours compares with it, in words."""
        ratio = self.ratio(peer)
        return f"{peer}: {shown(self.of(self.peers[peer]))}" + (f" ({shown(ratio)})" if ratio is not None else "")

    def to_json(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {
            "name": self.name,
            "unit": self.unit,
            "summary": self.summary,
            "ours": {"value": self.value, "samples": list(self.ours)},
            "peers": {
                name: {"value": self.of(samples), "ratio": self.ratio(name), "samples": list(samples)}
                for name, samples in self.peers.items()
            },
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }


def markdown(title: str, figures: Iterable[Figure]) -> str:
    """Return the table of `figures` for a page of documentation."""
    lines = [f"### {title}", "", "| figure | ours | peers (ours / theirs) | target | met |", "|---|---:|---|---|---|"]
    for figure in figures:
        peers = "; ".join(figure.beside(name) for name in figure.peers)
        met = {True: "yes", False: "**no**", None: ""}[figure.met]
        unit = f", {figure.unit}" if figure.unit else ""
        lines.append(f"| {figure.name}{unit} | {shown(figure.value)} | {peers} | {figure.target} | {met} |")
    return "\n".join([*lines, ""])


def shown(value: float | None) -> str:
    """Return `value` with three significant digits and no exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def print_figures(console: Console, title: str, figures: Iterable[Figure]) -> None:
    """Print one table, and the notes below it."""
    table = Table(title=title, title_justify="left", title_style="bold", expand=False)
    for heading, justify in (
        ("figure", "left"),
        ("ours", "right"),
        ("peers (ours / theirs)", "left"),
        ("target", "left"),
    ):
        table.add_column(heading, justify=justify, overflow="fold")
    table.add_column("met")
    notes: list[str] = []
    for figure in figures:
        peers = [figure.beside(name) for name in figure.peers]
        met = {True: "[green]yes[/]", False: "[red]NO[/]", None: ""}[figure.met]
        table.add_row(
            f"{figure.name} [{figure.unit}]".replace("[", "\\["),
            shown(figure.value),
            "\n".join(peers),
            figure.target,
            met,
        )
        if figure.note:
            notes.append(f"  {figure.name}: {figure.note}")
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)
