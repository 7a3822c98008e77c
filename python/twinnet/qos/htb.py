"""Hierarchical token bucket with the meaning that Open vSwitch gives its ``linux-htb``.

A queue's minimum rate is guaranteed, its maximum rate a ceiling; spare capacity is shared. Queue 0 is the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue, checked_count, checked_inner, checked_numbers, optional_spec
from twinnet.qos.queue_settings import MOST_CLASSES, Burst, Priority8, Rate
from twinnet.settings import Described

__all__ = ["Htb", "HtbQueue"]

_DEFAULT_MIN_RATE_BPS = 12_000
"""The rate that ovs-vswitchd gives a queue without min-rate (htb_parse_class_details__ in lib/netdev-linux.c)."""


@dataclass(frozen=True)
class HtbQueue(Described):
    """One queue of a hierarchical token bucket.

    Parameters
    ----------
    min_rate
        Guaranteed, with unit. Default: 12 kbit/s, as in Open vSwitch.
    max_rate
        The ceiling; default: the port's own rate.
    burst
        How much may be sent at once at the ceiling; default: chosen by the rate.
    priority
        Who is offered spare capacity first: the lowest number.
    queue
        Where frames wait; default: a FIFO of 1000 frames.
    """

    min_rate: Rate | None = None
    max_rate: Rate | None = None
    burst: Burst | None = None
    priority: Priority8 = 0
    queue: Queue | None = None

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        checked_inner(self.queue, "the queue")
        spec = self.checked_fields()
        low, high = spec["min_rate_bps"], spec["max_rate_bps"]
        if low is not None and high is not None and low > high:
            raise BadQueue(f"min_rate {self.min_rate!r} is above max_rate {self.max_rate!r}", "raise max_rate")
        return spec | {"queue": optional_spec(self.queue)}


@dataclass(frozen=True)
class Htb(Queue):
    """Hierarchical token bucket: queues with guaranteed rates and ceilings.

    Parameters
    ----------
    rate
        What the queues share, with unit.
    queues
        The queues by their numbers; queue 0 is the default.
    """

    kind: Literal["htb"] = field(default="htb", kw_only=True, repr=False)
    rate: Rate
    queues: Mapping[int, HtbQueue] = field(default_factory=dict[int, HtbQueue])

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec = super().to_spec()
        total = spec["rate_bps"]
        checked_numbers(self.queues, HtbQueue, "queue", 'tn.qos.HtbQueue(min_rate="1 Mbit")')
        queues = {0: HtbQueue()} | dict(self.queues)
        checked_count(len(queues), f"an HTB has {len(queues)} queues", MOST_CLASSES)
        specs: dict[str, dict[str, Any]] = {}
        for number in sorted(queues):
            one = queues[number].to_spec()
            for name in ("min_rate", "max_rate"):
                if (one[f"{name}_bps"] or 0) > total:
                    given = getattr(queues[number], name)
                    raise BadQueue(f"{name} {given!r} of queue {number} is above the port's rate {self.rate!r}")
            if one["max_rate_bps"] is None:
                one["max_rate_bps"] = total
            if one["min_rate_bps"] is None:
                one["min_rate_bps"] = min(_DEFAULT_MIN_RATE_BPS, one["max_rate_bps"])
            specs[str(number)] = one
        return spec | {"queues": specs}
