"""Figures for the page: data and layout of plotly, drawn in the reader's browser by the copy that the page carries."""

from __future__ import annotations

from typing import Any

from twinnet.report.colours import colour_of, dash_of, rgb_of
from twinnet.report.interactive_cases import axis_range, numbers, traces_of_cases
from twinnet.report.panels import Figure, Line, Panel

__all__ = ["traces_of_panel"]

_MOST_HOVERED = 120
"""Of longer lines the bounds are drawn, and not written beside the pointer as well."""
_MOST_IN_A_ROW = 4
"""Names of more lines stand below each other."""


def traces_of_panel(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Data and layout of one panel; colours of text and grid are left to the page, which knows light from dark."""
    if figure.cases:
        return traces_of_cases(figure, panel)
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
        "height": 300,
        "margin": {"l": 60, "r": 16, "t": 12, "b": 52},
        "xaxis": {"title": {"text": figure.x_title}, "zeroline": False}
        | axis_range(figure.end_low, figure.end_s, figure.end_log, figure.end_zero),
        "yaxis": {"title": {"text": figure.y_title}, "zeroline": False}
        | axis_range(panel.y_low or figure.y_low, panel.y_top or figure.y_top, figure.log),
        "hovermode": "x unified",
        "showlegend": len(panel.lines) > 1,
        "legend": {"orientation": "v", "x": 1.02, "y": 1}
        if len(panel.lines) > _MOST_IN_A_ROW
        else {"orientation": "h", "y": 1.03, "yanchor": "bottom", "x": 0},
        "shapes": shapes,
        "annotations": annotations,
    }
    return {"data": data, "layout": layout}


def _traces(figure: Figure, line: Line) -> list[dict[str, Any]]:
    colour = colour_of(line.label, figure.labels)
    time = numbers(line.time_s)
    common = {"type": "scatter", "x": time, "legendgroup": line.label}
    traces: list[dict[str, Any]] = []
    if line.has_band:
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        fill = {"fill": "tonexty", "fillcolor": "rgba({},{},{},0.2)".format(*rgb_of(colour))}
        traces.append(common | edge | {"y": numbers(line.low)})
        traces.append(common | edge | fill | {"y": numbers(line.high)})
    banded = line.has_band and line.mean.size <= _MOST_HOVERED
    bounds = list(zip(numbers(line.low), numbers(line.high), strict=True)) if banded else []
    hover = "%{y:.4~g}" + (" [%{customdata[0]:.4~g}, %{customdata[1]:.4~g}]" if banded else "")
    traces.append(
        common
        | {
            "y": numbers(line.mean),
            "name": line.shown,
            "mode": "lines",
            "customdata": bounds,
        }
        | {
            "marker": {"size": 4, "color": colour},
            "line": {"color": colour, "width": 2, "dash": dash_of(line.label)},
        }
        | {"hovertemplate": hover}
    )
    return traces
