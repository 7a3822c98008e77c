"""Hierarchical token bucket with the meaning that Open vSwitch gives its ``linux-htb``.

A queue's minimum rate is guaranteed, its maximum rate a ceiling; spare capacity is shared. Queue 0 is the default.
"""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue, checked_inner, optional_spec
from twinnet.ranges import line_rate_bps, stored_bytes

__all__ = ["Htb", "HtbQueue"]

_QUEUE_NUMBER_LIMIT = 65_535


@dataclass(frozen=True)
class HtbQueue:
    """One queue.

    Parameters
    ----------
    min_rate
        Guaranteed, with unit. As in Open vSwitch, 12 kbit/s when nothing is said.
    max_rate
        The ceiling; the port's own rate when nothing is said.
    burst
        How much may be sent at once at the ceiling; chosen by the rate when nothing is said.
    priority
        Who is offered spare capacity first: the lowest number.
    queue
        Where frames wait; a FIFO of 1000 frames when nothing is said.
    """

    min_rate: str | None = None
    max_rate: str | None = None
    burst: str | None = None
    priority: int = 0
    queue: Queue | None = None

    def __post_init__(self) -> None:
        low = line_rate_bps(self.min_rate, "min_rate") if self.min_rate is not None else None
        high = line_rate_bps(self.max_rate, "max_rate") if self.max_rate is not None else None
        if low is not None and high is not None and low > high:
            raise BadQueue(f"min_rate {self.min_rate!r} is above max_rate {self.max_rate!r}", "raise max_rate")
        if self.burst is not None and stored_bytes(self.burst, "burst") == 0:
            raise BadQueue("the burst is 0 B: no frame could ever pass", 'write at least one full frame, "1514 B"')
        if isinstance(self.priority, bool) or not isinstance(self.priority, int) or not 0 <= self.priority <= 7:
            raise BadQueue(f"the priority is {self.priority!r}; allowed are whole numbers from 0 to 7")
        checked_inner(self.queue, "the queue")


@dataclass(frozen=True)
class Htb(Queue):
    """A port's rate shared by numbered queues; frames choose by OpenFlow's queue number, others go to queue 0.

    Parameters
    ----------
    rate
        What all queues together may send, with unit.
    queues
        The queues by number. Queue 0 is made when it is not given.
    """

    rate: str
    queues: Mapping[int, HtbQueue] = field(default_factory=dict[int, HtbQueue])

    def __post_init__(self) -> None:
        total = line_rate_bps(self.rate, "rate")
        for number, queue in self.queues.items():
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _QUEUE_NUMBER_LIMIT:
                raise BadQueue(f"the queue number {number!r} is not a whole number from 0 to {_QUEUE_NUMBER_LIMIT}")
            if not isinstance(queue, HtbQueue):
                raise BadQueue(f"queue {number} is {queue!r}", 'give tn.qos.HtbQueue(min_rate="1 Mbit")')
            for name in ("min_rate", "max_rate"):
                given = getattr(queue, name)
                if given is not None and line_rate_bps(given) > total:
                    raise BadQueue(f"{name} {given!r} of queue {number} is above the port's rate {self.rate!r}")

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        total = line_rate_bps(self.rate, "rate")
        queues = {0: HtbQueue()} | dict(self.queues)
        return {"kind": "htb", "rate_bps": total, "queues": {str(n): _queue(queues[n], total) for n in sorted(queues)}}


def _queue(queue: HtbQueue, total_bps: int) -> dict[str, Any]:
    ceiling = line_rate_bps(queue.max_rate) if queue.max_rate is not None else total_bps
    # 12 kbit/s is what ovs-vswitchd gives a queue without min-rate (htb_parse_class_details__ in lib/netdev-linux.c).
    floor = line_rate_bps(queue.min_rate) if queue.min_rate is not None else min(12_000, ceiling)
    return {
        "min_rate_bps": floor,
        "max_rate_bps": ceiling,
        "burst_bytes": stored_bytes(queue.burst) if queue.burst is not None else None,
        "priority": queue.priority,
        "queue": optional_spec(queue.queue),
    }
