"""Figures for the page: data and layout of plotly, drawn in the reader's browser by the copy that the page carries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from twinnet.report.colours import colour_of, dash_of
from twinnet.report.panels import Figure, Line, Panel

__all__ = ["traces_of_panel"]

_MOST_TOLD = 120
"""Of longer lines the bounds are drawn, and not told beside the pointer as well."""


def _numbers(values: Iterable[float]) -> list[float | None]:
    # Five digits are more than a figure shows, and keep the page small.
    return [None if math.isnan(value) else float(f"{value:.5g}") for value in values]


def traces_of_panel(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Data and layout of one panel; colours of text and grid are left to the page, which knows light from dark."""
    data: list[dict[str, Any]] = []
    for line in panel.lines:
        data += _traces(figure, line)
    shapes = [
        {"type": "line", "x0": time, "x1": time, "y0": 0, "y1": 1, "yref": "paper"}
        | {"line": {"color": "#888", "width": 1, "dash": "dash"}}
        for time, _ in figure.moments
    ]
    annotations = [
        {"x": time, "y": 1, "yref": "paper", "text": words, "showarrow": False, "xanchor": "left", "yanchor": "top"}
        | {"font": {"size": 11}, "xshift": 4}
        for time, words in figure.moments
    ]
    layout = {
        "height": 300 + min(150, 5 * max(map(len, figure.cases), default=0)),
        "margin": {"l": 60, "r": 16, "t": 12, "b": 52},
        "xaxis": _x_axis(figure),
        "yaxis": {
            "title": {"text": figure.y_title},
            "range": [0, panel.y_top or figure.y_top],
            "zeroline": False,
        },
        "hovermode": "closest" if figure.points else "x unified",
        "showlegend": len(panel.lines) > 1,
        "legend": {"orientation": "h", "y": 1.03, "yanchor": "bottom", "x": 0},
        "shapes": shapes,
        "annotations": annotations,
    }
    return {"data": data, "layout": layout}


def _x_axis(figure: Figure) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": figure.x_title}, "range": [0, figure.end_s], "zeroline": False}
    if figure.cases:
        axis |= {"range": [-0.5, figure.end_s], "tickvals": list(range(len(figure.cases))), "automargin": True}
        axis |= {"ticktext": list(figure.cases), "title": {"text": ""}}
    return axis


def _traces(figure: Figure, line: Line) -> list[dict[str, Any]]:
    colour = colour_of(line.label, figure.labels)
    time = _numbers(line.time_s)
    common = {"type": "scatter", "x": time, "legendgroup": line.label}
    traces: list[dict[str, Any]] = []
    if figure.points:
        return [_points(figure, line, colour)]
    if line.has_band:
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.2)"}
        traces.append(common | edge | {"y": _numbers(line.low)})
        traces.append(common | edge | fill | {"y": _numbers(line.high)})
    told = line.has_band and line.mean.size <= _MOST_TOLD
    bounds = list(zip(_numbers(line.low), _numbers(line.high), strict=True)) if told else []
    hover = "%{y:.4~g}" + (" [%{customdata[0]:.4~g}, %{customdata[1]:.4~g}]" if told else "")
    traces.append(
        common
        | {
            "y": _numbers(line.mean),
            "name": line.shown,
            "mode": "lines+markers" if figure.cases else "lines",
            "customdata": bounds,
        }
        | {
            "marker": {"size": 8 if figure.cases else 4, "color": colour},
            "line": {"color": colour, "width": 2, "dash": dash_of(line.label)},
        }
        | {"hovertemplate": hover}
    )
    return traces


def _points(figure: Figure, line: Line, colour: str) -> dict[str, Any]:
    """Values that stand alone, each with its interval; those of several lines beside each other."""
    labels = figure.labels
    shift = 0.5 * (labels.index(line.label) - (len(labels) - 1) / 2) / max(len(labels), 2)
    mean, low, high = (_numbers(values) for values in (line.mean, line.low, line.high))
    known = list(zip(mean, low, high, strict=True))
    above = [0 if m is None or h is None else h - m for m, _, h in known]
    below = [0 if m is None or lo is None else m - lo for m, lo, _ in known]
    bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "color": colour, "thickness": 1.5}
    return {
        "type": "scatter",
        "x": [None if place is None else place + shift for place in _numbers(line.time_s)],
        "y": mean,
        "name": line.shown,
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 8, "color": colour},
        "error_y": bars,
        "customdata": [[lo, hi] for _, lo, hi in known],
        "hovertemplate": "%{y:.4~g}" + (" [%{customdata[0]:.4~g}, %{customdata[1]:.4~g}]" if line.has_band else ""),
    }
