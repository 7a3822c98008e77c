"""Links and ports by the ways in which people name them: `s1-eth2`, `s1 to s2`, `trunk.queue`, `links[3].queue_a`."""

from __future__ import annotations

import re

from twinnet.errors import BadTopology, UnknownNode, did_you_mean
from twinnet.network.network import Network
from twinnet.network.nodes import Link, Port

__all__ = ["WAYS", "link_named", "peers", "port_named", "ports_named"]

WAYS = "a port (s1-eth2), a direction (s1 to s2), or a link's queue (NAME.queue, links[0].queue_a)"
_TOWARDS = re.compile(r"(\S+)\s+(?:to|towards)\s+(\S+)")
_OF_LINK = re.compile(r"(.+)\.(queue|queue_a|queue_b)")
_NUMBER = re.compile(r"links\[(\d{1,9})\]")


def link_named(network: Network, name: str) -> Link:
    """Return the link that `name` means: its own name, `links[3]` (from 0, in the order in which they were made), or
    `A-B` by the names of its ends, which may hold hyphens themselves.

    Raises
    ------
    BadTopology
        It names none, or several side by side; `UnknownLink` where two nodes have none.
    """
    own = [link for link in network.links if link.name and link.name == name]
    if own:
        return own[0]
    number = _NUMBER.fullmatch(name)
    if number is not None:
        if int(number.group(1)) >= len(network.links):
            raise BadTopology(
                f"the network has no {name}", f"it has links[0] to links[{len(network.links) - 1}]; they count from 0"
            )
        return network.links[int(number.group(1))]
    parts = name.split("-")
    pairs = [("-".join(parts[:cut]), "-".join(parts[cut:])) for cut in range(1, len(parts))]
    for a, b in pairs:
        if a in network and b in network:
            network.find_link(a, b)
            return _only_one(network, a, b)
    known = [link.name for link in network.links if link.name]
    own = f"{did_you_mean(name, known)}; or " if known else ""
    raise BadTopology(
        f"{name!r} does not name two nodes of the network, nor a link",
        f"{own}write the names of a link's ends (h1-s1), or links[0]",
    )


def _only_one(network: Network, a: str, b: str) -> Link:
    between = [link for link in network.links if {link.a.node, link.b.node} == {a, b}]
    if len(between) > 1:
        which = ", ".join(link.name or f"links[{link.index}]" for link in between)
        raise BadTopology(f"{a} and {b} have {len(between)} links side by side", f"name one of them: {which}")
    return between[0]


def ports_named(network: Network, name: str) -> list[Port]:
    """Return the ports whose queues `name` means: one, or both ends of a link by `NAME.queue`.

    Raises
    ------
    UnknownNode, BadTopology
        It means none.
    """
    ports = {port.name: port for node in network.nodes.values() for port in node.ports}
    if name in ports:
        return [ports[name]]
    towards = _TOWARDS.fullmatch(name.strip())
    if towards is not None:
        near, far = towards.groups()
        for node in (near, far):
            if node not in network:
                raise UnknownNode(f"the network has no node {node!r}", did_you_mean(node, network.nodes))
        network.find_link(near, far)
        link = _only_one(network, near, far)
        return [link.a if link.a.node == near else link.b]
    of_link = _OF_LINK.fullmatch(name)
    if of_link is not None:
        link = link_named(network, of_link.group(1))
        return {"queue": [link.a, link.b], "queue_a": [link.a], "queue_b": [link.b]}[of_link.group(2)]
    raise UnknownNode(f"the network has no port {name!r}", f"{did_you_mean(name, ports)}; name {WAYS}")


def port_named(network: Network, name: str) -> Port:
    """Return the one port that `name` means; raises as :func:`ports_named`, and `BadTopology` where it means two."""
    found = ports_named(network, name)
    if len(found) > 1:
        ends = " or ".join(f"{one.node} to {other.node}" for one, other in (found, found[::-1]))
        raise BadTopology(f"{name} is two ports, one at each end", f"name one: {ends}")
    return found[0]


def peers(network: Network) -> dict[str, str]:
    """Return each port's name with the direction in which it sends: `s1-eth2` with `s1 to s2`."""
    return {
        port.name: f"{port.node} to {other.node}"
        for link in network.links
        for port, other in ((link.a, link.b), (link.b, link.a))
    }
