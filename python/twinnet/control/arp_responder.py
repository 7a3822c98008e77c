"""A controller that answers ARP requests in the place of those who are asked, so that none floods the network."""

from __future__ import annotations

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import PacketIn, PacketOut
from twinnet.control.frames import ArpPacket
from twinnet.control.topology import Topology

__all__ = ["ArpResponder"]


class ArpResponder(Controller):
    """Answers for every IPv4 address of the network's description; other requests are left to whoever comes next in
    :class:`Together`, and flooded by nobody else.

    Attributes
    ----------
    answered
        Requests that were answered.
    """

    def __init__(self) -> None:
        self.answered: int = 0
        self._addresses: dict[str, str] = {}

    def on_start(self) -> None:
        """Read the addresses of the network."""
        self.answered = 0
        self._addresses = Topology(self.stage.spec).addresses

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Have the switch send ARP requests."""
        switch.install("priority=100,arp,arp_op=1,actions=controller")

    def on_packet_in(self, event: PacketIn) -> bool:
        """Answer a request."""
        request = ArpPacket.parse(event.data)
        # One that asks for its own address looks for a second owner (RFC 5227), and is to have no answer from us.
        if request is None or not request.is_request or request.target_ip == request.sender_ip:
            return False
        owner = self._addresses.get(request.target_ip)
        if owner is None:
            return False
        self.answered += 1
        event.switch.send(PacketOut(request.reply(owner), "in_port", event.in_port))
        return True
