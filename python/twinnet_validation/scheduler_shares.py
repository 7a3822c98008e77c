"""HTB, DRR and priority: who gets how much of an overloaded line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet_validation.law import Law, Row, within
from twinnet_validation.port import Source, constant, run_port

__all__ = ["DRR", "HTB", "PRIORITY", "Demand", "kernel_like_rates", "measured_shares", "shared_out"]

_LINE_MBIT = 100
_FROM_S = 0.5
"""Afterwards the bursts that buckets begin with are spent."""


@dataclass(frozen=True)
class Demand:
    """The traffic of one class: Mbit/s of frames of so many bytes."""

    mbit: float
    frame_bytes: int = 1000


def measured_shares(
    queue: Mapping[str, Any], demands: Mapping[int, Demand], line_mbit: float, seconds: float
) -> list[float]:
    """Return the rates in Mbit/s that classes, by queue number, get of a line."""
    # Of unlike periods and starts, so that no class always comes first at a moment.
    sources = [
        Source(
            int(demand.mbit * 1e6 * seconds / 8 / demand.frame_bytes),
            constant(round(demand.frame_bytes * 8e6 / demand.mbit)),
            constant(demand.frame_bytes),
            queue=number,
            start_ps=place * 12_345_677,
        )
        for place, (number, demand) in enumerate(demands.items())
    ]
    run = run_port(sources, queue, rate_bps=round(line_mbit * 1e6), records=True)
    return [run.rate_bps(place, _FROM_S, seconds) / 1e6 for place in range(len(sources))]


def shared_out(capacity: float, wants: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the weighted max-min shares: capacity in proportion to weights; what one does not want goes to the others
    (Bertsekas and Gallager 1992, Data Networks, 6.5.2)."""
    shares = [0.0] * len(wants)
    open_ones = {place for place, want in enumerate(wants) if want > 0}
    while open_ones and capacity > 1e-9:
        level = capacity / sum(weights[place] for place in open_ones)
        full = {place for place in open_ones if wants[place] - shares[place] <= level * weights[place]}
        for place in full or open_ones:
            more = wants[place] - shares[place] if full else level * weights[place]
            shares[place] += more
            capacity -= more
        if not full:
            break
        open_ones -= full
    return shares


def _rows(setting: str, expected: Sequence[float], seen: Sequence[float], tolerance_mbit: float, why: str) -> list[Row]:
    return [
        Row(
            setting,
            f"class {number}",
            "Mbit/s",
            wanted,
            found,
            f"{tolerance_mbit:.2g} Mbit/s: {why}",
            abs(found - wanted) <= tolerance_mbit,
        )
        for number, (wanted, found) in enumerate(zip(expected, seen, strict=True), 1)
    ]


@dataclass(frozen=True)
class _HtbClass:
    guaranteed: float
    ceiling: float
    demand: float = 90.0
    priority: int = 0

    @property
    def quantum(self) -> float:
        """A tenth of a second of the guaranteed rate, 1000 to 200,000 bytes."""
        return min(max(self.guaranteed * 1e6 / 8 / 10, 1000.0), 200_000.0)


_HTB_SETTINGS = {
    "all borrow": (_HtbClass(40, 100), _HtbClass(10, 100), _HtbClass(20, 100)),
    "class 1 at its ceiling": (_HtbClass(40, 45), _HtbClass(10, 100), _HtbClass(20, 100)),
    "class 3 silent": (_HtbClass(40, 60), _HtbClass(10, 100), _HtbClass(20, 100, demand=0)),
    "class 2 first to borrow": (_HtbClass(40, 100, priority=1), _HtbClass(10, 35), _HtbClass(20, 100, priority=1)),
}


def _htb_shares(classes: Sequence[_HtbClass]) -> list[float]:
    """Return guarantees, and what is spare by priority and, among equals, by quantum up to ceiling and demand."""
    shares = [min(one.guaranteed, one.demand) for one in classes]
    for priority in sorted({one.priority for one in classes}):
        wants = [
            max(0.0, min(one.ceiling, one.demand) - share) if one.priority == priority else 0.0
            for one, share in zip(classes, shares, strict=True)
        ]
        borrowed = shared_out(_LINE_MBIT - sum(shares), wants, [one.quantum for one in classes])
        shares = [share + more for share, more in zip(shares, borrowed, strict=True)]
    return shares


_LONG_BURST_BYTES = 100_000
"""A class is served in turns of its quantum. One whose ceiling's bucket runs dry within its turn loses the rest of it,
so the fluid shares hold where bursts are about as long as quanta."""


_SHORT_BURST_BYTES = 1564
_OF_LINUX_MBIT = (4.815, 5.145)
"""Of 10 Mbit/s, in six seconds of the experiment of :func:`kernel_like_rates` by ``tc``."""


def _htb_rates(classes: Sequence[_HtbClass], burst_bytes: int | None, seconds: float) -> list[float]:
    queues = {
        str(number): {
            "min_rate_bps": round(one.guaranteed * 1e6),
            "max_rate_bps": round(one.ceiling * 1e6),
            "burst_bytes": burst_bytes,
            "priority": one.priority,
            "queue": {"kind": "fifo", "limit_frames": 100},
        }
        for number, one in enumerate(classes, 1)
    }
    demands = {number: Demand(one.demand) for number, one in enumerate(classes, 1) if one.demand}
    queue = {"kind": "htb", "rate_bps": _LINE_MBIT * 10**6, "queues": queues}
    return measured_shares(queue, demands, 2 * _LINE_MBIT, seconds)


