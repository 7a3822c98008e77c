"""The picture of a running lab, with its links as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinnet.drawing.picture import Line, Picture, arranged, told_of_line

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["picture_of_lab"]


def picture_of_lab(lab: Lab) -> Picture:
    """Return the picture of `lab`: its nodes as they were built, its links with the settings that they have now.

    Raises
    ------
    BadValue
        It has so many nodes that they could not be told apart.
    """
    layout = lab.layout
    parts = {name: (_kind(node), _note(node)) for name, node in layout.nodes.items()}
    lines = [_line(layout.nodes, built, now) for built, now in zip(layout.links, lab.links(), strict=True)]
    return arranged(parts, lines)


def _kind(node: Mapping[str, Any]) -> str:
    return "router" if node["kind"] == "host" and node.get("forwarding") else str(node["kind"])


def _note(node: Mapping[str, Any]) -> str:
    if _kind(node) == "host":
        addresses = [address for port in node["ports"][:1] for address in port.get("addresses") or ()]
        return next((address for address in addresses if "." in address), "")
    if node["kind"] == "interface":
        return str(node["interface"])
    return "Open vSwitch" if node.get("datapath", "own") != "own" else ""


def _line(nodes: Mapping[str, Mapping[str, Any]], built: Mapping[str, Any], now: Mapping[str, Any]) -> Line:
    ends = (built["a"], built["b"])
    ports = (nodes[end["node"]]["ports"][end["port"]] for end in ends)
    queues = {str(queue["kind"]) for port in ports if (queue := port.get("queue"))}
    ways = (now["ab"], now["ba"])
    told = told_of_line(*(way.get("config") or {} for way in ways), queues)
    return Line(ends[0]["node"], ends[1]["node"], told, all(way.get("up", True) for way in ways))
