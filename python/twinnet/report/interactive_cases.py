"""Figures over cases for the page: a row for each case, with its words on the left and its number on the right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from twinnet.report.axis_ticks import BESIDE_ZERO, log_ticks, log_words, with_zero
from twinnet.report.colours import colour_of
from twinnet.report.level_words import wrapped
from twinnet.report.panels import Figure, Line, Panel, Vector

__all__ = ["axis_range", "numbers", "traces_of_cases"]

_ROW, _ROW_OF_TWO = 24, 34
"""The height of a row in pixels, and of rows whose words take two lines."""
_OF_A_LETTER = 6.6
"""About how many pixels a letter of a number takes."""
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross")


def numbers(values: Iterable[float]) -> list[float | None]:
    """Return `values` with the five digits that a figure shows at most, which keep the page small; none for what is
    not finite."""
    return [None if not math.isfinite(value) else float(f"{value:.5g}") for value in values]


def axis_range(low: float, high: float, log: bool, zero: bool = False) -> dict[str, Any]:
    """Return the ends of an axis of plotly, and the ticks of a logarithmic one; with `zero` its beginning is zero."""
    if not log:
        return {"range": [low, high]}
    ticks = log_ticks(low, high)
    ticks, words = with_zero(ticks, low, high) if zero else (ticks, log_words(ticks))
    ends = [math.log10(low / BESIDE_ZERO if zero else low), math.log10(high)]
    return {"type": "log", "range": ends, "tickvals": ticks, "ticktext": words}


def traces_of_cases(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Data and layout of one panel whose cases stand below each other."""
    words = [wrapped(word, "<br>") for word in figure.cases]
    row = _ROW_OF_TWO if panel.shares_rows or any("<br>" in word for word in words) else _ROW
    at = [place for place in range(len(words)) if place not in figure.headings]
    shared = panel.shares_rows
    low, high = (panel.y_low if panel.y_low is not None else figure.y_low), (panel.y_top or figure.y_top)
    data: list[dict[str, Any]] = []
    named: set[str] = set()
    for line in panel.in_rows():
        # The words of a row are its name; the legend tells symbols apart.
        in_legend = (shared or line.hollow or not figure.headings) and line.shown not in named
        named |= {line.shown} if in_legend else set()
        data.append(
            _points(figure, line, line.at_least(low) if figure.log else line.mean, shared) | {"showlegend": in_legend}
        )
    axis = {"title": {"text": figure.y_title}, "zeroline": bool(low < 0)} | axis_range(
        low, high, figure.log, figure.has_zero(panel)
    )
    texts = [
        {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 8, "y": place, "text": text, "showarrow": False}
        | {"font": {"size": 11}}
        for place, text in panel.numbers.items()
    ]
    has_legend = shared or any(line.hollow for line in panel.lines)
    longest = max((len(text) for text in panel.numbers.values()), default=0)
    return {
        "data": data,
        "layout": {
            "height": 70 + row * len(words) + (26 if has_legend else 0),
            "margin": {"l": 10, "r": 16 + round(_OF_A_LETTER * longest), "t": 8, "b": 48},
            "xaxis": axis,
            "yaxis": {
                "range": [len(words) - 0.5, -0.5],
                "tickvals": list(range(len(words))),
                "ticktext": [word if place in at else f"<b>{word}</b>" for place, word in enumerate(words)],
                "automargin": True,
                "zeroline": False,
                "showgrid": False,
            },
            "hovermode": "closest",
            "showlegend": has_legend,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "shapes": [],
            "annotations": texts,
        },
    }


def _points(figure: Figure, line: Line, drawn: Vector, shared: bool) -> dict[str, Any]:
    """Values that stand alone, each with its interval."""
    colour = colour_of(line.label, figure.labels)
    mean, low, high = (numbers(values) for values in (drawn, line.low, line.high))
    known = list(zip(mean, low, high, strict=True))
    above = [0 if m is None or h is None else h - m for m, _, h in known]
    below = [0 if m is None or lo is None else m - lo for m, lo, _ in known]
    bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "color": colour, "thickness": 1.5}
    symbol = _SYMBOLS[figure.labels.index(line.label) % len(_SYMBOLS)] if shared else "circle"
    return {
        "type": "scatter",
        "x": mean,
        "y": numbers(line.time_s),
        "name": line.shown,
        "legendgroup": line.shown,
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 9, "color": colour, "symbol": "diamond-open" if line.hollow else symbol}
        | ({"line": {"width": 2}} if line.hollow else {}),
        "error_x": bars if line.has_band else {"visible": False},
        "customdata": [[lo, hi] for _, lo, hi in known],
        "hovertemplate": "%{x:.4~g}" + (" [%{customdata[0]:.4~g}, %{customdata[1]:.4~g}]" if line.has_band else ""),
    }
