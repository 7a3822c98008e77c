"""First in, first out; what does not fit is dropped at the tail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames, Limit

__all__ = ["Fifo"]


@dataclass(frozen=True)
class Fifo(Queue):
    """A FIFO limited in frames, in bytes or in both; default: 1000 frames.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    limit
        The most data that waits, with unit, such as ``"64 KiB"``.
    """

    kind: Literal["fifo"] = field(default="fifo", kw_only=True, repr=False)
    limit_frames: Frames | None = None
    limit: Limit | None = None

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        given = {name: value for name, value in self.checked_fields().items() if value is not None}
        return {"kind": self.discipline} | (given or {"limit_frames": 1000})
