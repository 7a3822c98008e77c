"""The network as shortest paths and spanning trees see it: switches, the lines between them, and where hosts are.

It comes from the description of the network, not from discovery by LLDP: it is known at once and whole, costs no
frames, and is the same in every run. What switches report of their ports keeps it up to date.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Place", "Topology"]


@dataclass(frozen=True, order=True)
class Place:
    """A port of a switch."""

    switch: str
    port: int


class Topology:
    """The switches of `spec` (of the lab protocol) and what is at their ports.

    Attributes
    ----------
    hosts
        Where the interface with a hardware address is.
    addresses
        The hardware address of the interface with an IPv4 address.
    switches
        Names of the switches, in the order of their datapath numbers.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        nodes = {node["name"]: node for node in spec["nodes"]}
        switches = [node for node in spec["nodes"] if node["kind"] == "switch"]
        self.switches: list[str] = [node["name"] for node in sorted(switches, key=lambda node: node["dpid"])]
        self.hosts: dict[str, Place] = {}
        self.addresses: dict[str, str] = {}
        self._lines: dict[Place, Place] = {}
        self._edges: dict[str, list[int]] = {name: [] for name in self.switches}
        self._down: set[Place] = set()
        for link in spec["links"]:
            ends = [(nodes[link[end]["node"]], link[end]["port"]) for end in ("a", "b")]
            for (node, port), (peer, peer_port) in (ends, ends[::-1]):
                if node["kind"] != "switch":
                    continue
                here = Place(node["name"], node["ports"][port]["number"])
                if not link.get("up", True):
                    self._down.add(here)
                if peer["kind"] == "switch":
                    self._lines[here] = Place(peer["name"], peer["ports"][peer_port]["number"])
                else:
                    self._edges[here.switch].append(here.port)
                    self._enter(peer["ports"][peer_port], here)

    def _enter(self, interface: Mapping[str, Any], place: Place) -> None:
        self.hosts[interface["mac"]] = place
        for address in interface.get("addresses", ()):
            ip = address.partition("/")[0]
            if ":" not in ip:
                self.addresses[ip] = interface["mac"]

    def set_up(self, place: Place, up: bool) -> bool:
        """Note that the link at `place` is up or down; returns whether that is news."""
        if (place not in self._down) == up:
            return False
        (self._down.discard if up else self._down.add)(place)
        return True

    def is_up(self, place: Place) -> bool:
        """Return whether the link at `place` is up, as far as both its ends have said."""
        peer = self._lines.get(place)
        return place not in self._down and peer not in self._down

    def lines(self, switch: str) -> Iterator[tuple[int, Place]]:
        """The ports of `switch` that lead to other switches and are up, in order, and where they lead."""
        for here, there in sorted(self._lines.items()):
            if here.switch == switch and self.is_up(here):
                yield here.port, there

    def edge_ports(self, switch: str) -> list[int]:
        """The ports of `switch` that lead to hosts, in order."""
        return sorted(self._edges[switch])

    def distances(self, target: str) -> dict[str, int]:
        """Return the switches from which `target` can be reached, and over how many lines."""
        found = {target: 0}
        waiting = deque([target])
        while waiting:
            here = waiting.popleft()
            for _, there in self.lines(here):
                if there.switch not in found:
                    found[there.switch] = found[here] + 1
                    waiting.append(there.switch)
        return found

    def tree(self) -> dict[str, list[int]]:
        """Return for each switch the ports of a spanning tree, in order: lines of the tree, and all ports to hosts.

        The tree is grown in breadth from the switch with the lowest datapath number, as IEEE 802.1D would with equal
        priorities and costs; a network in several parts has one for each.
        """
        ports = {switch: set(self.edge_ports(switch)) for switch in self.switches}
        reached: set[str] = set()
        for root in self.switches:
            waiting = deque([] if root in reached else [root])
            reached.add(root)
            while waiting:
                here = waiting.popleft()
                for port, there in self.lines(here):
                    if there.switch not in reached:
                        reached.add(there.switch)
                        waiting.append(there.switch)
                        ports[here].add(port)
                        ports[there.switch].add(there.port)
        return {switch: sorted(found) for switch, found in ports.items()}
