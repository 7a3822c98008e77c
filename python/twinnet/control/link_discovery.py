"""Learns the network from its switches alone: links by LLDP, hosts by the frames that they send."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from twinnet.control.available_bandwidth import CountedLink
from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import PacketIn, PacketOut, PortStatus
from twinnet.control.frames import ArpPacket, is_group
from twinnet.control.lldp import LLDP, PortAdvertisement
from twinnet.control.topology import Place
from twinnet.errors import BadValue
from twinnet.ranges import run_time_ps

__all__ = ["LinkDiscovery"]

_MOST_HOSTS = 100_000
_FLOW = f"priority=65535,dl_type=0x{LLDP:04x},actions=controller"


class LinkDiscovery(Controller):
    """Has each port of each switch send a frame of LLDP every `interval`; where it comes in is the link's other end.

    A link that was not seen for three intervals, or one of whose ports goes down, is forgotten. Hosts are known from
    the first frame of theirs that a switch sends here: put this controller before one that learns
    (``Together(LinkDiscovery(), LearningSwitch())``). Capacities are what switches tell of their ports:
    those of OpenFlow 1.0 know 10 and 100 Mbit/s, 1 and 10 Gbit/s.

    A host can send such frames, too, and so make the controller believe in a link: a frame counts only if it names a
    port of a switch that has joined, but nothing proves who sent it.

    Parameters
    ----------
    interval
        The time between two frames of a port, 1 s or more.
    """

    def __init__(self, interval: str = "5 s") -> None:
        if run_time_ps(interval, "interval") < 10**12:
            raise BadValue(f"the interval is {interval!r}; LLDP gives times in seconds", "give 1 s or more")
        self._interval = interval
        self._hold_s = max(3, round(3 * run_time_ps(interval, "interval") / 1e12))
        self._seen: dict[Place, tuple[Place, float]] = {}
        self._hosts: dict[str, Place] = {}
        self._addresses: dict[str, str] = {}

    def on_start(self) -> None:
        """Begin anew."""
        self._seen, self._hosts, self._addresses = {}, {}, {}
        self.every(self._interval, self._advertise_all)

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Have the switch hand over what its neighbours advertise, and advertise its own ports at once."""
        switch.install(_FLOW)
        # A neighbour that joined before heard nothing of what it sent to a switch without the flow.
        switch.barrier(self._advertise_all)

    def on_switch_left(self, switch: ConnectedSwitch) -> None:
        """Forget its links."""
        self._forget(lambda place: place.switch == switch.name)

    def on_port_status(self, event: PortStatus) -> None:
        """Forget the link of a port that went down."""
        here = Place(event.switch.name, event.port.number)
        if event.reason == "delete" or not event.port.up:
            self._forget(lambda place: place == here)
        else:
            self._advertise(event.switch, event.port.number)

    def on_packet_in(self, event: PacketIn) -> bool:
        """Note where a frame of LLDP came in, or where a host is."""
        here = Place(event.switch.name, event.in_port)
        if event.eth_type == LLDP:
            advertised = PortAdvertisement.parse(event.data)
            there = None if advertised is None else self._place(advertised)
            if there is not None and there != here:
                self._seen[there] = (here, self.now)
                self._hosts = {mac: place for mac, place in self._hosts.items() if place not in (here, there)}
            return True
        if not self._is_between_switches(here) and not is_group(event.eth_src) and len(self._hosts) < _MOST_HOSTS:
            self._hosts[event.eth_src] = here
            packet = ArpPacket.parse(event.data)
            if packet is not None:
                self._addresses[packet.sender_ip] = packet.sender_mac
        return False

    @property
    def links(self) -> list[tuple[Place, Place]]:
        """The directions of links between switches that are known now: from which port to which."""
        return sorted((here, there) for here, (there, at_s) in self._seen.items() if self.now - at_s <= self._hold_s)

    @property
    def hosts(self) -> dict[str, Place]:
        """Where hosts are, by hardware address."""
        return dict(self._hosts)

    def path(self, source: str, target: str) -> list[CountedLink]:
        """Return the links from host `source` to host `target` over the fewest switches, for
        :meth:`AvailableBandwidth.estimate`.

        Parameters
        ----------
        source, target
            Their hardware addresses, or IPv4 addresses that ARP has shown.

        Raises
        ------
        BadValue
            One of them has not been seen, there is no way between them, or a switch gives no rate of a port.
        """
        begin, end = self._where(source), self._where(target)
        found = [self._counted(begin, "received")]
        for here in self._way(begin.switch, end.switch):
            found.append(self._counted(here, "sent"))
        return [*found, self._counted(end, "sent")]

    def _way(self, begin: str, end: str) -> list[Place]:
        came: dict[str, tuple[str, Place]] = {}
        reached, waiting, links = {begin}, deque([begin]), self.links
        while waiting and end not in reached:
            near = waiting.popleft()
            for here, there in links:
                if here.switch == near and there.switch not in reached:
                    reached.add(there.switch)
                    came[there.switch] = (near, here)
                    waiting.append(there.switch)
        if end not in reached:
            raise BadValue(f"no way from {begin} to {end} is known", "let an interval of discovery pass")
        ports: list[Place] = []
        while end != begin:
            end, port = came[end]
            ports.append(port)
        return ports[::-1]

    def _counted(self, place: Place, direction: Literal["sent", "received"]) -> CountedLink:
        rate = self.switches[place.switch].ports[place.port].rate_bps
        if not rate:
            raise BadValue(f"{place.switch} reports no rate of its port {place.port}", "give the link a rate")
        return CountedLink(place.switch, place.port, direction, float(rate))

    def _where(self, host: str) -> Place:
        place = self._hosts.get(self._addresses.get(host, host.lower()))
        if place is None:
            raise BadValue(f"no host {host!r} has been seen", "name a hardware or IPv4 address that has sent frames")
        return place

    def _place(self, advertised: PortAdvertisement) -> Place | None:
        for switch in self.switches.values():
            if switch.dpid == advertised.dpid and advertised.port in switch.ports:
                return Place(switch.name, advertised.port)
        return None

    def _is_between_switches(self, place: Place) -> bool:
        return place in self._seen or any(there == place for there, _ in self._seen.values())

    def _forget(self, gone: Callable[[Place], bool]) -> None:
        self._seen = {here: seen for here, seen in self._seen.items() if not gone(here) and not gone(seen[0])}
        self._hosts = {mac: place for mac, place in self._hosts.items() if not gone(place)}

    def _advertise_all(self) -> None:
        for switch in self.switches.values():
            for number in switch.ports:
                self._advertise(switch, number)

    def _advertise(self, switch: ConnectedSwitch, number: int) -> None:
        port = switch.ports[number]
        if port.up:
            frame = PortAdvertisement(switch.dpid, number, self._hold_s).frame(port.mac)
            switch.send(PacketOut(frame, f"output:{number}"))
