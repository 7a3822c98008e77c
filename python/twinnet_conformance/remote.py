"""Any switch that speaks OpenFlow over TCP as a target, its ports cabled to interfaces of this machine."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence

from twinnet.errors import BadValue

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import HELLO_BODY_13, Bench
from twinnet_conformance.open_vswitch import SocketConnection
from twinnet_conformance.target import NotPossible

__all__ = ["Remote"]

ALL_PROTOCOLS = 3
LONGEST_FRAME = 65535
PORTS = 4
CONNECT_S = 10.0
SOL_PACKET, PACKET_AUXDATA = 263, 8
AUXILIARY = struct.Struct("=IIIHHHH")
"""Status, length, captured length, places of the headers, tag and its type: `struct tpacket_auxdata`."""
TAG_VALID, TAG_TYPE_VALID = 0x10, 0x40
NO_CHANGE = 0
NO_GENERATION, LONGEST_STEP = (1 << 64) - 1, 1 << 62
SETTLE_S = 0.1
"""How long a frame may take from one interface through the switch to another."""


class Remote:
    """A switch that listens (``tcp:HOST:PORT``) or that connects to us (``ptcp:PORT``), ports 1 to 4 at interfaces.

    Parameters
    ----------
    where
        ``tcp:HOST:PORT`` or ``ptcp:PORT``.
    interfaces
        By port number the interface at the other end of the port's cable.
    """

    patience_s = 2.0
    takes_ports_down = True

    def __init__(self, where: str, interfaces: Sequence[tuple[int, str]]) -> None:
        if len(interfaces) != PORTS:
            raise BadValue(
                f"{len(interfaces)} ports are given, and {PORTS} are needed",
                "name each with --port NUMBER=INTERFACE, where INTERFACE is the other end of the port's cable",
            )
        self.name = where
        kind, _, rest = where.partition(":")
        host, _, port = rest.rpartition(":")
        if kind not in ("tcp", "ptcp") or not port.isdecimal():
            raise BadValue(
                f'"{where}" names no switch', "write tcp:HOST:PORT, or ptcp:PORT for one that connects to us"
            )
        self._address = (host or "127.0.0.1", int(port))
        self._listener = socket.create_server(("", int(port))) if kind == "ptcp" else None
        if self._listener is not None:
            self._listener.settimeout(CONNECT_S)
        self._sockets: dict[int, socket.socket] = {}
        for number, interface in interfaces:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
            opened.bind((interface, ALL_PROTOCOLS))
            opened.setblocking(False)
            opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            self._sockets[number] = opened

    @property
    def ports(self) -> Sequence[int]:
        """Numbers of the ports."""
        return list(self._sockets)

    def connect(self, version: int) -> SocketConnection:
        """Connect to the switch, or wait until it connects."""
        try:
            if self._listener is None:
                return _Listened(socket.create_connection(self._address, timeout=CONNECT_S), version)
            connected = self._listener.accept()[0]
            # A switch leaves when its connection has waited here unanswered for long.
            while _is_over(connected):
                connected.close()
                connected = self._listener.accept()[0]
            return SocketConnection(connected)
        except TimeoutError:
            raise NotPossible(f"the switch made no connection within {CONNECT_S:.0f} s") from None

    def settle(self) -> None:
        """A barrier's answer is taken as it is."""

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame from the interface."""
        self._sockets[port].send(frame)

    def arrived(self) -> list[tuple[int, bytes]]:
        """Return what has come to the interfaces, when nothing has for a while."""
        found: list[tuple[int, bytes]] = []
        numbers = {opened: number for number, opened in self._sockets.items()}
        quiet_at = time.monotonic() + SETTLE_S
        while (left := quiet_at - time.monotonic()) > 0:
            for opened in select.select(list(numbers), [], [], left)[0]:
                frame, ancillary, _, address = opened.recvmsg(LONGEST_FRAME, socket.CMSG_SPACE(AUXILIARY.size))
                # Those that we have sent are reported as well.
                if address[2] != socket.PACKET_OUTGOING:
                    found.append((numbers[opened], _with_tag(frame, ancillary)))
                    quiet_at = time.monotonic() + SETTLE_S
        return sorted(found, key=lambda one: one[0])

    def advance(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def set_link(self, port: int, up: bool) -> None:
        """Cables are not pulled."""
        raise NotPossible("the cables of a switch elsewhere cannot be pulled from here")

    def set_queues(self, port: int, rates: Sequence[tuple[int, int]]) -> None:
        """Queues are not OpenFlow's to make."""
        raise NotPossible("OpenFlow cannot make the queues of a switch elsewhere")

    def reset(self) -> None:
        """Delete flows, groups and meters, and put ports and configuration back."""
        bench = Bench(self)
        try:
            bench.send(
                of.flow_mod({}, command=of.DELETE, table=of.ALL_TABLES),
                of.group_mod(of.ALL_GROUPS, command=2),
                of.meter_mod(of.ALL_METERS, command=2),
                of.set_config(0, 128),
            )
            for number, port in bench.port_descriptions().items():
                if number in self._sockets and port.config:
                    bench.send(of.port_mod(number, port.address, 0, port.config))
            bench.barrier()
            _forget_generation(bench)
        finally:
            bench.close()
        self.arrived()

    def stop(self) -> None:
        """Close what was opened."""
        for opened in self._sockets.values():
            opened.close()
        if self._listener is not None:
            self._listener.close()


class _Listened(SocketConnection):
    """A connection to a switch that listens.

    Who connects to it counts as a tool, to which it tells nothing of itself: ours and Open vSwitch tell one all that
    they tell a controller when it has set the configuration.
    """

    def __init__(self, connected: socket.socket, version: int) -> None:
        super().__init__(connected)
        hellos = [
            bytes([version, of.HELLO]) + struct.pack("!HI", 8 + len(body), 1) + body for body in (b"", HELLO_BODY_13)
        ]
        self._hellos: list[bytes] = hellos
        configuration = of.set_config(0, 128).body
        self._set = bytes([version, of.SET_CONFIG]) + struct.pack("!HI", 8 + len(configuration), 0) + configuration

    def send(self, data: bytes) -> None:
        """Send bytes; behind a hello of the usual kind also the configuration."""
        super().send(data + self._set if data in self._hellos else data)
        self._hellos = []


def _forget_generation(bench: Bench) -> None:
    """Bring the generation of roles to that of a switch that has heard of none, by steps that count as newer ones."""
    reported = bench.ask(of.role_request(NO_CHANGE), of.ROLE_REPLY)
    generation = int.from_bytes(reported.body[8:16])
    while generation != NO_GENERATION:
        generation = min(generation + LONGEST_STEP, NO_GENERATION)
        bench.ask(of.role_request(of.SLAVE, generation), of.ROLE_REPLY)


def _is_over(connected: socket.socket) -> bool:
    """Return whether the other side has ended the connection."""
    looked = select.poll()
    looked.register(connected, select.POLLRDHUP)
    return bool(looked.poll(0))


def _with_tag(frame: bytes, ancillary: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Return the frame as it was on the wire: Linux takes the outer VLAN tag out of it, and hands it over beside."""
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and len(data) >= AUXILIARY.size:
            status, *_, tag, tag_type = AUXILIARY.unpack_from(data)
            if status & TAG_VALID:
                tag_type = tag_type if status & TAG_TYPE_VALID else 0x8100
                return frame[:12] + struct.pack("!HH", tag_type, tag) + frame[12:]
    return frame
