"""First in, first out; what does not fit is dropped at the tail."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.ranges import stored_bytes

__all__ = ["Fifo"]


@dataclass(frozen=True)
class Fifo(Queue):
    """A FIFO limited in frames or in bytes, 1000 frames when nothing is said.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    limit
        The most data that waits, with unit, such as ``"64 KiB"``.
    """

    limit_frames: int | None = None
    limit: str | None = None

    def __post_init__(self) -> None:
        if self.limit_frames is not None and self.limit is not None:
            raise BadQueue("a FIFO is limited in frames or in bytes, not both", "give limit_frames or limit")
        frames = self.limit_frames
        if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or not 1 <= frames <= 10**8):
            raise BadQueue(f"limit_frames is {frames!r}; allowed are whole numbers from 1 to 100000000")
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        if self.limit is not None:
            limit = stored_bytes(self.limit, "limit")
            if limit == 0:
                raise BadQueue("limit is 0 B: nothing could ever wait", 'write for example "64 KiB"')
            return {"kind": "fifo", "limit_bytes": limit}
        return {"kind": "fifo", "limit_frames": self.limit_frames or 1000}
