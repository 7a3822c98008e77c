"""Random early detection (Floyd and Jacobson 1993): drops by chance before the queue is full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import MOST_BYTES, Part, Rate, Switch, Threshold

__all__ = ["Red"]


@dataclass(frozen=True)
class Red(Queue):
    """The averaged length of the queue sets the probability of an early drop.

    Parameters
    ----------
    min
        Below this average nothing is dropped, with unit.
    max
        Where the probability reaches `max_probability`; default: three times `min`.
    limit
        The most data that waits; default: four times `max`.
    max_probability
        The probability at `max`.
    weight
        What the newest length counts in the average.
    average_frame
        The usual frame, by which the average decays while the line is idle.
    rate
        The rate by which it does so; default: the line's own.
    gentle
        From `max` to twice that the probability grows to 1 instead of leaping to it.
    ecn
        Frames whose sender understands marks are marked instead.
    """

    kind: Literal["red"] = field(default="red", kw_only=True, repr=False)
    min: Threshold
    max: Threshold | None = None
    limit: Threshold | None = None
    max_probability: Part = 0.1
    weight: Part = 0.002
    average_frame: Threshold = "1000 B"
    rate: Rate | None = None
    gentle: Switch = True
    ecn: Switch = False

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec = super().to_spec()
        if spec["max_bytes"] is None:
            spec["max_bytes"] = 3 * spec["min_bytes"]
        if spec["limit_bytes"] is None:
            spec["limit_bytes"] = 4 * spec["max_bytes"]
        low, high, limit = spec["min_bytes"], spec["max_bytes"], spec["limit_bytes"]
        if high <= low:
            raise BadQueue(f"max {self.max!r} is not above min {self.min!r}", "raise max")
        if limit < high:
            raise BadQueue(f"limit {self.limit!r} is below max, {high} B", "raise limit")
        if limit > MOST_BYTES:
            raise BadQueue(f"limit is {limit} B; allowed are 1 B to {MOST_BYTES} B", "lower min, max or limit")
        return spec
