"""Token bucket: a long-run rate and the burst that may exceed it."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue, checked_inner
from twinnet.ranges import line_rate_bps, stored_bytes

__all__ = ["Tbf"]


@dataclass(frozen=True)
class Tbf(Queue):
    """A token bucket before a queue.

    Parameters
    ----------
    rate
        The rate of tokens, with unit.
    burst
        The bucket's depth, with unit; at least one full frame.
    queue
        Where frames wait for tokens.
    """

    rate: str
    burst: str
    queue: Queue = field(default_factory=Fifo)

    def __post_init__(self) -> None:
        line_rate_bps(self.rate, "rate")
        if stored_bytes(self.burst, "burst") == 0:
            raise BadQueue("the burst is 0 B: no frame could ever pass", 'write at least one full frame, "1514 B"')
        checked_inner(self.queue, "the queue")

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {
            "kind": "tbf",
            "rate_bps": line_rate_bps(self.rate, "rate"),
            "burst_bytes": stored_bytes(self.burst, "burst"),
            "queue": self.queue.to_spec(),
        }
