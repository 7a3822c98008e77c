"""A switch under test and one controller that looks at it closely: what the bodies of cases are written with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from twinnet_conformance import openflow13 as of
from twinnet_conformance.openflow13 import Message, Received, Refusal
from twinnet_conformance.target import Connection, NotPossible, Target

__all__ = ["Bench", "Channel", "Failure"]

HELLO_BODY_13 = bytes([0, 1, 0, 8, 0, 0, 0, 0x10])
LONGEST_STEP_S = 4.0
"""Of passing time: a switch that hears nothing for long takes its controller for dead."""
_BARRIERS = {1: (18, 19), 4: (of.BARRIER_REQUEST, of.BARRIER_REPLY)}


class Failure(AssertionError):
    """The switch did not do what the specification says."""


def check(fine: bool, what: str) -> None:
    """Raise `Failure` that says `what` unless all is `fine`."""
    if not fine:
        raise Failure(what)


class Channel:
    """A controller's connection, in messages."""

    def __init__(self, connection: Connection, version: int, patience_s: float) -> None:
        self.connection = connection
        self.version = version
        self._patience_s = patience_s
        self._bytes = b""
        self._xid = 0
        self.unread: list[Received] = []
        """Messages that came and that nobody has asked for."""

    def greet(self) -> None:
        """Agree on the version."""
        self.send(Message(of.HELLO, HELLO_BODY_13 if self.version == of.VERSION else b"", self.version))
        self.wait_for(of.HELLO)

    def send(self, *messages: Message) -> int:
        """Send messages, and return the transaction of the last one."""
        data = b""
        for message in messages:
            self._xid += 1
            head = bytes([message.version, message.kind]) + (8 + len(message.body)).to_bytes(2)
            data += head + self._xid.to_bytes(4) + message.body
        self.connection.send(data)
        return self._xid

    def collect(self, patience_s: float = 0.0) -> None:
        """Take in what has come."""
        self._bytes += self.connection.receive(patience_s)
        while len(self._bytes) >= 8:
            length = int.from_bytes(self._bytes[2:4])
            check(length >= 8, f"the switch sent a message of {length} bytes")
            if len(self._bytes) < length:
                break
            message, self._bytes = self._bytes[:length], self._bytes[length:]
            received = Received(message[0], message[1], int.from_bytes(message[4:8]), message[8:])
            if received.kind == of.ECHO_REQUEST:
                self.connection.send(message[:1] + bytes([of.ECHO_REPLY]) + message[2:])
            else:
                self.unread.append(received)

    def wait_for(self, kind: int, xid: int | None = None) -> Received:
        """Return the first message of `kind` (and of the transaction), and leave the others where they are."""
        deadline = time.monotonic() + self._patience_s
        while True:
            self.collect()
            for at, message in enumerate(self.unread):
                if message.kind == kind and xid in (None, message.xid):
                    return self.unread.pop(at)
            left = deadline - time.monotonic()
            if left <= 0 or self.connection.closed:
                raise Failure(f"no message of type {kind} came; there is {[one.kind for one in self.unread]}")
            self.collect(left)

    def take(self, kind: int) -> list[Received]:
        """Return all messages of `kind` that have come."""
        self.collect()
        taken = [message for message in self.unread if message.kind == kind]
        self.unread = [message for message in self.unread if message.kind != kind]
        return taken

    def barrier(self) -> None:
        """Wait until the switch has dealt with all that was sent."""
        request, reply = _BARRIERS[self.version]
        xid = self.send(Message(request, b"", self.version))
        self.wait_for(reply, xid)

    def answers(self, message: Message) -> list[Received]:
        """Return what the switch answers to a message, up to a barrier behind it."""
        xid = self.send(message)
        self.barrier()
        mine = [one for one in self.unread if one.xid == xid]
        self.unread = [one for one in self.unread if one.xid != xid]
        return mine

    def refusal(self, message: Message) -> Refusal | None:
        """Return the error that answers a message; `None` when it is obeyed."""
        errors = [one for one in self.answers(message) if one.kind == of.ERROR]
        return of.read_refusal(errors[0]) if errors else None

    def obeyed(self, *messages: Message) -> None:
        """Send messages that the switch must obey."""
        for message in messages:
            refusal = self.refusal(message)
            check(refusal is None, f"message of type {message.kind} was refused with {refusal}")

    def refused(self, message: Message, kind: int, *codes: int, lacking: tuple[int, int] | None = None) -> None:
        """Send a message that the switch must refuse, with one of these codes.

        `lacking` is what a switch answers that does not have what the message is about: other cases tell that.
        """
        refusal = self.refusal(message)
        if refusal is not None and refusal == lacking and refusal.code not in codes:
            raise NotPossible("the switch does not have what the case is about")
        if refusal is None:
            raise Failure(f"obeyed, where error type {kind} code {codes} is due")
        check(refusal.kind == kind and refusal.code in codes, f"{refusal}, where type {kind} code {codes} is due")

    def ask(self, message: Message, kind: int) -> Received:
        """Return the reply of `kind` to a message."""
        xid = self.send(message)
        deadline = time.monotonic() + self._patience_s
        while True:
            self.collect()
            for at, one in enumerate(self.unread):
                if one.xid == xid and one.kind in (kind, of.ERROR):
                    self.unread.pop(at)
                    refusal = of.read_refusal(one) if one.kind == of.ERROR else None
                    check(refusal is None, f"refused with {refusal}")
                    return one
            left = deadline - time.monotonic()
            check(left > 0 and not self.connection.closed, f"no reply of type {kind} came")
            self.collect(left)

    def parts(self, message: Message) -> list[bytes]:
        """Return the bodies of all parts of the reply to a multipart request."""
        xid = self.send(message)
        bodies: list[bytes] = []
        while True:
            part = self._part(xid)
            check(part.body[:2] == message.body[:2], f"a reply of multipart type {part.body[:2]!r}")
            bodies.append(part.body[8:])
            if not part.body[3] & 1:
                return bodies

    def _part(self, xid: int) -> Received:
        deadline = time.monotonic() + self._patience_s
        while True:
            self.collect()
            for at, one in enumerate(self.unread):
                if one.xid == xid:
                    self.unread.pop(at)
                    check(one.kind == of.MULTIPART_REPLY, f"a reply of type {one.kind}: {one.body[:4]!r}")
                    return one
            left = deadline - time.monotonic()
            check(left > 0 and not self.connection.closed, "the multipart reply did not come, or not to its end")
            self.collect(left)

    def multipart(self, kind: int, body: bytes = b"") -> bytes:
        """Return the whole reply to a multipart request."""
        return b"".join(self.parts(of.multipart(kind, body)))


