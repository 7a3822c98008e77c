"""A switch of OpenFlow 1.0 that is made a learning switch: the messages of its connection (OpenFlow 1.0.0, section 5).

Mininet's own controller speaks this version, so that exercises with a protocol analyser show it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection

from twinnet.control.framing import ECHO_REPLY, ECHO_REQUEST, HEADER, Framing

__all__ = ["VERSION", "Session10"]

VERSION = 1
_HELLO, _FEATURES_REQUEST, _SET_CONFIG, _PACKET_IN, _PORT_STATUS, _PACKET_OUT, _FLOW_MOD = 0, 5, 9, 10, 12, 13, 14
_ADD, _DELETE = 0, 3
_FLOOD, _NO_PORT = 0xFFFB, 0xFFFF
_NO_BUFFER = 0xFFFF_FFFF
_EVERY_FIELD = (1 << 22) - 1
_IN_PORT, _VLAN, _SOURCE, _DESTINATION = 1, 2, 4, 8
"""Bits of fields that do not count in a match."""
_MATCH = struct.Struct("!IH6s6sHBxHBBxxIIHH")
_FLOW = struct.Struct("!QHHHHIHH")
_OUT_HEAD = struct.Struct("!IHH")
_OUTPUT = struct.Struct("!HHHH")
_IDLE_S = 60
_PRIORITY = 1
_UNTAGGED = 0xFFFF
_PORT_DELETED = 1
_PORT_DOWN, _LINK_DOWN = 1, 1
_WHOLE_FRAME = 0xFFFF


class Session10:
    """The controller's end of a connection.

    Parameters
    ----------
    peers
        All sessions of the controller: when a port goes down, hosts may be elsewhere for every switch.
    """

    def __init__(self, peers: Collection[object]) -> None:
        self._peers = peers
        self._framing = Framing()
        self._out = bytearray()
        self._xid = 0
        self._stations: dict[tuple[int, bytes], int] = {}
        self._say(_HELLO)

    def _say(self, kind: int, body: bytes = b"", xid: int | None = None) -> None:
        if xid is None:
            self._xid = self._xid % 0x7FFF_FFFF + 1
            xid = self._xid
        self._out += HEADER.pack(VERSION, kind, HEADER.size + len(body), xid) + body

    def take(self) -> bytes:
        """Return what is to be sent to the switch, and forget it."""
        out, self._out = bytes(self._out), bytearray()
        return out

    def close(self) -> None:
        """The connection has ended."""

    def receive(self, data: bytes) -> None:
        """Deal with bytes of the switch; raises `NotOpenFlow`, and `struct.error` for messages that are too short."""
        for message in self._framing.push(data):
            _, kind, _, xid = HEADER.unpack_from(message)
            body = message[HEADER.size :]
            if kind == _HELLO:
                self._say(_FEATURES_REQUEST)
                self._say(_SET_CONFIG, struct.pack("!HH", 0, _WHOLE_FRAME))
            elif kind == ECHO_REQUEST:
                self._say(ECHO_REPLY, body, xid)
            elif kind == _PACKET_IN:
                self._forward(body)
            elif kind == _PORT_STATUS:
                self._look_at_port(body)

    def _forward(self, body: bytes) -> None:
        """Learn where the sender is, and send the frame on: by a flow, when its receiver is known."""
        buffer, _, in_port = _OUT_HEAD.unpack_from(body)
        frame = body[10:]
        destination, source = frame[:6], frame[6:12]
        if len(source) < 6:
            return
        vlan = int.from_bytes(frame[14:16], "big") & 0x0FFF if frame[12:14] == b"\x81\x00" else _UNTAGGED
        if not source[0] & 1:
            self._stations[vlan, source] = in_port
        port = None if destination[0] & 1 else self._stations.get((vlan, destination))
        # A frame that would go back by the port that it came in by has reached its receiver there.
        actions = b"" if port == in_port else _OUTPUT.pack(0, _OUTPUT.size, port or _FLOOD, 0)
        if port is not None:
            fields = _EVERY_FIELD & ~(_IN_PORT | _VLAN | _SOURCE | _DESTINATION)
            match = _MATCH.pack(fields, in_port, source, destination, vlan, 0, 0, 0, 0, 0, 0, 0, 0)
            flow = _FLOW.pack(0, _ADD, _IDLE_S, 0, _PRIORITY, buffer, _NO_PORT, 0)
            self._say(_FLOW_MOD, match + flow + actions)
            if buffer != _NO_BUFFER or not actions:
                return
        data = frame if buffer == _NO_BUFFER else b""
        self._say(_PACKET_OUT, _OUT_HEAD.pack(buffer, in_port, len(actions)) + actions + data)

    def _look_at_port(self, body: bytes) -> None:
        """Forget what was learnt when a port is gone or down."""
        reason, config, state = body[0], *struct.unpack_from("!II", body, 32)
        if reason == _PORT_DELETED or config & _PORT_DOWN or state & _LINK_DOWN:
            for peer in self._peers:
                if isinstance(peer, Session10):
                    peer.forget()

    def forget(self) -> None:
        """Forget all addresses, here and in the switch."""
        self._stations = {}
        match = _MATCH.pack(_EVERY_FIELD, 0, b"", b"", 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self._say(_FLOW_MOD, match + _FLOW.pack(0, _DELETE, 0, 0, 0, _NO_BUFFER, _NO_PORT, 0))
