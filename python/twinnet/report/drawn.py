"""Figures as files for papers: SVG, PDF and PNG, drawn by matplotlib."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from twinnet.report.colours import colour_of, dash_of
from twinnet.report.drawn_cases import draw_cases, draw_grid, end_axis, grid_inches, row_inches
from twinnet.report.level_words import WIDEST
from twinnet.report.panels import Figure, Line

__all__ = ["FORMATS", "draw_figure", "matplotlib_figure", "save_figure"]

FORMATS = ("svg", "pdf", "png")
_COLUMN_INCHES, _PAGE_INCHES = 3.5, 7.16
"""The width of a column and of a page of a paper in two columns."""
_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    # Titles and names are text of others: a dollar sign begins no formula.
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    # No bare "1e6" at the end of an axis: up to 16 digits stand where they belong.
    "axes.formatter.limits": (-7, 16),
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # The same results give the same bytes.
    "svg.hashsalt": "twinnet",
}
_LINE, _WIDER = 1.3, 1.0
"""The width of a line in points, and by how much one is wider on which another lies."""
_MOST_IN_A_ROW = 4
_BELOW_ZERO = 0.02
_LETTER_INCHES = 0.075
"""The width of a letter of a panel's title, with some room."""
_LETTERS_BESIDE_CASES = 30
_MOST_LETTERS = 70
"""Of the words and numbers beside two panels, which leave half of a page's width to the panels."""