class Bench(Channel):
    """The switch, and its first controller."""

    def __init__(self, target: Target, version: int = of.VERSION) -> None:
        super().__init__(target.connect(version), version, target.patience_s)
        self.target = target
        self.p1, self.p2, self.p3, self.p4 = target.ports
        self._arrived: list[tuple[int, bytes]] = []
        self.others: list[Channel] = []
        self.greet()

    def controller(self, version: int | None = None) -> Channel:
        """Return one more controller, that has agreed on its version."""
        wanted = self.version if version is None else version
        other = Channel(self.target.connect(wanted), wanted, self.target.patience_s)
        self.others.append(other)
        other.greet()
        return other

    def stranger(self, version: int = of.VERSION) -> Channel:
        """Return one more connection, over which the controller has not said anything."""
        other = Channel(self.target.connect(version), version, self.target.patience_s)
        self.others.append(other)
        return other

    def needs_devices(self) -> None:
        """Go on only where devices stop when they are taken down."""
        if not self.target.takes_ports_down:
            raise NotPossible("the devices of this switch do not stop when they are taken down")

    def needs_buffers(self) -> None:
        """Go on only with a switch that has buffers, which it need not have."""
        body = self.ask(Message(of.FEATURES_REQUEST, b"", self.version), of.FEATURES_REPLY).body
        if body[8:12] == bytes(4):
            raise NotPossible("the switch has no buffers, and says so")

    def close(self) -> None:
        """End the connections."""
        for one in (*self.others, self):
            one.connection.close()

    def flow(self, conditions: of.Conditions, *instructions: bytes, **rest: int) -> None:
        """Add a flow that the switch must take."""
        self.obeyed(of.flow_mod(conditions, *instructions, **rest))

    def forward(self, conditions: of.Conditions, *actions: bytes, out: int | None = None, **rest: int) -> None:
        """Add a flow that applies `actions` and sends by `out` (port 2)."""
        port = self.p2 if out is None else out
        self.flow(conditions, of.apply_actions(*actions, of.output(port)), **rest)

    def frame(self, frame: bytes, port: int | None = None, *, settled: bool = True) -> list[tuple[int, bytes]]:
        """Return the frames that come out when `frame` comes in by `port` (port 1).

        Not `settled`: right behind a barrier's answer, whether the switch says the truth by it or not.
        """
        if settled:
            self.target.settle()
        self.target.arrived()
        self.target.send(self.p1 if port is None else port, frame)
        return self.target.arrived()

    def expect(self, frame: bytes, *due: tuple[int, bytes], port: int | None = None) -> None:
        """Send `frame` and check what comes out, whatever the order of ports."""
        came = self.frame(frame, port)
        if sorted(came) != sorted(due):
            raise Failure(f"came {_in_words(came)}; due {_in_words(due)}")

    def passes(self, frame: bytes, after: bytes | None = None, port: int | None = None) -> None:
        """Check that `frame` comes out by port 2, as it was or as `after`."""
        self.expect(frame, (self.p2, frame if after is None else after), port=port)

    def drops(self, frame: bytes, port: int | None = None) -> None:
        """Check that nothing comes of `frame`."""
        self.expect(frame, port=port)

    def packet_ins(self) -> list[of.PacketIn]:
        """Return the packet-ins that have come."""
        self.barrier()
        self.barrier()
        return [of.read_packet_in(one) for one in self.take(of.PACKET_IN)]

    def packet_in(self) -> of.PacketIn:
        """Return the one packet-in that has come, or comes soon."""
        first = of.read_packet_in(self.wait_for(of.PACKET_IN))
        check(not self.packet_ins(), "more than one packet-in came")
        return first

    def flows(
        self,
        *,
        table: int = of.ALL_TABLES,
        out_port: int = of.ANY,
        out_group: int = of.ANY,
        cookie: int = 0,
        cookie_mask: int = 0,
    ) -> list[of.FlowStats]:
        """Return the flows of the switch."""
        request = of.flow_request(
            table=table, out_port=out_port, out_group=out_group, cookie=cookie, cookie_mask=cookie_mask
        )
        return [flow for body in self.parts(request) for flow in of.read_flow_stats(body)]

    def one_flow(self, table: int = of.ALL_TABLES) -> of.FlowStats:
        """Return the only flow of the switch."""
        flows = self.flows(table=table)
        check(len(flows) == 1, f"{len(flows)} flows, where one is due")
        return flows[0]

    def advance(self, seconds: float) -> None:
        """Let time pass, and answer what the switch asks meanwhile."""
        while seconds > 0:
            step = min(seconds, LONGEST_STEP_S)
            self.target.advance(step)
            seconds -= step
            for one in (self, *self.others):
                if not one.connection.closed:
                    one.collect()

    def removals(self) -> list[of.FlowRemoved]:
        """Return the flow-removed messages that have come."""
        self.barrier()
        self.barrier()
        return [of.read_flow_removed(one) for one in self.take(of.FLOW_REMOVED)]

    def port_descriptions(self) -> dict[int, of.Port]:
        """Return the ports by their number."""
        body = self.multipart(of.MP_PORT_DESCRIPTION)
        ports = [of.read_port(body[at : at + of.PORT_BYTES]) for at in range(0, len(body), of.PORT_BYTES)]
        return {port.number: port for port in ports}

    def port_stats(self, port: int) -> of.PortStats:
        """Return what was counted at a port."""
        body = self.multipart(of.MP_PORT_STATS, port.to_bytes(4) + bytes(4))
        check(len(body) == of.PORT_STATS.size, f"{len(body)} bytes of one port's counters")
        return of.PortStats(*of.PORT_STATS.unpack(body))


def _in_words(frames: Sequence[tuple[int, bytes]]) -> str:
    return ", ".join(f"port {port}: {frame.hex()}" for port, frame in frames) or "nothing"


def pairs(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of different numbers from `low` to `high`."""
    for first in range(low, high + 1):
        for second in range(low, high + 1):
            if first != second:
                yield first, second
