"""Proportional integral controller enhanced (RFC 8033): a probability that holds the delay at its target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.qos.queue import Queue
from twinnet.qos.queue_ranges import MOST_FRAMES, span_ps, switch, whole_number
from twinnet.units import duration_ps

__all__ = ["Pie"]


@dataclass(frozen=True)
class Pie(Queue):
    """Arriving frames are dropped with a probability that follows the delay and where it goes.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    target
        The delay that is aimed at, with unit.
    update
        How often the probability is set; at least 1 ms.
    burst
        For so long after a quiet time nothing is dropped.
    ecn
        Frames whose sender understands marks are marked instead while the probability is below 10 %.
    """

    limit_frames: int = 1000
    target: str = "15 ms"
    update: str = "15 ms"
    burst: str = "150 ms"
    ecn: bool = False

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        no_burst = duration_ps(self.burst, "burst") == 0
        return {
            "kind": "pie",
            "limit_frames": whole_number(self.limit_frames, "limit_frames", 1, MOST_FRAMES),
            "target_ps": span_ps(self.target, "target"),
            "update_ps": span_ps(self.update, "update", 10**9),
            "burst_ps": 0 if no_burst else span_ps(self.burst, "burst"),
            "ecn": switch(self.ecn, "ecn"),
        }
