"""Figures of two sets of captures side by side: each quantity over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinnet.errors import BadFile
from twinnet.report.drawn import draw_figure
from twinnet.report.panels import Figure, Line, Panel
from twinnet.results.capture_comparison import Quantity

__all__ = ["draw_comparison"]

_POINTS = 2000
"""More points than a line of a printed figure shows are drawn as means of neighbours."""


def draw_comparison(
    first: Sequence[Quantity], second: Sequence[Quantity], labels: tuple[str, str], folder: Path
) -> list[Path]:
    """Draw a figure of each quantity that both sets have into `folder` (SVG, PDF, PNG); return the files.

    A set of several captures shows the first of them in full and names how many there are.

    Raises
    ------
    BadFile
        The folder cannot be written to.
    """
    others = {one.name: one for one in second}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            path
            for one in first
            if one.name in others
            for path in draw_figure(_figure(one, others[one.name], labels), folder)
        ]
    except OSError as error:
        raise BadFile(f"figures cannot be written to {folder}: {error.strerror or error}", "choose --out") from error


def _figure(first: Quantity, second: Quantity, labels: tuple[str, str]) -> Figure:
    lines = (_line(first, labels[0]), _line(second, labels[1]))
    top = max(float(line.mean.max(initial=0.0)) for line in lines) * 1.08 or 1.0
    end = max(float(line.time_s.max(initial=0.0)) for line in lines) or 1.0
    title = first.name.capitalize()
    caption = f"{title} over time: {labels[0]} and {labels[1]}."
    return Figure(first.name, title, caption, first.unit, top, end, (Panel("", lines),), ())


def _line(quantity: Quantity, label: str) -> Line:
    time_s, values = quantity.series[0]
    if time_s.size > _POINTS:
        groups = np.array_split(np.arange(time_s.size), _POINTS)
        time_s = np.array([time_s[group].mean() for group in groups])
        values = np.array([values[group].mean() for group in groups])
    nothing = np.full(values.size, np.nan)
    count = len(quantity.series)
    name = label if count == 1 else f"{label} (1 of {count})"
    return Line(name, time_s, values, nothing, nothing)
