"""A picture as SVG, in colours that follow the page around it: light, dark, print."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

    from twinnet.drawing.picture import Picture

__all__ = ["svg_of"]

_CELL_X, _CELL_Y = 84.0, 84.0
_MARGIN_X, _MARGIN_Y = 56.0, 40.0


@functools.cache
def _template() -> Template:
    from jinja2 import Environment

    # Names come from files that others may have written: nothing in them may become markup.
    environment = Environment(autoescape=True, trim_blocks=False)
    return environment.from_string((Path(__file__).parent / "network.svg.jinja").read_text(encoding="utf-8"))


def svg_of(picture: Picture) -> str:
    """Return `picture` as an SVG document that can stand in a page or alone."""

    def at(place: tuple[float, float]) -> tuple[float, float]:
        return round(place[0] * _CELL_X + _MARGIN_X, 1), round(place[1] * _CELL_Y + _MARGIN_Y, 1)

    places = {node.name: at(node.place) for node in picture.nodes}
    nodes = [
        {"name": node.name, "kind": node.kind, "note": node.note, "x": places[node.name][0], "y": places[node.name][1]}
        for node in picture.nodes
    ]
    links: list[dict[str, Any]] = []
    for link in picture.links:
        (x1, y1), (x2, y2) = places[link.a], places[link.b]
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "x": (x1 + x2) / 2, "y": (y1 + y2) / 2 - 4}
        links.append(ends | {"label": link.label, "up": link.up})
    width = round(max(x for x, _ in places.values()) + _MARGIN_X, 1)
    height = round(max(y for _, y in places.values()) + _MARGIN_Y, 1)
    return _template().render(title=picture.caption, nodes=nodes, links=links, width=width, height=height)
