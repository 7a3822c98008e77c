"""The way of one packet through a network: what each switch and router on it would do, and how long it would take.

It is worked out from flow tables, learnt addresses, routes and queues as they are now. Nothing is sent.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.open_vswitch import is_open_vswitch
from twinnet.units import format_duration

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab.parts import Layout

__all__ = ["Exit", "Follower", "Hop", "Packet", "Step", "Way", "follow"]

PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}
_OVERHEAD = {"ethernet": 24, "hdlc": -7, "none": 0}
"""Bytes on the wire beyond a frame's own: of IEEE 802.3 preamble, start delimiter, frame check sequence and interframe
gap; of HDLC a shorter header, check sequence and flag."""
_MOST_HOPS = 200
"""Nodes that are visited at most: a flood of a large network, or a loop."""
_WORDS = {
    "group": "group {number}",
    "meter": "meter {number} (taken to let it pass)",
    "normal": "as a learning switch does",
    "controller": "to the controller",
    "rewrite": "changed: {text}",
    "learn": "teaches {text}",
    "route": "{text}",
    "drop": "dropped: {text}",
    "arrived": "arrived",
}


@dataclass(frozen=True)
class Packet:
    """A packet that is followed.

    Parameters
    ----------
    protocol
        ``udp``, ``tcp`` (the first segment of a connection) or ``icmp`` (an echo request).
    port, source_port
        The ports that it is for and from.
    size
        Bytes of its payload, 0 to 9000.
    """

    protocol: str = "udp"
    port: int = 5001
    source_port: int = 49152
    size: int = 64

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise BadValue(f"no packet of {self.protocol!r} can be followed", did_you_mean(self.protocol, PROTOCOLS))
        for name, value, most in (("port", self.port, 65535), ("source_port", self.source_port, 65535),
                                  ("size", self.size, 9000)):  # fmt: skip
            if not 0 <= value <= most:
                raise BadValue(f"{name} is {value}; allowed are whole numbers from 0 to {most}")

    def of(self, source: str, destination: str) -> bytes:
        """Return the packet from the IP header on; of the payload there are zeros, and no checksum above IPv4."""
        version = ip_address(source).version
        payload = bytes(self.size)
        if self.protocol == "udp":
            payload = struct.pack("!HHHH", self.source_port, self.port, 8 + self.size, 0) + payload
        elif self.protocol == "tcp":
            payload = struct.pack("!HHIIBBHHH", self.source_port, self.port, 0, 0, 0x50, 2, 65535, 0, 0) + payload
        else:
            payload = struct.pack("!BBHHH", 8 if version == 4 else 128, 0, 0, 1, 1) + payload
        addresses = ip_address(source).packed + ip_address(destination).packed
        if version == 6:
            number = PROTOCOLS[self.protocol] if self.protocol != "icmp" else 58
            return struct.pack("!IHBB", 6 << 28, len(payload), number, 64) + addresses + payload
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, PROTOCOLS[self.protocol], 0)
        return head + addresses + payload


@dataclass(frozen=True)
class Step:
    """One thing that a node would do with the packet."""

    kind: str
    """``table`` (a look-up), ``group``, ``meter``, ``normal`` (as a learning switch), ``rewrite``, ``learn``,
    ``controller``, ``route``, ``arrived`` or ``drop``."""
    number: int | None = None
    """That of the table, group, meter or controller."""
    text: str = ""
    """The flow entry, the new values of fields, the route, or why the packet is dropped."""

    def __str__(self) -> str:
        if self.kind == "table":
            return f"table {self.number}: {self.text or 'no flow matches'}"
        return _WORDS[self.kind].format(number=self.number, text=self.text)


@dataclass(frozen=True)
class Exit:
    """A port by which the packet would leave a node."""

    interface: str
    """The port's name."""
    to: str
    """The interface at the other end of its link."""
    queue: int
    """The queue of the port; 0: the default one."""
    waits_ps: int
    """How long it would wait behind the frames that are in the port's queues now, all of them sent first."""
    sends_ps: int
    """How long the line takes to send it, with its framing."""
    delay_ps: int
    """The line's delay."""
    frames: int
    """The frames that are in the port's queues now."""
    up: bool
    """False if the link is down."""

    def __str__(self) -> str:
        return self._told(with_times=True)

    def as_dict(self, with_times: bool = True) -> dict[str, Any]:
        """Return all of it for JSON; without times the settings of the line cannot be read from it."""
        times = () if with_times else ("waits_ps", "sends_ps", "delay_ps")
        return {name: value for name, value in vars(self).items() if name not in times} | {
            "text": self._told(with_times)
        }

    def _told(self, with_times: bool) -> str:
        if not self.up:
            return f"{self.interface} to {self.to}: the link is down"
        queue = f", queue {self.queue}" if self.queue else ""
        told: list[str] = []
        if self.frames:
            time = f" {format_duration(self.waits_ps)}" if with_times else ""
            told.append(f"waits{time} behind {self.frames} frame{'' if self.frames == 1 else 's'}")
        if with_times:
            told += [f"sends {format_duration(self.sends_ps)}", f"delay {format_duration(self.delay_ps)}"]
        return f"{self.interface} to {self.to}{queue}{': ' if told else ''}{', '.join(told)}"


