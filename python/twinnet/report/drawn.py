"""Figures as files for papers: SVG, PDF and PNG, drawn by matplotlib."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from twinnet.report.colours import colour_of, dash_of
from twinnet.report.panels import Figure, Line

__all__ = ["FORMATS", "draw_figure", "matplotlib_figure"]

FORMATS = ("svg", "pdf", "png")
_COLUMN_INCHES, _PAGE_INCHES = 3.5, 7.16
"""The width of a column and of a page of a paper in two columns."""
_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # The same results give the same bytes.
    "svg.hashsalt": "twinnet",
}


def matplotlib_figure(figure: Figure) -> Any:
    """Return `figure` as a ``matplotlib.figure.Figure`` of no window: notebooks show it, programs save it."""
    # matplotlib's own hints are partial: its settings and figures are untyped here.
    matplotlib: Any = importlib.import_module("matplotlib")
    made: Any = importlib.import_module("matplotlib.figure")

    with matplotlib.rc_context(_SETTINGS):
        count = len(figure.panels)
        columns = min(count, 3)
        rows = -(-count // columns)
        tall = 0.5 if figure.cases else 0.0
        drawn = made.Figure(
            figsize=(_COLUMN_INCHES if columns == 1 else _PAGE_INCHES, (2.3 + tall) * rows + 0.3),
            layout="constrained",
        )
        axes = drawn.subplots(
            rows, columns, sharex=True, sharey=all(panel.y_top is None for panel in figure.panels), squeeze=False
        )
        for place, panel in enumerate(figure.panels):
            _draw_panel(axes[place // columns][place % columns], figure, place)
            axes[place // columns][place % columns].set_title(panel.title, fontsize=8, loc="left")
        for place in range(count, rows * columns):
            axes[place // columns][place % columns].set_visible(False)
        for row in axes:
            row[0].set_ylabel(figure.y_title)
        _legend(drawn, axes)
        for axis in axes[-1]:
            axis.set_xlabel(figure.x_title)
        return drawn


def draw_figure(figure: Figure, folder: Path) -> list[Path]:
    """Draw `figure` into `folder` as `NAME.svg`, `NAME.pdf` and `NAME.png`."""
    matplotlib: Any = importlib.import_module("matplotlib")
    drawn = matplotlib_figure(figure)
    paths = [folder / f"{figure.name}.{form}" for form in FORMATS]
    with matplotlib.rc_context(_SETTINGS):
        for path in paths:
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(path.suffix[1:], {})
            drawn.savefig(path, dpi=200, metadata=metadata)
    return paths


def _draw_panel(axis: Any, figure: Figure, place: int) -> None:
    for line in figure.panels[place].lines:
        colour = colour_of(line.label, figure.labels)
        if line.has_band:
            axis.fill_between(line.time_s, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        style = _STYLES[dash_of(line.label)]
        marker = {"marker": "o", "markersize": 4} if figure.cases else {}
        if figure.points:
            _draw_points(axis, figure, line, colour)
            continue
        axis.plot(line.time_s, line.mean, color=colour, linestyle=style, linewidth=1.3, label=line.shown, **marker)
    for time_s, words in figure.moments:
        axis.axvline(time_s, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        axis.text(time_s, figure.y_top, f" {words}", fontsize=7, color="#666666", va="top")
    axis.set_xlim(-0.5 if figure.cases else 0, figure.end_s)
    axis.set_ylim(0, figure.panels[place].y_top or figure.y_top)
    if figure.cases:
        axis.set_xticks(range(len(figure.cases)), figure.cases, rotation=30, ha="right", fontsize=7)
    axis.grid(axis="y", color="#dddddd", linewidth=0.5)
    axis.set_axisbelow(True)


def _draw_points(axis: Any, figure: Figure, line: Line, colour: str) -> None:
    """Values that stand alone, each with its interval; those of several lines beside each other."""
    labels = figure.labels
    shift = 0.5 * (labels.index(line.label) - (len(labels) - 1) / 2) / max(len(labels), 2)
    bars = None
    if line.has_band:
        bars = np.nan_to_num(np.array([line.mean - line.low, line.high - line.mean]).clip(min=0.0))
    look = {"fmt": "o", "markersize": 3.5, "capsize": 2, "linewidth": 1.0, "color": colour}
    axis.errorbar(line.time_s + shift, line.mean, yerr=bars, label=line.shown, **look)


def _legend(drawn: Any, axes: Any) -> None:
    """One legend of all panels, above them, where it covers nothing."""
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        names = list(handles)
        settings = {"loc": "outside upper center", "ncols": min(len(names), 4), "frameon": False, "fontsize": 8}
        drawn.legend([handles[name] for name in names], names, **settings)
