"""Cutting a stream of bytes into OpenFlow messages: eight bytes of header, of which two are the length."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["ECHO_REPLY", "ECHO_REQUEST", "HEADER", "HEADER_BYTES", "Framing", "NotOpenFlow"]

HEADER = struct.Struct("!BBHI")
"""Version, type, length, transaction."""
HEADER_BYTES = HEADER.size
ECHO_REQUEST, ECHO_REPLY = 2, 3
"""The types of these messages, the same in every version."""


class NotOpenFlow(Exception):
    """The bytes are no OpenFlow: a length that is shorter than a header. `rest` is what has not been cut."""

    def __init__(self, rest: bytes) -> None:
        super().__init__("a message says that it is shorter than its header")
        self.rest = rest


class Framing:
    """The bytes of a connection that are no whole message yet."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def push(self, data: bytes) -> Iterator[bytes]:
        """Add `data`, and give each message that is whole now; raises `NotOpenFlow`."""
        self._rest += data
        while len(self._rest) >= HEADER_BYTES:
            length = HEADER.unpack_from(self._rest)[2]
            if length < HEADER_BYTES:
                rest, self._rest = bytes(self._rest), bytearray()
                raise NotOpenFlow(rest)
            if len(self._rest) < length:
                return
            message = bytes(self._rest[:length])
            del self._rest[:length]
            yield message