@dataclass(frozen=True)
class Hop:
    """A node that the packet would come to."""

    node: str
    """Its name."""
    interface: str
    """The interface by which the packet comes in; empty at its source."""
    depth: int
    """How many links the packet crossed to it."""
    steps: tuple[Step, ...]
    """What would be done with it, in order."""
    exits: tuple[Exit, ...]
    """Where it would leave."""

    @property
    def has_arrived(self) -> bool:
        """True if the packet was for this node."""
        return any(step.kind == "arrived" for step in self.steps)


@dataclass(frozen=True)
class Way:
    """The way of a packet: the nodes that it, or a copy of it, would come to, in order.

    Attributes
    ----------
    source, destination
        The host that sends it, and the address that it is for.
    hops
        The nodes; copies that a flood makes are followed too.
    whole
        False if there were too many nodes to follow it further.
    """

    source: str
    destination: str
    hops: tuple[Hop, ...] = field(default=())
    whole: bool = True

    @property
    def arrives(self) -> bool:
        """True if it would come to its destination."""
        return any(hop.has_arrived for hop in self.hops)

    def as_dict(self, with_times: bool = True) -> dict[str, Any]:
        """Return all of it for JSON; times are in picoseconds, and left out where they would tell how lines are set."""
        hops = [
            {
                "node": hop.node,
                "interface": hop.interface,
                "depth": hop.depth,
                "steps": [{"kind": step.kind, "text": str(step)} for step in hop.steps],
                "exits": [one.as_dict(with_times) for one in hop.exits],
            }
            for hop in self.hops
        ]
        return {"source": self.source, "destination": self.destination, "arrives": self.arrives, "hops": hops,
                "whole": self.whole}  # fmt: skip

    def __str__(self) -> str:
        lines = list[str]()
        for hop in self.hops:
            indent = "  " * hop.depth
            lines.append(f"{indent}{hop.node}{f' by {hop.interface}' if hop.interface else ''}")
            lines += [f"{indent}  {step}" for step in hop.steps]
            lines += [f"{indent}  > {one}" for one in hop.exits]
        if not self.whole:
            lines.append(f"(not followed beyond {_MOST_HOPS} nodes)")
        return "\n".join([*lines, "it arrives" if self.arrives else "it does not arrive"])


class _Frame(NamedTuple):
    """A frame that comes to a node by one of its interfaces (the source: none)."""

    node: str
    port: int | None
    frame: bytes
    depth: int


def follow(lab: Lab, source: str, destination: str, packet: Packet, version: int = 4) -> Way:
    """Return the way of `packet` from the host `source` to the host or address `destination`.

    Raises
    ------
    UnknownNode, BadValue, BadTopology
        `source` is no host, or has no address of this `version` of IP.
    LabClosed
        The lab has ended.
    """
    return Follower(lab).follow(source, destination, packet, version)


