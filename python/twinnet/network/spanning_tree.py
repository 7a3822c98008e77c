"""The links between switches that stand-alone switches leave out, because frames would go round in a loop."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from twinnet.network.nodes import Link, Switch

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["unused_links"]


def unused_links(network: Network) -> list[Link]:
    """Return the links between stand-alone switches without a controller that their spanning tree leaves out at the
    start: the fabric floods and learns on the breadth-first tree from the first switch, earlier links first."""
    switches = {switch.name: switch for switch in network.switches}
    if network.controller_choice is not None:
        return []
    between = [link for link in network.links if link.up and link.a.node in switches and link.b.node in switches]
    adjacent: dict[str, list[tuple[Link, str]]] = {name: [] for name in switches}
    for link in between:
        adjacent[link.a.node].append((link, link.b.node))
        adjacent[link.b.node].append((link, link.a.node))
    reached: set[str] = set()
    used: set[int] = set()
    for root in switches:
        frontier = deque([root] if root not in reached else [])
        reached.add(root)
        while frontier:
            for link, peer in adjacent[frontier.popleft()]:
                if peer not in reached:
                    reached.add(peer)
                    used.add(link.index)
                    frontier.append(peer)
    return [
        link
        for link in between
        if link.index not in used and _learns(switches[link.a.node]) and _learns(switches[link.b.node])
    ]


def _learns(switch: Switch) -> bool:
    return switch.fail_mode == "standalone" and not switch.controllers and not switch.flows and switch.datapath == "own"
