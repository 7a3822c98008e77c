"""The picture of a running lab, with its links as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.drawing.picture import MOST_NODES, Line, Picture, arranged, end_in_words, line_in_words, queue_in_words
from twinnet.drawing.placing import Place

__all__ = ["picture_of_running"]

Row = Mapping[str, Any]


def picture_of_running(
    nodes: Mapping[str, Row],
    built: Sequence[Row],
    now: Sequence[Row],
    most: int = MOST_NODES,
    chosen: Mapping[str, Place] | None = None,
) -> Picture:
    """Return the picture of a running lab.

    Parameters
    ----------
    nodes, built
        Its nodes by name and its links as they were built, in the form of the lab protocol (``describe``).
    now
        Its links as they are now (``links``), in the same order.
    most
        The most nodes that it may have.
    chosen
        The places of nodes that somebody chose.

    Raises
    ------
    BadValue
        It has so many nodes that they could not be told apart.
    """
    parts = {name: (_kind(node), _note(node)) for name, node in nodes.items()}
    lines = [_line(nodes, *link) for link in zip(built, now, strict=True)]
    controllers = {name: node.get("controllers") or () for name, node in nodes.items()}
    return arranged(parts, lines, most, chosen, controllers)


def _kind(node: Row) -> str:
    return "router" if node["kind"] == "host" and node.get("forwarding") else str(node["kind"])


def _note(node: Row) -> str:
    if _kind(node) == "host":
        addresses = [address for port in node["ports"][:1] for address in port.get("addresses") or ()]
        return next((address for address in addresses if "." in address), "")
    if node["kind"] == "interface":
        return str(node["interface"])
    return "Open vSwitch" if node.get("datapath", "own") != "own" else ""


def _line(nodes: Mapping[str, Row], built: Row, now: Row) -> Line:
    ends = (built["a"], built["b"])
    ports = [nodes[end["node"]]["ports"][end["port"]] for end in ends]
    queues = {str(port["name"]): queue_in_words(port.get("queue")) for port in ports}
    there, back = now["ab"], now["ba"]
    settings = line_in_words(there["config"], back["config"], queues)
    a, b = (end_in_words(_kind(nodes[end["node"]]) == "router", port) for end, port in zip(ends, ports, strict=True))
    return Line(ends[0]["node"], ends[1]["node"], settings, bool(there["up"] and back["up"]), (a, b))