class Follower:
    """Follows packets through `lab` with its queues as they are when this is made."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._layout: Layout = lab.layout
        self._directions = {str(row[way]["port"]): row[way] for row in lab.connection.links() for way in ("ab", "ba")}
        self._far_ends = dict[tuple[str, int], tuple[str, int]]()
        for link in self._layout.links:
            a, b = ((link[end]["node"], link[end]["port"]) for end in ("a", "b"))
            self._far_ends |= {a: b, b: a}

    def follow(self, source: str, destination: str, packet: Packet, version: int = 4) -> Way:
        """Return the way of `packet`; as :func:`follow`."""
        address = self._layout.address(destination, version)
        from_address = self._layout.address(source, ip_address(address).version)
        return self._walk(source, address, packet.of(from_address, address))

    def _walk(self, source: str, destination: str, packet: bytes) -> Way:
        waiting = deque([_Frame(source, None, packet, 0)])
        hops, seen = list[Hop](), set[tuple[str, int | None, bytes]]()
        while waiting and len(hops) < _MOST_HOPS:
            came = waiting.popleft()
            if (came.node, came.port, came.frame) in seen:
                hops.append(Hop(came.node, self._name(came), came.depth, (Step("drop", text="a loop"),), ()))
                continue
            seen.add((came.node, came.port, came.frame))
            node = self._layout.node(came.node)
            steps, sent = self._treated(node, came)
            exits = [self._exit(came.node, port, queue, frame) for port, queue, frame in sent]
            hops.append(Hop(came.node, self._name(came), came.depth, tuple(steps), tuple(exits)))
            for (port, _, frame), leaves in zip(sent, exits, strict=True):
                if leaves.up:
                    far = self._far_ends[came.node, port]
                    waiting.append(_Frame(*far, frame, came.depth + 1))
        return Way(source, destination, tuple(hops), whole=not waiting)

    def _treated(self, node: Mapping[str, Any], came: _Frame) -> tuple[Sequence[Step], list[tuple[int, int, bytes]]]:
        """What the node does, and by which of its ports, into which queue, the frame leaves in which form."""
        if is_open_vswitch(node):
            return [Step("route", text="Open vSwitch decides: ask it with ovs-appctl ofproto/trace")], []
        if node["kind"] == "switch":
            return self._switched(node, came)
        return self._routed(node, came) if node["kind"] == "host" else ([Step("route", text="it leaves the lab")], [])

    def _name(self, came: _Frame) -> str:
        return "" if came.port is None else self._port(came.node, came.port)

    def _port(self, node: str, index: int) -> str:
        """The name of a node's interface; what leads out of the lab has only its own."""
        ports = self._layout.node(node).get("ports", ())
        return str(ports[index].get("name", node)) if index < len(ports) else node

    def _switched(self, node: Mapping[str, Any], came: _Frame) -> tuple[Sequence[Step], list[tuple[int, int, bytes]]]:
        ports = node["ports"]
        number = ports[came.port]["number"]
        followed = self._lab.connection.follow(switch=came.node, in_port=number, frame=came.frame.hex())
        steps = [Step(step["kind"], step.get("number"), step.get("text") or "") for step in followed["steps"]]
        indices = {port["number"]: index for index, port in enumerate(ports)}
        sent = [(indices[one["port"]], one["queue"], bytes.fromhex(one["frame"])) for one in followed["outputs"]]
        return steps, sent

    def _routed(self, node: Mapping[str, Any], came: _Frame) -> tuple[Sequence[Step], list[tuple[int, int, bytes]]]:
        """What a host or a router does: it takes what is for it, and sends on what is not if it forwards."""
        packet = came.frame
        if came.port is not None:
            mac = bytes.fromhex(node["ports"][came.port]["mac"].replace(":", ""))
            if packet[:6] != mac and not packet[0] & 1:
                return [Step("drop", text="it is for another station")], []
            ethertype, packet = packet[12:14], packet[14:]
            if ethertype not in (b"\x08\x00", b"\x86\xdd"):
                return [Step("drop", text="it is no IP packet")], []
        version = packet[0] >> 4
        destination = str(ip_address(packet[16:20] if version == 4 else packet[24:40]))
        if destination in _addresses(node):
            return [Step("arrived")], []
        if came.port is not None:
            if not node["forwarding"]:
                return [Step("drop", text=f"it is for {destination}, and {came.node} forwards nothing")], []
            place = 8 if version == 4 else 7
            if packet[place] <= 1:
                return [Step("drop", text="its time to live ran out")], []
            packet = packet[:place] + bytes([packet[place] - 1]) + packet[place + 1 :]
        found = _route(node, destination)
        if found is None:
            return [Step("drop", text=f"no route to {destination}")], []
        port, via, text = found
        owner = self._station(via)
        if owner is None:
            return [Step("route", text=text), Step("drop", text=f"nobody has the address {via}")], []
        ethertype = b"\x08\x00" if version == 4 else b"\x86\xdd"
        frame = owner + bytes.fromhex(node["ports"][port]["mac"].replace(":", "")) + ethertype + packet
        return [Step("route", text=text)], [(port, 0, frame)] if (came.node, port) in self._far_ends else []

    def _station(self, address: str) -> bytes | None:
        """The hardware address of the interface that has `address`."""
        for node in self._layout.nodes.values():
            for port in node.get("ports", ()) if node["kind"] == "host" else ():
                if address in (str(ip_interface(one).ip) for one in port.get("addresses") or ()):
                    return bytes.fromhex(port["mac"].replace(":", ""))
        return None

    def _exit(self, node: str, port: int, queue: int, frame: bytes) -> Exit:
        name = self._port(node, port)
        row = self._directions[name]
        # A way without settings of its own is a tunnel's, whose line is the underlay's.
        config = cast("Mapping[str, Any]", row["config"] or {"rate_bps": None, "framing": "none", "delay_ps": 0})
        rate, framing, counters = int(config["rate_bps"] or 0), str(config["framing"]), row["counters"]

        def sends_ps(frames: int, octets: int) -> int:
            return (octets + _OVERHEAD[framing] * frames) * 8 * 10**12 // rate if rate else 0

        waiting = int(counters["backlog_frames"])
        return Exit(
            interface=name,
            to=self._port(*self._far_ends[node, port]),
            queue=queue,
            waits_ps=sends_ps(waiting, int(counters["backlog_bytes"])),
            sends_ps=sends_ps(1, max(60 if framing == "ethernet" else 0, len(frame))),
            delay_ps=int(config["delay_ps"]),
            frames=waiting,
            up=bool(row["up"]),
        )


