"""A picture by matplotlib: on axes of a figure, as PDF and PNG."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing.ends import Box, ends_of
from twinnet.drawing.labels import hangs, label_lines, label_side, slant

if TYPE_CHECKING:
    from twinnet.drawing.picture import Picture

__all__ = ["plot", "save_plot"]

_BOXES = {
    "switch": {"facecolor": "#0b5cad", "edgecolor": "#0b5cad", "boxstyle": "round,pad=0.4"},
    "router": {"facecolor": "#8a4b08", "edgecolor": "#8a4b08", "boxstyle": "round,pad=0.4,rounding_size=0.9"},
    "host": {"facecolor": "#e8f1fa", "edgecolor": "#0b5cad", "boxstyle": "round,pad=0.35"},
}
_CONTROLLER = {"facecolor": "white", "edgecolor": "#1c1f23", "boxstyle": "square,pad=0.35"}
_OTHER = {"facecolor": "white", "edgecolor": "#5a6370", "boxstyle": "round,pad=0.35", "linestyle": "--"}
_ALIGNED = {"above": "center", "left": "right", "right": "left"}
_BESIDE = {"above": 0.0, "left": -1.0, "right": 1.0}
# Of a cell: between a line and its label, and half the height of a line of a label.
_CLEAR, _HALF_LINE = 0.08, 0.09
_CELL, _LETTER = 84.0, 0.06


def plot(picture: Picture, axes: Any = None) -> Any:
    """Draw `picture` on `axes`, or on new ones, and return them."""
    # matplotlib's own hints are partial: its axes are untyped here.
    if axes is None:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
        _, axes = pyplot.subplots(figsize=_size(picture), layout="constrained")
    places = {node.name: node.place for node in picture.nodes}
    middle = (min(x for x, _ in places.values()) + max(x for x, _ in places.values())) / 2
    taken: list[Box] = []
    for link in picture.links:
        (x1, y1), (x2, y2) = places[link.a], places[link.b]
        axes.plot([x1, x2], [y1, y2], color="#8a94a1", linewidth=1.2, linestyle="-" if link.up else "--", zorder=1)
        if link.label:
            side = label_side(places[link.a], places[link.b], middle)
            place = {"ha": _ALIGNED[side], "va": "bottom" if side == "above" else "center", "zorder": 2}
            lines = label_lines(link.label)
            clear = _CLEAR + _HALF_LINE * len(lines) * slant(places[link.a], places[link.b])
            x, y = (x1 + x2) / 2 + _BESIDE[side] * clear, (y1 + y2) / 2 - (0.06 if side == "above" else 0)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            axes.text(x, y, "\n".join(lines), fontsize=7, bbox=box, parse_math=False, **place)
            wide, high = _LETTER * max(map(len, lines)) / 2, _HALF_LINE * len(lines)
            taken.append(_box(x + _BESIDE[side] * wide, y - (high if side == "above" else 0), wide, high))
    for node in picture.nodes:
        x, y = node.place
        colour = "white" if node.kind in ("switch", "router") else "#1c1f23"
        box = _BOXES.get(node.kind, _OTHER)
        axes.text(
            x, y, node.name, fontsize=8, ha="center", va="center", color=colour, bbox=box, zorder=3, parse_math=False
        )
        if node.note:
            above = hangs(node.name, picture.links, places)
            axes.text(
                x,
                y - 0.28 if above else y + 0.32,
                node.note,
                fontsize=6,
                ha="center",
                va="center",
                color="#5a6370",
                zorder=3,
                parse_math=False,
            )
            high = -0.28 if above else 0.32
            taken.append(_box(x, y + high, _LETTER * len(node.note) / 2, 0.06))
    _draw_ends(picture, axes, taken, middle)
    for one in picture.controllers:
        x, y = one.place
        for end in (places[switch] for switch in one.switches):
            axes.plot([x, end[0]], [y, end[1]], color="#5a6370", linewidth=0.8, linestyle=":", zorder=0)
        style = {"ha": "center", "va": "center", "zorder": 3, "parse_math": False}
        axes.text(x, y, one.name, fontsize=8, color="#1c1f23", bbox=_CONTROLLER, **style)
        axes.text(x, y - 0.28, one.note, fontsize=6, color="#5a6370", **style)
    xs, ys = _reach(picture)
    axes.set_xlim(min(xs) - 0.7, max(xs) + 0.7)
    axes.set_ylim(max(ys) + 0.6, min(ys) - 0.5)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return axes


def _draw_ends(picture: Picture, axes: Any, taken: list[Box], middle: float) -> None:
    """Write at the ends of links what stands there; a cell is as many units of a text as in SVG."""
    places = {node.name: (node.place[0] * _CELL, node.place[1] * _CELL) for node in picture.nodes}
    nodes = {node.name: _box(*node.place, max(0.29, 0.045 * len(node.name) + 0.07), 0.17) for node in picture.nodes}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
    style = {"fontsize": 5.5, "ha": "center", "va": "center", "color": "#5a6370", "bbox": box, "zorder": 2}
    for text, x, y in ends_of(picture.links, places, nodes, taken, middle * _CELL):
        axes.text(x / _CELL, y / _CELL, text, parse_math=False, **style)


def _box(x: float, y: float, half_width: float, half_height: float) -> Box:
    return Box(x * _CELL, y * _CELL, half_width * _CELL, half_height * _CELL)


def _reach(picture: Picture) -> tuple[list[float], list[float]]:
    """The places of all that is drawn, in both directions."""
    places = [one.place for one in (*picture.nodes, *picture.controllers)]
    return [x for x, _ in places], [y for _, y in places]


def _size(picture: Picture) -> tuple[float, float]:
    xs, ys = _reach(picture)
    return min(40.0, 0.75 * (max(xs) - min(xs)) + 1.4), min(40.0, 0.75 * (max(ys) - min(ys)) + 1.2)


def save_plot(picture: Picture, path: Path, form: str) -> None:
    """Write `picture` to `path` as PNG or PDF; the same picture gives the same bytes."""
    figures: Any = importlib.import_module("matplotlib.figure")
    figure = figures.Figure(figsize=_size(picture), layout="constrained")
    plot(picture, figure.subplots())
    figure.savefig(path, format=form, dpi=200, metadata={"CreationDate": None} if form == "pdf" else {})
