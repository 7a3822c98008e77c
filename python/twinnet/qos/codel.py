"""Controlled delay (RFC 8289): drops by how long frames have waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.qos.queue import Queue
from twinnet.qos.queue_ranges import MOST_FRAMES, span_ps, switch, whole_number

__all__ = ["Codel"]


@dataclass(frozen=True)
class Codel(Queue):
    """Drops when the delay has lain above a target for an interval, and more often as long as it does.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    target
        The standing delay that is accepted, with unit.
    interval
        For how long more is accepted: about the longest usual round trip.
    ecn
        Frames whose sender understands marks are marked instead.
    """

    limit_frames: int = 1000
    target: str = "5 ms"
    interval: str = "100 ms"
    ecn: bool = False

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {
            "kind": "codel",
            "limit_frames": whole_number(self.limit_frames, "limit_frames", 1, MOST_FRAMES),
            "target_ps": span_ps(self.target, "target"),
            "interval_ps": span_ps(self.interval, "interval"),
            "ecn": switch(self.ecn, "ecn"),
        }
