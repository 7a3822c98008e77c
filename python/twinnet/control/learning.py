"""A controller that makes each switch a learning switch."""

from __future__ import annotations

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import Flow, PacketIn, PortStatus
from twinnet.control.frames import is_group
from twinnet.control.topology import Place, Topology

__all__ = ["LearningSwitch"]

_COOKIE = 0x6C65_6172
_ON_THEIR_WAY = "100 ms"
"""So long after a link has changed, what was learnt meanwhile is forgotten: from a frame that was on its old way."""


class LearningSwitch(Controller):
    """Learns behind which port an address is, and installs a flow for each pair of addresses that speak.

    Frames for addresses that are not known yet, and for groups, are flooded along a spanning tree of the description
    (:class:`Topology`): rings do no harm. Where the switches are a tree themselves, that is the action ``flood``.

    Parameters
    ----------
    idle_timeout_s
        Seconds without a frame after which a flow goes; 0: never.

    Attributes
    ----------
    stations
        For each switch the port of each address.
    topology
        The network as it is now.
    """

    topology: Topology

    def __init__(self, idle_timeout_s: int = 0) -> None:
        self._idle_timeout_s = idle_timeout_s
        self.stations: dict[str, dict[str, int]] = {}

    def on_start(self) -> None:
        """Forget all, and read the network."""
        self.stations = {}
        self.topology = Topology(self.stage.spec)
        self._flooded = self.topology.tree()

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Have the switch send what no flow covers."""
        self.stations[switch.name] = {}
        for port in switch.ports.values():
            self.topology.set_up(Place(switch.name, port.number), port.up)
        self._flooded = self.topology.tree()
        switch.install("priority=0,actions=controller")

    def on_packet_in(self, event: PacketIn) -> None:
        """Learn where the sender is, and send the frame on."""
        switch, stations = event.switch, self.stations[event.switch.name]
        if not is_group(event.eth_src):
            if stations.get(event.eth_src, event.in_port) != event.in_port:
                # Its next frame, at whatever port, comes here: what is known of it is what it sent last.
                for end in ("dl_src", "dl_dst"):
                    switch.delete(f"cookie={_COOKIE}/-1,{end}={event.eth_src}")
            stations[event.eth_src] = event.in_port
        port = stations.get(event.eth_dst)
        if port is None or is_group(event.eth_dst):
            switch.send(event.out(self._flood(event)))
            return
        match = f"in_port={event.in_port},dl_src={event.eth_src},dl_dst={event.eth_dst}"
        # A frame that would go back by the port that it came in by has reached its receiver there.
        actions = "drop" if port == event.in_port else f"output:{port}"
        switch.install(Flow(match, actions, priority=1, cookie=_COOKIE, idle_timeout_s=self._idle_timeout_s))
        if port != event.in_port:
            switch.send(event.out(actions))

    def on_port_status(self, event: PortStatus) -> None:
        """Grow the tree anew, and forget what was learnt: hosts may now be reached by other ports."""
        place = Place(event.switch.name, event.port.number)
        up = event.port.up and event.reason != "delete"
        if not self.topology.set_up(place, up) and up:
            return
        self._flooded = self.topology.tree()
        self._forget()
        self.after(_ON_THEIR_WAY, self._forget)

    def _forget(self) -> None:
        for name, switch in self.switches.items():
            self.stations[name] = {}
            switch.delete(f"cookie={_COOKIE}/-1")

    def _flood(self, event: PacketIn) -> str:
        """The actions that send the frame on by all ports of the tree but the one that it came in by. A switch that the
        description does not have floods by all."""
        ports = self._flooded.get(event.switch.name)
        if ports is None:
            return "flood"
        others = ",".join(f"output:{port}" for port in ports if port != event.in_port)
        return others or "drop"
