"""Queue configurations of a port from the classes of a policy: one function for each discipline that has classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from twinnet.policies.traffic_class import TrafficClass, amount_bps
from twinnet.qos import Cbq, CbqClass, Drr, DrrClass, Fifo, Htb, HtbQueue, Priority, Tbf
from twinnet.qos.cbq import LinkSharing
from twinnet.qos.queue import Queue
from twinnet.units import BitsPerSecond, Bytes, Rate

__all__ = ["cbq", "drr", "htb", "queue_numbers", "shaped", "strict_priority"]

_QUANTUM_BYTES = 1514
_LEAST_BURST_BYTES = 3028


@lru_cache(maxsize=65_536)
def _htb_queue(minimum_bps: int | None, maximum_bps: int | None, priority: int, queue: Queue | None) -> HtbQueue:
    return HtbQueue(_rate(minimum_bps), _rate(maximum_bps), priority=priority, queue=queue)


def _rate(rate_bps: int | None) -> Rate | None:
    return None if rate_bps is None else BitsPerSecond(rate_bps)


def htb(rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
    """A hierarchical token bucket: each class has its minimum guaranteed, what is spare is lent up to its maximum."""
    queues: dict[int, HtbQueue] = {}
    for number, one in classes.items():
        low = None if one.minimum is None else amount_bps(one.minimum, rate_bps, "the minimum")
        high = None if one.maximum is None else amount_bps(one.maximum, rate_bps, "the maximum")
        queues[number] = _htb_queue(low, high, one.priority, one.queue)
    return Htb(BitsPerSecond(rate_bps), queues)


def cbq(rate_bps: int, classes: Mapping[int, TrafficClass], link_sharing: LinkSharing = "formal") -> Queue:
    """Class-based queueing: each class has its minimum as allotment; one whose maximum is no more does not borrow."""
    found: dict[int, CbqClass] = {}
    share = max(1, rate_bps // max(1, 100 * len(classes)))
    for number, one in classes.items():
        low = share if one.minimum is None else amount_bps(one.minimum, rate_bps, "the minimum")
        high = None if one.maximum is None else amount_bps(one.maximum, rate_bps, "the maximum")
        bounded = high is not None and high <= low
        found[number] = CbqClass(BitsPerSecond(low), priority=one.priority, bounded=bounded, queue=one.queue)
    return Cbq(BitsPerSecond(rate_bps), found, link_sharing=link_sharing)


def strict_priority(rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
    """Strict priority under a shaper: class N is band N, so the lowest number is served first; 0 is the rest's."""
    bands = [classes[number].queue or Fifo() if number in classes else Fifo() for number in range(max(classes) + 1)]
    return shaped(rate_bps, Priority(bands))


def drr(rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
    """Deficit round robin under a shaper: classes share by their weights."""
    least = min(one.weight for one in classes.values())
    found: list[DrrClass] = []
    for number in range(max(classes) + 1):
        one = classes.get(number)
        quantum = _QUANTUM_BYTES if one is None else max(_QUANTUM_BYTES, round(_QUANTUM_BYTES * one.weight / least))
        found.append(DrrClass(Bytes(quantum), one.queue if one is not None and one.queue is not None else Fifo()))
    return shaped(rate_bps, Drr(found))


def shaped(rate_bps: int, queue: Queue) -> Queue:
    """`queue` behind a token bucket of `rate_bps` that lets a tenth of a millisecond pass at once, two frames at
    least."""
    burst = max(_LEAST_BURST_BYTES, rate_bps // 8 // 10_000)
    return Tbf(BitsPerSecond(rate_bps), Bytes(burst), queue)


def queue_numbers(queue: Queue) -> list[int] | None:
    """Return the numbers of the classes of `queue`, of what a shaper holds behind it; ``None`` when it has none."""
    inner: Queue | None = queue
    while isinstance(inner, Tbf):
        inner = inner.queue
    spec = inner.to_spec() if inner is not None else {}
    named: Any = next((spec[key] for key in ("queues", "classes", "bands") if key in spec), None)
    if named is None:
        return None
    if isinstance(named, Mapping):
        return sorted(int(number) for number in cast(Mapping[str, Any], named))
    return list(range(len(named)))
