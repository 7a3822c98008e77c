"""Figures for the page: data and layout of plotly, drawn in the reader's browser by the copy that the page carries."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterable
from typing import Any

from twinnet.report.colours import colour_of, dash_of
from twinnet.report.panels import Figure, Line, Panel

__all__ = ["plotly_source", "script_json", "traces_of_panel"]


def plotly_source() -> str:
    """The source of plotly.js, to be put into the page once."""
    # plotly carries no type hints.
    offline: Any = importlib.import_module("plotly.offline")
    return offline.get_plotlyjs().replace("</script", "<\\/script")


def script_json(value: Any) -> str:
    """`value` as JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(value) else round(float(value), 6) for value in values]


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
        "height": 340,
        "margin": {"l": 56, "r": 12, "t": 8, "b": 44},
        "xaxis": _x_axis(figure),
        "yaxis": {
            "title": {"text": figure.y_title},
            "range": [0, panel.y_top or figure.y_top],
            "zeroline": False,
        },
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
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
    if line.has_band:
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.2)"}
        traces.append(common | edge | {"y": _numbers(line.low)})
        traces.append(common | edge | fill | {"y": _numbers(line.high)})
    bounds = list(zip(_numbers(line.low), _numbers(line.high), strict=True))
    hover = "%{y:.4~g}" + (" [%{customdata[0]:.4~g}, %{customdata[1]:.4~g}]" if line.has_band else "")
    traces.append(
        common
        | {"y": _numbers(line.mean), "name": line.label, "mode": "lines+markers", "customdata": bounds}
        | {
            "marker": {"size": 8 if figure.cases else 4, "color": colour},
            "line": {"color": colour, "width": 2, "dash": dash_of(line.label)},
        }
        | {"hovertemplate": hover}
    )
    return traces