def matplotlib_figure(figure: Figure, size: tuple[float, float] | None = None, columns: int | None = None) -> Any:
    """Return `figure` as a ``matplotlib.figure.Figure`` of no window: notebooks show it, programs save it.

    Parameters
    ----------
    size
        Width and height in inches; default: the width of a column or page of a paper, and as high as needed.
    columns
        How many panels stand beside each other.
    """
    # matplotlib's own hints are partial: its settings and figures are untyped here.
    matplotlib: Any = importlib.import_module("matplotlib")
    made: Any = importlib.import_module("matplotlib.figure")

    with matplotlib.rc_context(_SETTINGS):
        count = len(figure.panels)
        columns = min(count, columns or _columns(figure))
        rows = -(-count // columns)
        drawn = made.Figure(figsize=size or _size(figure, rows, columns), layout="constrained")
        letters = _LETTERS_BESIDE_CASES if figure.cases else int(drawn.get_figwidth() / columns / _LETTER_INCHES)
        own_axes = any(panel.y_top is not None for panel in figure.panels)
        is_lines = not figure.cases and not figure.is_grid
        shared = {
            "sharex": is_lines or (not own_axes and not figure.is_grid),
            "sharey": bool(figure.cases) or (is_lines and not own_axes),
        }
        axes = drawn.subplots(rows, columns, squeeze=False, **shared)
        for place, panel in enumerate(figure.panels):
            axis = axes[place // columns][place % columns]
            if panel.grid is not None:
                draw_grid(axis, panel.grid)
            elif figure.cases:
                draw_cases(axis, figure, panel)
            else:
                _draw_panel(axis, figure, place)
            axis.set_title(
                textwrap.fill(panel.title.replace(" %", "\N{NO-BREAK SPACE}%"), letters), fontsize=8, loc="left"
            )
        for place in range(count, rows * columns):
            axes[place // columns][place % columns].set_visible(False)
        for place in range(count):
            _title_axes(axes[place // columns][place % columns], figure, place, columns)
        _legend(drawn, axes, figure)
        return drawn


def _columns(figure: Figure) -> int:
    """How many panels stand beside each other, so that their words have room."""
    if figure.is_grid:
        widest = max(len(panel.grid.columns) for panel in figure.panels if panel.grid is not None)
        return 1 if widest > _MOST_IN_A_ROW else 2
    if figure.cases:
        words = max(min(len(word), WIDEST) for word in figure.cases)
        numbers = max((len(text) for panel in figure.panels for text in panel.numbers.values()), default=0)
        return 2 if words + 2 * numbers < _MOST_LETTERS else 1
    return 3


def _size(figure: Figure, rows: int, columns: int) -> tuple[float, float]:
    width = _COLUMN_INCHES if columns == 1 else _PAGE_INCHES
    if figure.is_grid:
        grids = [panel.grid for panel in figure.panels if panel.grid is not None]
        return _PAGE_INCHES if columns > 1 else max(grid_inches(one)[0] for one in grids), rows * max(
            grid_inches(one)[1] for one in grids
        )
    if figure.cases:
        return max(width, 5.0), rows * (row_inches(figure) * len(figure.cases) + 0.75) + 0.25
    names = {line.shown for panel in figure.panels for line in panel.lines}
    return max(width, 5.5) if len(names) > _MOST_IN_A_ROW else width, 2.3 * rows + 0.3


def _title_axes(axis: Any, figure: Figure, place: int, columns: int) -> None:
    """Name the axes where they are not named by a neighbour."""
    is_last = place + columns >= len(figure.panels)
    if is_last and not figure.is_grid:
        axis.tick_params(axis="x", labelbottom=True)
    if figure.is_grid:
        axis.set_xlabel(figure.y_title, loc="right", fontsize=7)
    elif figure.cases:
        axis.set_xlabel(figure.y_title if is_last or figure.panels[place].y_top is not None else "")
    else:
        axis.set_ylabel(figure.y_title if place % columns == 0 else "")
        axis.set_xlabel(figure.x_title if is_last else "")


def save_figure(drawn: Any, path: Path) -> None:
    """Write a matplotlib figure to `path`, whose ending says in which form; the same results give the same bytes."""
    matplotlib: Any = importlib.import_module("matplotlib")
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:], {})
    with matplotlib.rc_context(_SETTINGS):
        drawn.savefig(path, dpi=200, metadata=metadata)


def draw_figure(figure: Figure, folder: Path) -> list[Path]:
    """Draw `figure` into `folder` as `NAME.svg`, `NAME.pdf` and `NAME.png`."""
    drawn = matplotlib_figure(figure)
    paths = [folder / f"{figure.name}.{form}" for form in FORMATS]
    for path in paths:
        save_figure(drawn, path)
    return paths


def _draw_panel(axis: Any, figure: Figure, place: int) -> None:
    panel = figure.panels[place]
    for number, line in enumerate(panel.lines):
        colour = colour_of(line.label, figure.labels)
        if line.has_band:
            axis.fill_between(line.time_s, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        style = _STYLES[dash_of(line.label)]
        # A line on which others lie is seen on both sides of them.
        width = _LINE + _WIDER * sum(_lies_on(other, line) for other in panel.lines[number + 1 :])
        axis.plot(line.time_s, line.mean, color=colour, linestyle=style, linewidth=width, label=line.shown)
    top = panel.y_top or figure.y_top
    for time_s, words in figure.moments:
        axis.axvline(time_s, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        # A blank before the words would be lost in SVG.
        axis.annotate(
            words, (time_s, top), xytext=(3, 0), textcoords="offset points", fontsize=7, color="#666666", va="top"
        ).set_in_layout(False)
    end_axis(axis, "x", figure.end_low, figure.end_s, figure.end_log, figure.end_zero)
    low = panel.y_low if panel.y_low is not None else figure.y_low
    # A line of zeros is to be seen beside the axis.
    end_axis(axis, "y", -_BELOW_ZERO * top if low == 0 and not figure.log else low, top, figure.log)
    axis.grid(axis="y", color="#dddddd", linewidth=0.5)
    axis.set_axisbelow(True)


def _lies_on(line: Line, other: Line) -> bool:
    """True if half of the points of `line` and more are those of `other`, on both axes."""
    if line.mean.size != other.mean.size:
        return False
    alike = np.isclose(line.mean, other.mean, rtol=0.01) & np.isclose(line.time_s, other.time_s, rtol=0.01)
    return bool(alike.mean() >= 0.5)


def _legend(drawn: Any, axes: Any, figure: Figure) -> None:
    """One legend of all panels: above them, or beside them where it has many names."""
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        names = list(handles)
        many = len(names) > _MOST_IN_A_ROW or sum(map(len, names)) > 25 * max(2, len(figure.panels))
        place = {"loc": "outside right upper"} if many else {"loc": "outside upper center", "ncols": len(names)}
        legend = drawn.legend([handles[name] for name in names], names, frameon=False, fontsize=8, **place)
        for line in legend.get_lines():
            line.set_linewidth(_LINE)
