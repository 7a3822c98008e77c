"""A controller that makes each switch a learning switch."""

from __future__ import annotations

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import Flow, PacketIn, PortStatus
from twinnet.control.frames import is_group

__all__ = ["LearningSwitch"]

_COOKIE = 0x6C65_6172


class LearningSwitch(Controller):
    """Learns behind which port an address is, and installs a flow for each pair of addresses that speak.

    Frames for addresses that are not known yet, and for groups, are flooded with the action ``flood``, which our
    switches do along a spanning tree: rings do no harm.

    Parameters
    ----------
    idle_timeout_s
        Seconds without a frame after which a flow goes; 0: never.

    Attributes
    ----------
    stations
        For each switch the port of each address.
    """

    def __init__(self, idle_timeout_s: int = 0) -> None:
        self._idle_timeout_s = idle_timeout_s
        self.stations: dict[str, dict[str, int]] = {}

    def on_start(self) -> None:
        """Forget all."""
        self.stations = {}

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Have the switch send what no flow covers."""
        self.stations[switch.name] = {}
        switch.install("priority=0,actions=controller")

    def on_packet_in(self, event: PacketIn) -> None:
        """Learn where the sender is, and send the frame on."""
        switch, stations = event.switch, self.stations[event.switch.name]
        if not is_group(event.eth_src):
            stations[event.eth_src] = event.in_port
        port = stations.get(event.eth_dst)
        if port is None or is_group(event.eth_dst):
            switch.send(event.out("flood"))
            return
        match = f"in_port={event.in_port},dl_src={event.eth_src},dl_dst={event.eth_dst}"
        # A frame that would go back by the port that it came in by has reached its receiver there.
        actions = "drop" if port == event.in_port else f"output:{port}"
        switch.install(Flow(match, actions, priority=1, cookie=_COOKIE, idle_timeout_s=self._idle_timeout_s))
        if port != event.in_port:
            switch.send(event.out(actions))

    def on_port_status(self, event: PortStatus) -> None:
        """Forget what was learnt: behind other switches, hosts may now be reached by other ports."""
        if event.port.up and event.reason != "delete":
            return
        for name, switch in self.switches.items():
            self.stations[name] = {}
            switch.delete(f"cookie={_COOKIE}/-1")
