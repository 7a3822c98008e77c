"""Random early detection (Floyd and Jacobson 1993): drops by chance before the queue is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_ranges import judged_bytes, share, switch
from twinnet.ranges import line_rate_bps

__all__ = ["Red"]


@dataclass(frozen=True)
class Red(Queue):
    """The averaged length of the queue sets the probability of an early drop.

    Parameters
    ----------
    min
        Below this average nothing is dropped, with unit.
    max
        Where the probability reaches `max_probability`; three times `min` when nothing is said.
    limit
        The most data that waits; four times `max` when nothing is said.
    max_probability
        The probability at `max`.
    weight
        What the newest length counts in the average.
    average_frame
        The usual frame, by which the average decays while the line is idle.
    rate
        The rate by which it does so; the line's own when nothing is said.
    gentle
        From `max` to twice that the probability grows to 1 instead of leaping to it.
    ecn
        Frames whose sender understands marks are marked instead.
    """

    min: str
    max: str | None = None
    limit: str | None = None
    max_probability: float = 0.1
    weight: float = 0.002
    average_frame: str = "1000 B"
    rate: str | None = None
    gentle: bool = True
    ecn: bool = False

    def __post_init__(self) -> None:
        spec = self.to_spec()
        low, high, limit = spec["min_bytes"], spec["max_bytes"], spec["limit_bytes"]
        if high <= low:
            raise BadQueue(f"max {self.max!r} is not above min {self.min!r}", "raise max")
        if limit < high:
            raise BadQueue(f"limit {self.limit!r} is below max, {high} B", "raise limit")

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        low = judged_bytes(self.min, "min")
        high = judged_bytes(self.max if self.max is not None else f"{3 * low} B", "max")
        limit = judged_bytes(self.limit if self.limit is not None else f"{4 * high} B", "limit")
        return {
            "kind": "red",
            "min_bytes": low,
            "max_bytes": high,
            "limit_bytes": limit,
            "max_probability": share(self.max_probability, "max_probability"),
            "weight": share(self.weight, "weight"),
            "average_frame_bytes": judged_bytes(self.average_frame, "average_frame"),
            "rate_bps": line_rate_bps(self.rate, "rate") if self.rate is not None else None,
            "gentle": switch(self.gentle, "gentle"),
            "ecn": switch(self.ecn, "ecn"),
        }
