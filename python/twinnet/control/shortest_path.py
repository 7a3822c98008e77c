"""A controller that sends each flow along a shortest path, and spreads flows over those of equal length (ECMP)."""

from __future__ import annotations

import zlib

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import Flow, PacketIn, PortStatus
from twinnet.control.frames import flow_words, is_group
from twinnet.control.topology import Place, Topology
from twinnet.control.tree_flooding import COOKIE, install_tree

__all__ = ["ShortestPath"]

_PATH_COOKIE = 0x7061_7468
_GROUPS = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"
_BROADCAST = "dl_dst=ff:ff:ff:ff:ff:ff"
_GROUP_IDLE_S = 60


class ShortestPath(Controller):
    """Knows the network and where its hosts are from the description (:class:`Topology`).

    The first frame of a flow comes to the controller, which gives every switch on the path a flow for exactly that one
    (IPv4: addresses, protocol, ports; else addresses and type). Among several shortest paths a hash of the flow chooses
    at each switch, as routers do (RFC 2992, hash-threshold). Frames for groups go along a spanning tree. When a link
    goes down or comes up all paths are chosen anew.

    Parameters
    ----------
    idle_timeout_s
        Seconds without a frame after which a path goes; 0: never.
    seed
        Another seed spreads the flows otherwise.

    Attributes
    ----------
    topology
        The network as it is now.
    paths
        The switches of each path that was chosen, by the flow's conditions.
    """

    topology: Topology

    def __init__(self, idle_timeout_s: int = 0, seed: int = 0) -> None:
        self._idle_timeout_s = idle_timeout_s
        self._seed = seed
        self.paths: dict[str, list[str]] = {}

    def on_start(self) -> None:
        """Read the network."""
        self.topology = Topology(self.stage.spec)
        self.paths = {}

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Have the switch send what no path covers, and flood along the tree."""
        for port in switch.ports.values():
            self.topology.set_up(Place(switch.name, port.number), port.up)
        switch.install("priority=0,actions=controller")
        self._install_tree(switch)

    def _install_tree(self, switch: ConnectedSwitch) -> None:
        # OpenFlow 1.0 has no mask for addresses: frames for other groups come to the controller.
        match = _GROUPS if switch.version == "1.3" else _BROADCAST
        install_tree(switch, self.topology.tree()[switch.name], priority=2, match=match)

    def on_packet_in(self, event: PacketIn) -> None:
        """Choose a path, and send the frame along it."""
        if is_group(event.eth_dst):
            self._send_to_group(event)
            return
        target = self.topology.hosts.get(event.eth_dst)
        if target is None:
            return
        words = flow_words(event.data)
        hops = self._path(event.switch.name, target, words.key)
        self.paths[words.conditions] = [hop.switch for hop in hops]
        for hop in reversed(hops):
            switch = self.switches.get(hop.switch)
            if switch is not None:
                actions, timeout_s = f"output:{hop.port}", self._idle_timeout_s
                switch.install(Flow(words.conditions, actions, 10, cookie=_PATH_COOKIE, idle_timeout_s=timeout_s))
        if hops:
            event.switch.send(event.out(f"output:{hops[0].port}"))

    def on_port_status(self, event: PortStatus) -> None:
        """Choose all paths anew."""
        place = Place(event.switch.name, event.port.number)
        if not self.topology.set_up(place, event.port.up and event.reason != "delete"):
            return
        self.paths.clear()
        for switch in self.switches.values():
            switch.delete(f"cookie={_PATH_COOKIE}/-1")
            self._install_tree(switch)

    def _send_to_group(self, event: PacketIn) -> None:
        """Send a frame along the tree, and have the switch do so with those that follow."""
        ports = self.topology.tree()[event.switch.name]
        others = [f"output:{port}" for port in ports if port != event.in_port and event.in_port in ports]
        match, actions = f"in_port={event.in_port},dl_dst={event.eth_dst}", ",".join(others) or "drop"
        event.switch.install(Flow(match, actions, priority=3, cookie=COOKIE, idle_timeout_s=_GROUP_IDLE_S))
        if others:
            event.switch.send(event.out(actions))

    def _path(self, here: str, target: Place, key: bytes) -> list[Place]:
        """The ports along a shortest path from the switch `here` to `target`; none when there is no path."""
        distances = self.topology.distances(target.switch)
        hops: list[Place] = []
        while here != target.switch:
            left = distances.get(here)
            if left is None:
                return []
            nearer = [port for port, there in self.topology.lines(here) if distances.get(there.switch) == left - 1]
            # Each switch has a hash of its own, so that the second choice does not follow from the first.
            hashed = zlib.crc32(key, zlib.crc32(f"{self._seed} {here}".encode()))
            port = nearer[hashed * len(nearer) >> 32]
            hops.append(Place(here, port))
            here = next(there.switch for line, there in self.topology.lines(here) if line == port)
        return [*hops, target]
