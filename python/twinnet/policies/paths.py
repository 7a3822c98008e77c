"""Paths of frames through the switches of a network: the places of hosts, and the next port on the way to each."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.network.nodes import Host, Link, Port, Switch

__all__ = ["Attachment", "Paths"]


@dataclass(frozen=True)
class Attachment:
    """A host's interface at a switch.

    Parameters
    ----------
    host
        The host's name.
    switch
        The switch's name.
    port
        The OpenFlow number of the switch's port.
    mac
        The interface's hardware address, as a number of 48 bits.
    """

    host: str
    switch: str
    port: int
    mac: int


class Paths:
    """The switches of `network`, their lines, and shortest paths by number of lines.

    Among equally short paths the one with the lower port number is taken at each switch, so that the same network
    always gives the same paths. Only links that are up are used.

    Raises
    ------
    BadPolicy
        For a node whose hardware address is not known (an interface of the machine, a tunnel), and for switches that
        cannot reach each other.
    """

    def __init__(self, network: Network) -> None:
        self.switches: dict[str, Switch] = {switch.name: switch for switch in network.switches}
        if not self.switches:
            raise BadPolicy("the network has no switch", "a policy is enforced by switches; add one")
        self.attachments: list[Attachment] = []
        self.lines: dict[str, list[tuple[int, str, Link]]] = {name: [] for name in self.switches}
        for link in network.links:
            self._enter(network, link)
        for lines in self.lines.values():
            lines.sort(key=lambda line: line[0])
        self.of_host: dict[str, Attachment] = {}
        for one in self.attachments:
            self.of_host.setdefault(one.host, one)
        self._peers = {(name, port): there for name, lines in self.lines.items() for port, there, _ in lines}
        self._back = {
            name: [(there, _far(link, there).number or 0) for _, there, link in lines]
            for name, lines in self.lines.items()
        }
        self._towards: dict[str, dict[str, int]] = {}
        first = next(iter(self.switches))
        away = set(self.switches) - set(self.towards(first)) - {first}
        if away:
            raise BadPolicy(f"no path leads from the switch {first} to {min(away)}", "link them, or leave one out")

    def _enter(self, network: Network, link: Link) -> None:
        ends = [(network.nodes[port.node], port) for port in (link.a, link.b)]
        for (node, port), (peer, peer_port) in (ends, ends[::-1]):
            if not isinstance(node, Switch) or port.number is None:
                continue
            if isinstance(peer, Switch):
                if link.up:
                    self.lines[node.name].append((port.number, peer.name, link))
            elif isinstance(peer, Host) and peer_port.mac is not None:
                mac = int(peer_port.mac.replace(":", ""), 16)
                self.attachments.append(Attachment(peer.name, node.name, port.number, mac))
            else:
                raise BadPolicy(
                    f"{peer.name} at the switch {node.name} has no hardware address that is known beforehand",
                    "a policy forwards by the addresses of hosts; leave the interface or tunnel out",
                )

    @cached_property
    def is_tree(self) -> bool:
        """True if the switches have no loop and no parallel lines."""
        return sum(len(lines) for lines in self.lines.values()) == 2 * (len(self.switches) - 1)

    def towards(self, target: str) -> Mapping[str, int]:
        """Return for each other switch the port that leads to the switch `target` on a shortest path."""
        known = self._towards.get(target)
        if known is not None:
            return known
        found = self._only_way(target) if self.is_tree else self._shortest_ways(target)
        self._towards[target] = found
        return found

    def _only_way(self, target: str) -> dict[str, int]:
        """The ports towards `target` where there is no choice: each switch was come to by the line that leads back."""
        found: dict[str, int] = {}
        waiting = [target]
        while waiting:
            for there, port in self._back[waiting.pop()]:
                if there not in found and there != target:
                    found[there] = port
                    waiting.append(there)
        return found

    def _shortest_ways(self, target: str) -> dict[str, int]:
        distance = self.distances([target])
        found: dict[str, int] = {}
        for name, lines in self.lines.items():
            for port, there, _ in lines:
                if name in distance and distance.get(there, -1) == distance[name] - 1:
                    found[name] = port
                    break
        return found

    def distances(self, starts: Sequence[str]) -> Mapping[str, int]:
        """Return how many lines each switch is from the nearest of the switches `starts`."""
        distance: dict[str, int] = {}
        for start in starts:
            distance[start] = 0
        waiting = deque(starts)
        while waiting:
            here = waiting.popleft()
            for _, there, _ in self.lines[here]:
                if there not in distance:
                    distance[there] = distance[here] + 1
                    waiting.append(there)
        return distance

    def hops(self, source: str, target: str) -> list[tuple[str, int]]:
        """Return switch and outgoing port at each step from the host `source` to the host `target`."""
        here, end = self.of_host[source].switch, self.of_host[target]
        towards, steps = self.towards(end.switch), list[tuple[str, int]]()
        while here != end.switch:
            steps.append((here, towards[here]))
            here = self._peers[here, towards[here]]
        return [*steps, (here, end.port)]

    def tree_ports(self) -> dict[str, list[int]]:
        """Return for each switch the ports of a spanning tree and those to hosts: where frames for groups go."""
        ports: dict[str, set[int]] = {name: set() for name in self.switches}
        for one in self.attachments:
            ports[one.switch].add(one.port)
        root = min(self.switches.values(), key=lambda switch: switch.dpid).name
        reached, waiting = {root}, deque([root])
        while waiting:
            here = waiting.popleft()
            for port, there, link in self.lines[here]:
                if there not in reached:
                    reached.add(there)
                    waiting.append(there)
                    ports[here].add(port)
                    ports[there].add(_far(link, there).number or 0)
        return {name: sorted(found) for name, found in ports.items()}


def _far(link: Link, switch: str) -> Port:
    return link.a if link.a.node == switch else link.b