def kernel_like_rates(burst_bytes: int, seconds: float) -> list[float]:
    """Return the rates in Mbit/s of two greedy classes of a port of 10: one with 4 guaranteed and at most 6, one with
    1 guaranteed. ``tests/qos/test_htb_beside_linux.py`` makes the same with the kernel."""
    classes = ((1, 4, 6), (2, 1, 10))
    queues = {
        str(number): {
            "min_rate_bps": low * 10**6,
            "max_rate_bps": high * 10**6,
            "burst_bytes": burst_bytes,
            "queue": {"kind": "fifo", "limit_frames": 100},
        }
        for number, low, high in classes
    }
    demands = {number: Demand(9.5 + number / 10) for number, _, _ in classes}
    return measured_shares({"kind": "htb", "rate_bps": 10**7, "queues": queues}, demands, 20, seconds)


def _measure_htb(quick: bool) -> Sequence[Row]:
    seconds = 2.5 if quick else 10.5
    tolerance = 3 * 200_000 * 8 / 1e6 / (seconds - _FROM_S)
    rows: list[Row] = []
    for setting, classes in _HTB_SETTINGS.items():
        seen = _htb_rates(classes, _LONG_BURST_BYTES, seconds)
        expected = [share for share, one in zip(_htb_shares(classes), classes, strict=True) if one.demand]
        why = f"three turns of at most 200 kB over {seconds - _FROM_S:g} s"
        rows += _rows(f"{setting}: guaranteed 40, 10, 20 of 100, bursts 100 kB", expected, seen, tolerance, why)
    seen = kernel_like_rates(_SHORT_BURST_BYTES, seconds)
    why = "what Linux 6.18's sch_htb gave on a loopback; it loses some time to late wake-ups"
    for number, (kernel_mbit, found) in enumerate(zip(_OF_LINUX_MBIT, seen, strict=True), 1):
        setting = "one frame of burst, the default: guaranteed 4 of at most 6, and 1, of 10"
        rows.append(within(setting, f"class {number}", "Mbit/s", kernel_mbit, found, 0.02, why))
    return rows


def _measure_drr(quick: bool) -> Sequence[Row]:
    seconds = 1.5 if quick else 5.5
    rows: list[Row] = []
    quanta = (1500, 4500, 3000)
    for setting, demands in {
        "frames of 1500, 300 and 1000 B": (Demand(90, 1500), Demand(90, 300), Demand(90, 1000)),
        "class 2 wants 20 Mbit/s": (Demand(90, 1500), Demand(20, 300), Demand(90, 1000)),
    }.items():
        classes = [{"quantum_bytes": quantum, "queue": {"kind": "fifo", "limit_frames": 100}} for quantum in quanta]
        seen = measured_shares(
            {"kind": "drr", "classes": classes}, dict(enumerate(demands)), float(_LINE_MBIT), seconds
        )
        expected = shared_out(_LINE_MBIT, [demand.mbit for demand in demands], quanta)
        # At each end of the time a class may be a quantum and a frame ahead or behind.
        tolerance = 2 * (max(quanta) + 1500) * 8 / 1e6 / (seconds - _FROM_S)
        why = f"at each end of {seconds - _FROM_S:g} s a quantum and a frame"
        rows += _rows(f"quanta 1500, 4500, 3000 B; {setting}", expected, seen, tolerance, why)
    return rows


def _measure_priority(quick: bool) -> Sequence[Row]:
    seconds = 1.5 if quick else 5.5
    bands = [{"kind": "fifo", "limit_frames": 100}] * 3
    demands = (30.0, 50.0, 40.0)
    seen = measured_shares(
        {"kind": "priority", "bands": bands},
        {number: Demand(mbit) for number, mbit in enumerate(demands)},
        float(_LINE_MBIT),
        seconds,
    )
    # At each end of the time a band may have a frame more or less, and the last one the others' frames as well.
    tolerance = 2 * len(demands) * 1000 * 8 / 1e6 / (seconds - _FROM_S)
    why = f"at each end of {seconds - _FROM_S:g} s a frame of each band"
    return _rows("bands that want 30, 50 and 40 of 100", (30.0, 50.0, 20.0), seen, tolerance, why)


HTB = Law(
    "htb",
    "HTB: guarantees, ceilings, borrowing",
    "Each class gets its guaranteed rate; what is spare goes to the lowest priority number first and, among equals, in "
    "proportion to their quanta, up to ceiling and demand. That is the fluid limit, where bursts are as long as turns. "
    "With shorter ones a class whose ceiling's bucket is empty for a moment loses the rest of its turn to borrow, and "
    "gets less than its ceiling: so it is in Linux too.",
    "Devera 2002, HTB theory; Linux net/sched/sch_htb.c; Bertsekas and Gallager 1992, 6.5.2 for the fixed point",
    _measure_htb,
)
DRR = Law(
    "drr",
    "DRR: shares by quantum",
    "Classes that always have something to send share the line in proportion to their quanta, whatever the length of "
    "their frames; what one does not want the others share likewise.",
    "Shreedhar and Varghese 1995, Efficient Fair Queuing using Deficit Round Robin, theorem 2",
    _measure_drr,
)
PRIORITY = Law(
    "priority",
    "Strict priority",
    "A band gets what those before it leave.",
    "Kleinrock 1976, Queueing Systems II, 3.6",
    _measure_priority,
)
