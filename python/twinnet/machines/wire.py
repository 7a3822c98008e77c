"""Lines of JSON between a lab and the agents of its machines: bounded, and read as data only."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any, cast

__all__ = ["Lines", "WireError", "line_of"]

_READ_BYTES = 1 << 18


class WireError(Exception):
    """What came is no message of an agent's protocol."""


def line_of(message: dict[str, Any]) -> bytes:
    """Return `message` as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Lines that come in by a file descriptor.

    Parameters
    ----------
    descriptor
        Where they come from.
    most_bytes
        The longest line that is taken.
    """

    def __init__(self, descriptor: int, most_bytes: int) -> None:
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0

    def next_line(self, timeout_s: float) -> bytes | None:
        """Return the next line without its end; ``None`` when nothing more will come.

        Raises
        ------
        TimeoutError
            Nothing came for `timeout_s` seconds.
        WireError
            The line is too long.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            if self._parts and (end := self._parts[-1].find(b"\n")) >= 0:
                last = self._parts.pop()
                whole = b"".join([*self._parts, last[:end]])
                rest = last[end + 1 :]
                self._parts, self._held_bytes = ([rest] if rest else []), len(rest)
                return whole
            if self._held_bytes > self._most_bytes:
                raise WireError(f"a line is longer than {self._most_bytes} bytes")
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise TimeoutError
            data = os.read(self._descriptor, _READ_BYTES)
            if not data:
                return None
            self._parts.append(data)
            self._held_bytes += len(data)

    def next_message(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next line as a message; raises as :meth:`next_line`, and `WireError` where it is no object."""
        line = self.next_line(timeout_s)
        if line is None:
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise WireError(f"a line is no JSON: {line[:200]!r}") from None
        if not isinstance(message, dict):
            raise WireError(f"a line is no JSON object: {line[:200]!r}")
        return cast("dict[str, Any]", message)
