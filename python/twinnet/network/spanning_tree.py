"""The links between switches that stand-alone switches leave out, because frames would go round in a loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from twinnet.network.nodes import Link, Switch

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["tree_of", "unused_links"]


def unused_links(network: Network) -> list[Link]:
    """Return the links between stand-alone switches without a controller that their spanning tree leaves out at the
    start: the fabric floods and learns on the breadth-first tree from the first switch, earlier links first."""
    switches = {switch.name: switch for switch in network.switches}
    if network.controller_choice is not None:
        return []
    between = [link for link in network.links if link.up and link.a.node in switches and link.b.node in switches]
    used, _ = tree_of(switches, [(link.a.node, link.b.node) for link in between])
    return [
        link
        for place, link in enumerate(between)
        if place not in used and _learns(switches[link.a.node]) and _learns(switches[link.b.node])
    ]


def tree_of(switches: Iterable[str], links: Sequence[tuple[str, str]]) -> tuple[dict[int, str], list[str]]:
    """Return the places of those of `links` that are in the breadth-first tree from the first of `switches`, earlier
    links first, each with the switch that it reaches; and the switches in the order in which they are reached."""
    adjacent: dict[str, list[tuple[int, str]]] = {name: [] for name in switches}
    for place, (one, other) in enumerate(links):
        adjacent[one].append((place, other))
        adjacent[other].append((place, one))
    used: dict[int, str] = {}
    reached: dict[str, None] = {}
    for root in adjacent:
        frontier = deque([root] if root not in reached else [])
        reached[root] = None
        while frontier:
            for place, peer in adjacent[frontier.popleft()]:
                if peer not in reached:
                    reached[peer] = None
                    used[place] = peer
                    frontier.append(peer)
    return used, list(reached)


def _learns(switch: Switch) -> bool:
    return switch.fail_mode == "standalone" and not switch.controllers and not switch.flows and switch.datapath == "own"
