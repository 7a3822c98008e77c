"""Panels for papers whose cases stand below each other, and grids of numbers, drawn by matplotlib."""

from __future__ import annotations

import importlib
from typing import Any, Literal

import numpy as np

from twinnet.report.axis_ticks import BESIDE_ZERO, log_ticks, log_words, with_zero
from twinnet.report.colours import SHADES, colour_of, rgb_of, shades_of
from twinnet.report.level_words import wrapped
from twinnet.report.panels import Figure, Grid, Line, Panel, Vector

__all__ = ["draw_cases", "draw_grid", "end_axis", "grid_inches", "row_inches"]

_ROW, _ROW_OF_TWO = 0.17, 0.28
"""The height of a row in inches, and of rows whose words take two lines, or that lines share."""
_CELL, _LETTER = 0.24, 0.062
_MARKS = ("o", "D", "s", "^", "P")
_SLANTED = 8
"""Words above columns that are longer are slanted."""


def row_inches(figure: Figure) -> float:
    """Return the height that each case of `figure` needs, in inches."""
    is_high = any("\n" in wrapped(word) for word in figure.cases) or any(panel.shares_rows for panel in figure.panels)
    return _ROW_OF_TWO if is_high else _ROW


def grid_inches(grid: Grid) -> tuple[float, float]:
    """Return the width and height that `grid` needs, in inches."""
    letters = max(len(text) for row in grid.texts for text in row)
    beside = max(min(len(word), 32) for word in grid.rows)
    above = max(map(len, grid.columns))
    width = _LETTER * (beside + len(grid.columns) * max(letters + 2, 6)) + 0.4
    return max(width, 3.5), _CELL * len(grid.rows) + (0.6 + 0.05 * above if above > _SLANTED else 0.6)


def end_axis(axis: Any, which: Literal["x", "y"], low: float, high: float, log: bool, zero: bool = False) -> None:
    """Let the axis go from `low` to `high`; a logarithmic one has numbers at its ticks, and with `zero` says that what
    stands at its beginning is zero."""
    if log:
        getattr(axis, f"set_{which}scale")("log")
        ticks = log_ticks(low, high)
        ticks, words = with_zero(ticks, low, high) if zero else (ticks, log_words(ticks))
        getattr(axis, f"set_{which}ticks")(ticks, words)
        getattr(axis, f"set_{which}ticks")([], minor=True)
        low = low / BESIDE_ZERO if zero else low
    getattr(axis, f"set_{which}lim")(low, high)


def draw_cases(axis: Any, figure: Figure, panel: Panel) -> None:
    """Draw a row for each case: its words on the left, its point, its number on the right."""
    shared = panel.shares_rows
    low = panel.y_low if panel.y_low is not None else figure.y_low
    for line in panel.in_rows():
        _draw_points(axis, figure, line, line.at_least(low) if figure.log else line.mean, shared)
    end_axis(axis, "x", low, panel.y_top or figure.y_top, figure.log, figure.has_zero(panel))
    axis.set_ylim(len(figure.cases) - 0.5, -0.5)
    axis.set_yticks(range(len(figure.cases)), [wrapped(word) for word in figure.cases], fontsize=7)
    for place, label in enumerate(axis.get_yticklabels()):
        label.set_fontweight("bold" if place in figure.headings else "normal")
    for place, text in panel.numbers.items():
        axis.annotate(
            text, (1, place), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points", fontsize=7,
            va="center", color="#333333", annotation_clip=False,
        )  # fmt: skip
    if low < 0:
        axis.axvline(0, color="#888888", linewidth=0.6)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#dddddd", linewidth=0.5)
    axis.set_axisbelow(True)


def _draw_points(axis: Any, figure: Figure, line: Line, mean: Vector, shared: bool) -> None:
    """Values that stand alone, each with its interval."""
    colour = colour_of(line.label, figure.labels)
    mark = _MARKS[figure.labels.index(line.label) % len(_MARKS)] if shared else "o"
    # The words of a row are its name; the legend tells symbols apart.
    name = line.shown if shared or line.hollow or not figure.headings else None
    if line.hollow:
        axis.plot(mean, line.time_s, "D", color=colour, fillstyle="none", markersize=5, label=name)
        return
    bars = None
    if line.has_band:
        bars = np.nan_to_num(np.array([mean - line.low, line.high - mean]).clip(min=0.0))
    look = {"fmt": mark, "markersize": 3.5, "capsize": 2, "linewidth": 1.0, "color": colour}
    axis.errorbar(mean, line.time_s, xerr=bars, label=name, **look)


def draw_grid(axis: Any, grid: Grid) -> None:
    """Draw numbers in cells, coloured by how large they are."""
    patches: Any = importlib.import_module("matplotlib.patches")
    for (row, column), shade in np.ndenumerate(shades_of(grid.values)):
        colour = (*(part / 255 for part in rgb_of(SHADES[int(shade > 0)])), abs(float(shade)))
        corner = (column - 0.5, row - 0.5)
        axis.add_patch(patches.Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
        axis.text(column, row, grid.texts[row][column], ha="center", va="center", fontsize=7)
    slanted = any(len(word) > _SLANTED for word in grid.columns)
    turned: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if slanted else {}
    axis.xaxis.tick_top()
    axis.set_xticks(range(len(grid.columns)), grid.columns, fontsize=7, **turned)
    axis.set_yticks(range(len(grid.rows)), [wrapped(word) for word in grid.rows], fontsize=7)
    axis.set_xlim(-0.5, len(grid.columns) - 0.5)
    axis.set_ylim(len(grid.rows) - 0.5, -0.5)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
