"""A summary of a network's parts, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from twinnet.network.nodes import Host, Interface, Node, Router, Switch

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["kind_of", "page_part", "summary_of", "summary_of_kinds"]

_PLURALS = {
    "host": "hosts",
    "router": "routers",
    "switch": "switches",
    "interface": "interfaces",
    "tunnel": "tunnels",
    "link": "links",
}


def kind_of(node: Node) -> str:
    """Return ``host``, ``router``, ``switch``, ``interface`` or ``tunnel``."""
    if isinstance(node, Router):
        return "router"
    if isinstance(node, Switch):
        return "switch"
    if isinstance(node, Host):
        return "host"
    return "interface" if isinstance(node, Interface) else "tunnel"


def summary_of(network: Network) -> str:
    """Return what `network` consists of, such as ``4 hosts, 1 switch and 4 links``."""
    return summary_of_kinds([kind_of(node) for node in network.nodes.values()], len(network.links))


def summary_of_kinds(kinds: Iterable[str], links: int) -> str:
    """Return the same of nodes by their kinds and a number of links."""
    counts = Counter(kinds)
    counts["link"] = links
    said = [
        f"{counts[kind]} {kind if counts[kind] == 1 else plural}" for kind, plural in _PLURALS.items() if counts[kind]
    ]
    if not said:
        return "nothing"
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def page_part(network: Network) -> str:
    """Return `network` as HTML: its picture, or the words where it has too many nodes for one."""
    from twinnet.drawing.picture import MOST_NODES, picture_of

    if not 1 <= len(network.nodes) <= MOST_NODES:
        return f"<p>Network of {escape(summary_of(network))}</p>"
    picture = picture_of(network)
    return f"<figure>{picture.svg()}<figcaption>{escape(picture.caption)}</figcaption></figure>"
