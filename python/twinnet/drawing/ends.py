"""What stands at the ends of links in a picture: port numbers of switches on the line, addresses of routers beside it.

Each text has the first of its places where nothing else is, and is left out where there is none: texts on one another
could not be read. Where a port number has none, all those of its switch are left out, for some would look like all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinnet.drawing.labels import Side, label_side
from twinnet.drawing.placing import Place

if TYPE_CHECKING:
    from twinnet.drawing.picture import DrawnLink

__all__ = ["Box", "ends_of"]

# Figures and letters of addresses do not go below their line.
_CHARACTER, _HEIGHT = 4.8, 6.4
_ROOM = 0.8
_MOST_LINKS = 200
"""Of more links, numbers would be specks."""
_STEPS = range(0, 60, 4)
_OUTWARD: Mapping[Side, Place] = {"above": (0.0, 1.0), "left": (-1.0, 0.0), "right": (1.0, 0.0)}
"""Below lines whose labels are above, and on the side of the label elsewhere."""


@dataclass(frozen=True)
class Box:
    """A rectangle of a picture by its middle and half of its size."""

    x: float
    y: float
    half_width: float
    half_height: float

    def meets(self, other: Box) -> bool:
        """Return whether the two have a point in common."""
        across = abs(self.x - other.x) < self.half_width + other.half_width
        return across and abs(self.y - other.y) < self.half_height + other.half_height

    def is_crossed(self, one: Place, other: Place) -> bool:
        """Return whether the line between two points passes through."""
        first, last = 0.0, 1.0
        for start, end, middle, half in (
            (one[0], other[0], self.x, self.half_width),
            (one[1], other[1], self.y, self.half_height),
        ):
            if start == end:
                if abs(start - middle) >= half:
                    return False
                continue
            into, out = sorted(((middle - half - start) / (end - start), (middle + half - start) / (end - start)))
            first, last = max(first, into), min(last, out)
        return first < last


def ends_of(
    links: Sequence[DrawnLink],
    places: Mapping[str, Place],
    nodes: Mapping[str, Box],
    taken: Iterable[Box],
    middle: float,
) -> list[tuple[str, float, float]]:
    """Return the texts at the ends of `links` that have room, each with the middle of its place.

    Parameters
    ----------
    links
        The links.
    places
        Where the nodes stand, in units of a text of size 8.
    nodes
        The room that each node takes.
    taken
        Where other texts stand.
    middle
        The middle of the picture, from left to right.
    """
    if len(links) > _MOST_LINKS:
        return []
    busy = [*nodes.values(), *taken]
    found: list[tuple[str, str, float, float]] = []
    full: set[str] = set()
    for index, link in enumerate(links):
        for text, near, far in zip(link.ends, (link.a, link.b), (link.b, link.a), strict=True):
            if not text or near in full or places[near] == places[far]:
                continue
            others = [(places[one.a], places[one.b]) for place, one in enumerate(links) if place != index]
            outward = _OUTWARD[label_side(places[near], places[far], middle)]
            for box in _candidates(text, places[near], places[far], nodes[near], outward):
                # Lines that are close together at their node pass close by the figure of a number.
                shape = Box(box.x, box.y, box.half_width / 2, box.half_height / 2) if text.isdecimal() else box
                crossed = any(shape.is_crossed(*other) for other in others)
                if not crossed and not any(box.meets(other) for other in busy):
                    busy.append(box)
                    found.append((near, text, box.x, box.y))
                    break
            else:
                full |= {near} if text.isdecimal() else set()
    return [(text, x, y) for node, text, x, y in found if node not in full]


def _candidates(text: str, near: Place, far: Place, node: Box, outward: Place) -> Iterable[Box]:
    """The places of `text` at the end `near` of a link, the best first: near the node, and `outward` of the line."""
    length = math.dist(near, far)
    along = ((far[0] - near[0]) / length, (far[1] - near[1]) / length)
    across = (-along[1], along[0])
    if across[0] * outward[0] + across[1] * outward[1] < 0:
        across = (along[1], -along[0])
    half = (_CHARACTER * len(text) / 2 + _ROOM, _HEIGHT / 2 + _ROOM)
    edge = min(
        node.half_width / abs(along[0]) if along[0] else math.inf,
        node.half_height / abs(along[1]) if along[1] else math.inf,
    )
    # A number stands on its line; a longer text would hide that.
    clear = 0.0 if text.isdecimal() else abs(across[0]) * half[0] + abs(across[1]) * half[1] + 1.5
    for step in _STEPS:
        away = edge + min(half) + step
        if away > length * (0.5 if text.isdecimal() else 0.7):
            return
        # In the end a line of text farther out.
        for off in (clear, -clear, clear + 2 * half[1]) if clear else (0.0,):
            x, y = (near[axis] + along[axis] * away + across[axis] * off for axis in (0, 1))
            yield Box(x, y, *half)
