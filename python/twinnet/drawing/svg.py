"""A picture as SVG, in colours that follow the page around it: light, dark, print."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing.ends import Box, ends_of
from twinnet.drawing.labels import hangs, label_lines, label_side, slant
from twinnet.drawing.placing import Place
from twinnet.shown_text import for_templates

if TYPE_CHECKING:
    from jinja2 import Template

    from twinnet.drawing.picture import Picture

__all__ = ["svg_of"]

_CELL_X, _CELL_Y = 84.0, 84.0
_MARGIN_X, _MARGIN_Y = 56.0, 40.0
_LINE_HEIGHT = 12.0
_SWITCH_WIDTH, _HOST_WIDTH = 48.0, 38.0
_NAME_CHARACTER = 7.0
_HALF_HEIGHT = 14.0
# From a label's place right above its link to one that is clear of the nodes at its ends.
_ABOVE_NODES, _BELOW_NODES = -12.0, 30.0
# A generous width of a character in the font of labels, whose size is 10.
_CHARACTER = 5.4
_ANCHORS = {"above": "middle", "left": "end", "right": "start"}


@functools.cache
def _template() -> Template:
    from jinja2 import Environment

    # Names come from files that others may have written: nothing in them may become markup.
    environment = Environment(autoescape=True, trim_blocks=False, finalize=for_templates)
    return environment.from_string((Path(__file__).parent / "network.svg.jinja").read_text(encoding="utf-8"))


def svg_of(picture: Picture) -> str:
    """Return `picture` as an SVG document that can stand in a page or alone."""

    def at(place: tuple[float, float]) -> tuple[float, float]:
        return round(place[0] * _CELL_X + _MARGIN_X, 1), round(place[1] * _CELL_Y + _MARGIN_Y, 1)

    places = {node.name: at(node.place) for node in picture.nodes}
    nodes: list[dict[str, Any]] = []
    for node in picture.nodes:
        x, y = places[node.name]
        above = node.kind in ("switch", "router") or hangs(node.name, picture.links, places)
        note_y = y - 19 if above else y + 25
        # As wide as its name, and no wider than its cell.
        least = _SWITCH_WIDTH if node.kind in ("switch", "router") else _HOST_WIDTH
        wide = min(max(least, len(node.name) * _NAME_CHARACTER + 12), _CELL_X - 4)
        shown = {"name": node.name, "kind": node.kind, "note": node.note, "width": round(wide, 1)}
        shown["ends"] = _all_ends(node.name, picture)
        nodes.append(shown | {"x": x, "y": y, "left": round(x - wide / 2, 1), "note_y": note_y})
    controllers: list[dict[str, Any]] = []
    for one in picture.controllers:
        (x, y), wide = at(one.place), max(_SWITCH_WIDTH, len(one.name) * _NAME_CHARACTER + 12)
        ends = [dict(zip(("x", "y"), places[switch], strict=True)) for switch in one.switches]
        shown = {"name": one.name, "kind": "controller", "note": one.note, "width": round(wide, 1), "switches": ends}
        controllers.append(shown | {"x": x, "y": y, "left": round(x - wide / 2, 1), "note_y": y - 19})
    left, right = 0.0, max(x for x, _ in places.values()) + _MARGIN_X
    lowest = max(y for _, y in places.values())
    middle = (right / 2, (min(y for _, y in places.values()) + lowest) / 2)
    links: list[dict[str, Any]] = []
    for link in picture.links:
        (x1, y1), (x2, y2) = places[link.a], places[link.b]
        label = _label((x1, y1), (x2, y2), link.label, middle) if link.label else None
        if label is not None:
            left, right = min(left, label["from"]), max(right, label["to"])
        links.append({"x1": x1, "y1": y1, "x2": x2, "y2": y2, "label": label, "up": link.up})
    boxes = {node["name"]: Box(node["x"], node["y"], node["width"] / 2, _HALF_HEIGHT) for node in nodes}
    taken = [_room(link["label"]) for link in links if link["label"]] + [_room_of_note(one) for one in nodes]
    for one in controllers:
        reach = max(one["width"], len(one["note"]) * _CHARACTER) / 2 + 4
        left, right = min(left, one["x"] - reach), max(right, one["x"] + reach)
    found = ends_of(picture.links, places, boxes, taken, middle[0])
    ends = [(text, round(x, 1), round(y + 3, 1)) for text, x, y in found]
    left = min([left, *(x - len(text) * _CHARACTER / 2 for text, x, _ in ends)])
    right = max([right, *(x + len(text) * _CHARACTER / 2 for text, x, _ in ends)])
    top = min([0.0, *(one["y"] - _MARGIN_Y for one in controllers)])
    box = {"left": round(left, 1), "top": top, "width": round(right - left, 1), "height": lowest + _MARGIN_Y - top}
    box["height"] = round(box["height"], 1)
    drawn = {"nodes": nodes, "links": links, "ends": ends, "controllers": controllers}
    return _template().render(title=picture.caption, **drawn, **box)


def _all_ends(name: str, picture: Picture) -> str:
    """What is at the ends of the links of a node, for a closer look: not all of it may have room in the picture."""
    ends = [
        f"{text} to {other}"
        for link in picture.links
        for text, here, other in ((link.ends[0], link.a, link.b), (link.ends[1], link.b, link.a))
        if here == name and text
    ]
    return f"{name}: {', '.join(ends)}" if ends else ""


def _room(label: dict[str, Any]) -> Box:
    """The room that a link's label takes."""
    top, bottom = label["lines"][0][1] - 8, label["lines"][-1][1] + 2
    left, right = label["from"] + 4, label["to"] - 4
    return Box((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)


def _room_of_note(node: dict[str, Any]) -> Box:
    return Box(node["x"], node["note_y"] - 3, len(node["note"]) * _CHARACTER / 2, 5.0)


def _label(one: Place, other: Place, text: str, middle: Place) -> dict[str, Any]:
    """The label of a link between two points: its lines with their places, and how far it reaches."""
    lines = label_lines(text)
    side = label_side(one, other, middle[0])
    x, y = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
    width = max(map(len, lines)) * _CHARACTER
    # Above a line the last line of text has its place first; beside one the text is centred on the middle of it.
    first = (
        y - 6 - (len(lines) - 1) * _LINE_HEIGHT if side == "above" else y + 3.5 - (len(lines) - 1) * _LINE_HEIGHT / 2
    )
    if side == "above" and width > abs(other[0] - one[0]) - _SWITCH_WIDTH + _CHARACTER:
        # Wider than what is free between the two nodes: above them, or below them in the lower half of the picture.
        first += _BELOW_NODES + (len(lines) - 1) * _LINE_HEIGHT if y > middle[1] else _ABOVE_NODES
    clear = 7.0 + slant(one, other) * len(lines) * _LINE_HEIGHT / 2
    x += {"above": 0.0, "left": -clear, "right": clear}[side]
    begin = {"above": x - width / 2, "left": x - width, "right": x}[side]
    return {
        "anchor": _ANCHORS[side],
        "lines": [(round(x, 1), round(first + index * _LINE_HEIGHT, 1), line) for index, line in enumerate(lines)],
        "from": begin - 4,
        "to": begin + width + 4,
    }
