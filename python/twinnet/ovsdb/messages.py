"""Messages of JSON-RPC as OVSDB sends them: one JSON value after the other, with nothing between (RFC 7047, 4)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from twinnet.ovsdb.values import BadValue

__all__ = ["MOST_BYTES", "Messages"]

MOST_BYTES = 1 << 22
"""The longest message that is read, in bytes."""

_OPEN, _CLOSE, _QUOTE, _ESCAPE = b"{[", b"}]", ord('"'), ord("\\")


class Messages:
    """Puts the pieces that arrive together; the time that it takes grows with their length alone."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._seen = 0
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def take(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that are complete with `piece`.

        Raises
        ------
        BadValue
            What arrived is no message, or one that is too long.
        """
        self._held += piece
        while (end := self._end()) is not None:
            text, self._held, self._seen = bytes(self._held[:end]), self._held[end:], 0
            try:
                message = json.loads(text, parse_constant=_refuse, parse_float=_finite)
            except (ValueError, RecursionError):
                raise BadValue("not JSON") from None
            if not isinstance(message, dict):
                raise BadValue("not an object")
            yield message
        if len(self._held) > MOST_BYTES:
            raise BadValue(f"more than {MOST_BYTES} bytes in one message")

    def _end(self) -> int | None:
        """The place behind the first value that is held, when it is complete."""
        for at in range(self._seen, len(self._held)):
            byte = self._held[at]
            if self._in_text:
                if self._escaped:
                    self._escaped = False
                elif byte == _ESCAPE:
                    self._escaped = True
                elif byte == _QUOTE:
                    self._in_text = False
            elif byte == _QUOTE:
                self._in_text = True
            elif byte in _OPEN:
                self._depth += 1
            elif byte in _CLOSE:
                self._depth -= 1
                if self._depth <= 0:
                    self._depth = 0
                    return at + 1
            elif self._depth == 0 and byte not in b" \t\r\n":
                raise BadValue("not a message")
        self._seen = len(self._held)
        return None


def _finite(text: str) -> float:
    """The number that `text` writes; raises `ValueError` where none can be written back."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _refuse(text: str) -> NoReturn:
    """Raise `ValueError`: JSON has no ``NaN`` and ``Infinity``, which Python reads."""
    raise ValueError(text)
