"""Any switch that speaks OpenFlow over TCP as a target, its ports cabled to interfaces of this machine."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence

from twinnet.conformance import openflow13 as of
from twinnet.conformance.bench import Bench
from twinnet.conformance.open_vswitch import SocketConnection
from twinnet.conformance.target import NotPossible
from twinnet.errors import BadValue

__all__ = ["Remote"]

ALL_PROTOCOLS = 3
LONGEST_FRAME = 65535
PORTS = 4
CONNECT_S = 10.0
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
            self._sockets[number] = opened

    @property
    def ports(self) -> Sequence[int]:
        """Numbers of the ports."""
        return list(self._sockets)

    def connect(self, version: int) -> SocketConnection:
        """Connect to the switch, or wait until it connects."""
        try:
            if self._listener is not None:
                return SocketConnection(self._listener.accept()[0])
            return SocketConnection(socket.create_connection(self._address, timeout=CONNECT_S))
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
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < SETTLE_S:
            before = len(found)
            for number, opened in self._sockets.items():
                with contextlib.suppress(BlockingIOError):
                    frame, address = opened.recvfrom(LONGEST_FRAME)
                    if address[2] != socket.PACKET_OUTGOING:
                        found.append((number, frame))
            if len(found) > before:
                quiet_since = time.monotonic()
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
        finally:
            bench.close()
        self.arrived()

    def stop(self) -> None:
        """Close what was opened."""
        for opened in self._sockets.values():
            opened.close()
        if self._listener is not None:
            self._listener.close()
