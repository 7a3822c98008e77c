"""One figure: what was measured of ours and of the peers, what is aimed at, and whether that is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "print_figures", "shown"]


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
        How the samples become the value: their median, the worst of all, which is the greatest, or
        the one farthest from 0.
    marks
        What must stand beside a value, by the peer's name (ours is ``ours``): that it is not what it looks like.
    goal
        The goal that the row belongs to, where several rows of a part have one together: it counts once, and is met
        when all of them meet it. Empty: the row's own.
    strain
        How much of what the goal allows the row takes: more than 1 misses it. ``None`` without a goal.
    deterministic
        Whether a sample follows from its seed alone. One that comes again is then no repetition: see `count`.
    """

    name: str
    unit: str
    ours: Sequence[float]
    peers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    target: str = ""
    met: bool | None = None
    note: str = ""
    summary: Literal["median", "worst", "farthest"] = "median"
    marks: Mapping[str, str] = field(default_factory=dict)
    goal: str = ""
    strain: float | None = None
    deterministic: bool = False

    def of(self, samples: Sequence[float]) -> float | None:
        """Return the value of `samples`."""
        if not samples:
            return None
        if self.summary == "farthest":
            return max(samples, key=abs)
        return median(samples) if self.summary == "median" else max(samples)

    def below(self, most: float) -> Figure:
        """Return it with the goal that its value is less than `most`."""
        return self._judged(f"below {most:g}", most, lambda value: value < most)

    def at_most(self, most: float) -> Figure:
        """Return it with the goal that its value is no more than `most`."""
        return self._judged(f"at most {most:g}", most, lambda value: value <= most)

    def _judged(self, target: str, most: float, keeps: Callable[[float], bool]) -> Figure:
        value = self.value
        if value is None:
            return replace(self, target=target)
        return replace(self, target=target, met=bool(keeps(value)), strain=value / most)

    def count(self, samples: Sequence[float]) -> int:
        """Return how many repetitions `samples` are: those that a deterministic run gave alike are one."""
        return len(set(samples)) if self.deterministic else len(samples)

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
        mark = f" [{self.marks[peer]}]" if peer in self.marks else ""
        return f"{peer}: {shown(self.of(self.peers[peer]))}{mark}" + (f" ({shown(ratio)})" if ratio is not None else "")

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
            "marks": dict(self.marks),
            "goal": self.goal,
            "strain": self.strain,
            "deterministic": self.deterministic,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Figure:
        """Return the figure that `to_json` told."""
        return cls(
            told["name"],
            told["unit"],
            told["ours"]["samples"],
            {name: peer["samples"] for name, peer in told["peers"].items()},
            told["target"],
            told["met"],
            told["note"],
            told["summary"],
            told["marks"],
            # Records of parts that were measured before have neither.
            told.get("goal", ""),
            told.get("strain"),
            told.get("deterministic", False),
        )


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
            shown(figure.value) + (f" [{figure.marks['ours']}]".replace("[", "\\[") if "ours" in figure.marks else ""),
            "\n".join(peers).replace("[", "\\["),
            figure.target,
            met,
        )
        if figure.note:
            notes.append(f"  {figure.name}: {figure.note}")
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)
