"""A TCP connection of an application of one's own."""

from __future__ import annotations

from collections.abc import Callable

from twinnet.errors import BadValue

__all__ = ["Act", "Connection"]

Act = tuple[str, int, bytes, int]
"""What is wanted of a connection: ``connect``, ``write``, ``finish`` or ``close``; its number; bytes; so many after
them."""


class Connection:
    """A TCP connection of an application of your own, made by
    :meth:`~twinnet.traffic.application.Application.connect`.

    Attributes
    ----------
    number
        Its number, of those of this object.
    flow
        The number of its flow.
    """

    def __init__(self, number: int, flow: int, want: Callable[[Act], None]) -> None:
        self.number: int = number
        self.flow: int = flow
        self._want = want
        self._finishes = False

    def write(self, data: bytes = b"", length: int | None = None) -> None:
        """Write to the stream. What TCP does not take at once waits; `drained` is called when it has taken all.

        Parameters
        ----------
        data
            What it says.
        length
            How many bytes are written; what `data` lacks is of any content. Default: those of `data`.

        Raises
        ------
        BadValue
            `length` is less than that of `data`, or beyond 10^15; or this half has been finished.
        """
        if self._finishes:
            raise BadValue("a write after finish()", "write first")
        whole = len(data) if length is None else length
        if not len(data) <= whole <= 10**15:
            raise BadValue(
                f"a write of {whole} bytes with {len(data)} bytes of data",
                "leave length out, or give no less than the data has",
            )
        self._want(("write", self.number, data, whole - len(data)))

    def finish(self) -> None:
        """End this half of the stream when all is sent that was written. It closes when the other end does the same."""
        self._finishes = True
        self._want(("finish", self.number, b"", 0))

    def close(self) -> None:
        """Close it at once; what waits is not sent."""
        self._want(("close", self.number, b"", 0))
