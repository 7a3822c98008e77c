"""The contents of a figure before it is drawn: panels with lines, points or a grid of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

__all__ = ["Figure", "Grid", "Line", "Panel", "Vector"]

Vector = npt.NDArray[np.float64]

_SPREAD = 0.6
"""The part of a row that points of several lines take."""


@dataclass(frozen=True)
class Line:
    """One line: at the middle of each interval the mean, and its band where there is one; in the figure's unit.

    Of a figure with cases, one point at each of some cases.

    Attributes
    ----------
    label
        What it is of, by which its colour is chosen.
    time_s
        Times in seconds, or the places of the figure's cases.
    name
        What the legend calls it; the label when left out.
    hollow
        Whether its points were published: they are drawn hollow.
    """

    label: str
    time_s: Vector
    mean: Vector
    low: Vector
    high: Vector
    name: str = ""
    hollow: bool = False

    @property
    def shown(self) -> str:
        """The name in the legend."""
        return self.name or self.label

    def at_least(self, low: float) -> Vector:
        """The means, with `low` in the place of zeros, which a logarithmic axis does not have."""
        return np.where(self.mean <= 0, low, self.mean)

    @property
    def has_band(self) -> bool:
        """True if there is a confidence band, which takes more than one repetition."""
        return bool(np.isfinite(self.low).any())


@dataclass(frozen=True)
class Grid:
    """Numbers in rows and columns, coloured by how large they are.

    Attributes
    ----------
    rows, columns
        The words beside and above them.
    values
        Shape (rows, columns), in the figure's unit; NaN where nothing was measured.
    texts
        What stands in each cell.
    titles
        The same with interval and unit, for who points at it.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: npt.NDArray[np.float64]
    texts: tuple[tuple[str, ...], ...]
    titles: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Panel:
    """The lines under one combination of levels, or a grid.

    Attributes
    ----------
    y_low, y_top
        The ends of the axis of values, if they are not the figure's.
    numbers
        What stands beside each case, by its place: the number.
    """

    title: str
    lines: tuple[Line, ...] = ()
    y_top: float | None = None
    y_low: float | None = None
    grid: Grid | None = None
    numbers: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def shares_rows(self) -> bool:
        """True if several lines have points in one row, where symbols tell them apart and the words beside it do not.
        What was published is hollow, and stands around what was measured."""
        seen = [place for line in self.lines if not line.hollow for place in line.time_s]
        return len(set(seen)) < len(seen)

    def in_rows(self) -> list[Line]:
        """The lines, those that share rows each a little above the next: equal values would hide each other."""
        lines = [line for line in self.lines if not line.hollow]
        if not self.shares_rows:
            return list(self.lines)
        step, middle = min(0.3, _SPREAD / (len(lines) - 1)), (len(lines) - 1) / 2
        moved = (replace(line, time_s=line.time_s + step * (place - middle)) for place, line in enumerate(lines))
        return [line if line.hollow else next(moved) for line in self.lines]


@dataclass(frozen=True)
class Figure:
    """A figure of one measurement; all panels share both axes.

    Attributes
    ----------
    y_title, y_low, y_top
        The axis of values. It is upright, and lies where there are cases.
    end_s, end_low
        Where the other axis ends and begins; it is a time unless `x_title` says otherwise.
    moments
        Times in seconds at which traffic of known duration ends, with a few words.
    cases
        Words at 0, 1, 2, ... of the other axis, from top to bottom, which then is no time.
    headings
        The places of cases that are headings of those below them.
    log, end_log
        Whether the axis of values, and the other, are logarithmic.
    end_zero
        Whether what stands at the beginning of the other, which is logarithmic then, is zero.
    """

    name: str
    title: str
    caption: str
    y_title: str
    y_top: float
    end_s: float
    panels: tuple[Panel, ...]
    moments: tuple[tuple[float, str], ...] = ()
    x_title: str = "time (s)"
    cases: tuple[str, ...] = ()
    y_low: float = 0.0
    headings: frozenset[int] = frozenset()
    log: bool = False
    end_low: float = 0.0
    end_log: bool = False
    end_zero: bool = False

    def has_zero(self, panel: Panel) -> bool:
        """True if zeros stand on the axis of values of `panel`, which all panels share that have no own ends."""
        shared = (panel,) if panel.y_top is not None else self.panels
        return self.log and any(bool((line.mean <= 0).any()) for one in shared for line in one.lines)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all lines, in their order."""
        return tuple(dict.fromkeys(line.label for panel in self.panels for line in panel.lines))

    @property
    def is_grid(self) -> bool:
        """True if its panels are grids of numbers."""
        return any(panel.grid is not None for panel in self.panels)