def _addresses(node: Mapping[str, Any]) -> set[str]:
    return {str(ip_interface(one).ip) for port in node["ports"] for one in port.get("addresses") or ()}


def _route(node: Mapping[str, Any], destination: str) -> tuple[int, str, str] | None:
    """The port to `destination`, the next address on the way, and the route in words: the longest prefix wins."""
    address = ip_address(destination)
    direct = [
        (network.prefixlen, port, destination, f"{network} is at {node['ports'][port]['name']}")
        for port, network in _networks(node)
        if address in network
    ]
    routes = list[tuple[int, int, str, str]]()
    for route in node.get("routes", ()):
        every = "0.0.0.0/0" if address.version == 4 else "::/0"
        network = ip_network(every if route["to"] == "default" else route["to"], strict=False)
        via = ip_address(route["via"])
        if via.version != address.version or address not in network:
            continue
        routes += [
            (network.prefixlen, port, str(via), f"{route['to']} via {via} by {node['ports'][port]['name']}")
            for port, at in _networks(node)
            if via in at
        ][:1]
    found = max([*direct, *routes], key=lambda one: one[0], default=None)
    return found and found[1:]


def _networks(node: Mapping[str, Any]) -> list[tuple[int, Any]]:
    ports = enumerate(node["ports"])
    return [(index, ip_interface(one).network) for index, port in ports for one in port.get("addresses") or ()]
