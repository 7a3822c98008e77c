"""Positions of the nodes of a network in its picture.

Nodes that one link leads to hang from their neighbour. The rest, the core, is placed by its shape: a row, a tree,
levels by their distance from the hosts (a fat tree), or a circle (a ring, a full mesh). A core of another shape is
placed by force, with a seed: the same network has the same picture. Places are in cells: x to the right, y down.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise

__all__ = ["Neighbours", "Place", "placed"]

Place = tuple[float, float]
Neighbours = Mapping[str, Sequence[str]]

_MOST_IN_A_ROW = 16
_MOST_ACROSS = 100
"""A tree that would be wider is packed."""
_GAP = 1.0
_SEED = 1


def placed(neighbours: Neighbours, leaves_of_choice: Iterable[str] = ()) -> dict[str, Place]:
    """Return the place of each node.

    Parameters
    ----------
    neighbours
        The nodes that each node is linked with, in the order in which they are to stand.
    leaves_of_choice
        Nodes that hang from their neighbour when one link leads to them: hosts, rather than switches.
    """
    hosts = set(leaves_of_choice)
    places: dict[str, Place] = {}
    left = 0.0
    for component in _components(neighbours):
        here = _component(component, neighbours, hosts)
        least = min(x for x, _ in here.values())
        top = min(y for _, y in here.values())
        places |= {name: (x - least + left, y - top) for name, (x, y) in here.items()}
        left = max(x for x, _ in places.values()) + 1 + _GAP
    return places


def _components(neighbours: Neighbours) -> list[list[str]]:
    seen: set[str] = set()
    found: list[list[str]] = []
    for start in neighbours:
        if start in seen:
            continue
        reached = set(_distances([start], neighbours))
        seen |= reached
        found.append([name for name in neighbours if name in reached])
    return found


def _distances(starts: Iterable[str], neighbours: Neighbours) -> dict[str, int]:
    """The number of links from the nearest of `starts` to every node that is reached."""
    distances = dict.fromkeys(starts, 0)
    waiting = deque(distances)
    while waiting:
        name = waiting.popleft()
        for other in neighbours[name]:
            if other not in distances:
                distances[other] = distances[name] + 1
                waiting.append(other)
    return distances


def _component(names: Sequence[str], neighbours: Neighbours, hosts: set[str]) -> dict[str, Place]:
    core = [name for name in names if not (name in hosts and len(set(neighbours[name])) == 1)]
    if not core:
        # Two hosts and a cable.
        return {name: (2.0 * index, 0.0) for index, name in enumerate(names)}
    inside = {name: [other for other in dict.fromkeys(neighbours[name]) if other in set(core)] for name in core}
    hanging = {name: [leaf for leaf in names if leaf not in inside and name in neighbours[leaf]] for name in core}
    links = sum(map(len, inside.values())) // 2
    if links == len(core) - 1:
        is_path = len(core) > 1 and all(len(others) <= 2 for others in inside.values())
        # A path may be a tree as well, whose root was described first and has several hosts under each of its ends.
        single = all(len(leaves) <= 1 for leaves in hanging.values())
        if is_path and (len(inside[core[0]]) == 1 or len(core) % 2 == 0 or single):
            return _row(inside, hanging)
        return _tree(inside, hanging)
    bearing = [name for name in core if hanging[name]]
    levels = _distances(bearing, inside) if bearing else {}
    if len(set(levels.values())) > 1:
        return _levels(core, levels, hanging)
    if len(set(map(len, inside.values()))) > 1:
        return _by_force(inside, hanging)
    return _circle(core, hanging)


def _row(inside: Neighbours, hanging: Neighbours) -> dict[str, Place]:
    """A chain: hosts beside its ends where only these have any, else below."""
    chain = _chain(inside)
    first, last = chain[0], chain[-1]
    if all(not hanging[name] for name in chain[1:-1]) and max(len(hanging[first]), len(hanging[last])) <= 8:
        places: dict[str, Place] = {name: (2.0 * (index + 1), 0.0) for index, name in enumerate(chain)}
        for end, x in ((first, 0.0), (last, 2.0 * (len(chain) + 1))):
            for index, leaf in enumerate(hanging[end]):
                places[leaf] = (x, 1.0 * index - (len(hanging[end]) - 1) / 2)
        return places
    places = {}
    x = 0.0
    for name in chain:
        below, width = _below(hanging[name], x, 1.2)
        places |= below
        places[name] = (x + (width - 1) / 2, 0.0)
        x += max(width, 1.0) + 0.6
    return places


def _chain(inside: Neighbours) -> list[str]:
    start = next(name for name, others in inside.items() if len(others) <= 1)
    chain = [start]
    while (following := [other for other in inside[chain[-1]] if other not in chain[-2:]]) and len(chain) < len(inside):
        chain.append(following[0])
    return chain


def _below(leaves: Sequence[str], x: float, y: float) -> tuple[dict[str, Place], float]:
    """Places of `leaves` in rows from `x`, `y` on, and how wide they are."""
    width = min(len(leaves), _MOST_IN_A_ROW)
    places = {
        leaf: (x + index % _MOST_IN_A_ROW, y + 0.8 * (index // _MOST_IN_A_ROW)) for index, leaf in enumerate(leaves)
    }
    return places, float(max(width, 1))


def _tree(inside: Neighbours, hanging: Neighbours) -> dict[str, Place]:
    """A tree under its centre; leaves in the lowest rows of their branch."""
    root = min(inside, key=lambda name: max(_distances([name], inside).values()))
    depths = _distances([root], inside)
    places: dict[str, Place] = {}
    free = 0.0
    # Children before parents, without recursion: a chain of ten thousand switches is a tree as well.
    order: list[str] = []
    waiting = [root]
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting += reversed([other for other in inside[name] if depths[other] > depths[name]])
    if sum(min(len(leaves), _MOST_IN_A_ROW) for leaves in hanging.values()) > _MOST_ACROSS:
        return _packed(order, depths, inside, hanging)
    spans: dict[str, list[float]] = {name: [] for name in inside}
    for name in order:
        if not [other for other in inside[name] if depths[other] > depths[name]]:
            below, width = _below(hanging[name], free, 1.2 * depths[name] + 1.2)
            places |= below
            spans[name] = [free, free + width - 1]
            free += width + 0.3
    for name in reversed(order):
        children = [other for other in inside[name] if depths[other] > depths[name]]
        if children:
            spans[name] = [spans[children[0]][0], spans[children[-1]][1]]
            own = hanging[name]
            if own:
                below, width = _below(own, free, 1.2 * depths[name] + 1.2)
                places |= below
                free += width + 0.3
        places[name] = (sum(spans[name]) / 2, 1.2 * depths[name])
    return places


def _packed(
    order: Sequence[str], depths: Mapping[str, int], inside: Neighbours, hanging: Neighbours
) -> dict[str, Place]:
    """A tree that would be far too wide: what is below a node is a block of rows under it, about twice as wide as high.
    `order` has parents before their children."""
    blocks: dict[str, dict[str, Place]] = {}
    for name in reversed(order):
        below = [blocks.pop(other) for other in inside[name] if depths[other] > depths[name]]
        below += [{leaf: (0.0, 0.0)} for leaf in hanging[name]]
        sizes = [(max(x for x, _ in one.values()) + 1, max(y for _, y in one.values()) + 1) for one in below]
        wide = max(math.sqrt(2 * sum(width * height for width, height in sizes)), *(width for width, _ in sizes), 1.0)
        places: dict[str, Place] = {}
        left, top, high, right = 0.0, 1.0, 0.0, 1.0
        for one, (width, height) in zip(below, sizes, strict=True):
            if left > 0 and left + width > wide:
                left, top, high = 0.0, top + high, 0.0
            places |= {node: (x + left, y + top) for node, (x, y) in one.items()}
            left, high = left + width, max(high, height)
            right = max(right, left)
        blocks[name] = places | {name: ((right - 1) / 2, 0.0)}
    return blocks[order[0]]


def _levels(core: Sequence[str], levels: Mapping[str, int], hanging: Neighbours) -> dict[str, Place]:
    """Rows by the distance from the hosts, the farthest on top, hosts at the bottom."""
    top = max(levels.values())
    edge = [name for name in core if levels[name] == 0]
    leaves = [leaf for name in edge for leaf in hanging[name]]
    wide = min(len(leaves), 4 * _MOST_IN_A_ROW)
    width = float(max(wide, *(sum(levels[name] == level for name in core) for level in range(top + 1))))
    places: dict[str, Place] = {}
    for level in range(top + 1):
        row = [name for name in core if levels[name] == level]
        for index, name in enumerate(row):
            places[name] = ((index + 0.5) * width / len(row) - 0.5, 1.4 * (top - level))
    for index, leaf in enumerate(leaves):
        row, column = divmod(index, wide)
        places[leaf] = ((column + 0.5) * width / wide - 0.5, 1.4 * top + 1.2 + 0.8 * row)
    return places


def _circle(core: Sequence[str], hanging: Neighbours) -> dict[str, Place]:
    """The core on a circle, hosts outside of it."""
    most = max((len(leaves) for leaves in hanging.values()), default=0)
    radius = max(1.2, len(core) * max(1.0, 0.6 * most) / (2 * math.pi) + 0.3)
    places: dict[str, Place] = {}
    for index, name in enumerate(core):
        angle = 2 * math.pi * index / len(core) - math.pi / 2
        places[name] = (radius * math.cos(angle), radius * math.sin(angle))
        leaves = hanging[name]
        spread = min(0.55 * math.pi / len(core), 0.5) if len(leaves) > 1 else 0.0
        for place, leaf in enumerate(leaves):
            turned = angle + (spread * (2 * place / (len(leaves) - 1) - 1) if len(leaves) > 1 else 0.0)
            places[leaf] = ((radius + 1.1) * math.cos(turned), (radius + 1.1) * math.sin(turned))
    return places


def _by_force(inside: Neighbours, hanging: Neighbours) -> dict[str, Place]:
    """The core as Fruchterman and Reingold (1991) place it; hosts where their switch has most room."""
    import networkx

    graph = networkx.Graph({name: list(others) for name, others in inside.items()})
    drawn = networkx.spring_layout(graph, seed=_SEED)
    found: dict[str, Place] = {name: (float(x), float(y)) for name, (x, y) in drawn.items()}
    nearest = min(math.dist(found[one], found[other]) for one, other in combinations(found, 2))
    # Two nodes that are as good as in one place shall not make the whole picture small.
    stretch = (2.0 if any(hanging.values()) else 1.4) / max(nearest, 0.5 / math.sqrt(len(found)))
    found = {name: (stretch * x, stretch * y) for name, (x, y) in found.items()}
    for name, others in inside.items():
        x, y = found[name]
        angles = sorted(math.atan2(found[other][1] - y, found[other][0] - x) for other in others)
        gap, begin = max((end - start, start) for start, end in pairwise([*angles, angles[0] + 2 * math.pi]))
        found |= _around((x, y), begin + gap / 2, min(gap / 4, 0.8), hanging[name])
    return found


def _around(place: Place, angle: float, spread: float, leaves: Sequence[str]) -> dict[str, Place]:
    """Places of `leaves` beside `place`, in the direction `angle` and up to `spread` to both of its sides."""
    turned = [
        angle + (spread * (2 * at / (len(leaves) - 1) - 1) if len(leaves) > 1 else 0.0) for at in range(len(leaves))
    ]
    radius = 1.1 * max(1.0, len(leaves) / 4)
    return {
        leaf: (place[0] + radius * math.cos(one), place[1] + radius * math.sin(one))
        for leaf, one in zip(leaves, turned, strict=True)
    }
