"""CBQ: allotments, agencies and bounded classes of a shared link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinnet.qos import Cbq, CbqClass

from twinnet_validation.law import Law, Row
from twinnet_validation.scheduler_shares import Demand, measured_shares

__all__ = ["LAW"]

_LINE_MBIT = 100.0


@dataclass(frozen=True)
class _Setting:
    """Classes of a link of 100 Mbit/s, what they want, and the shares that link-sharing goals give them."""

    text: str
    classes: Mapping[int, CbqClass]
    wants: Mapping[int, float]
    shares: Mapping[int, float]


_SETTINGS = (
    _Setting(
        "all want more than their allotments of 50, 30, 20",
        {1: CbqClass(rate="50 Mbit"), 2: CbqClass(rate="30 Mbit"), 3: CbqClass(rate="20 Mbit")},
        {1: 90, 2: 90, 3: 90},
        {1: 50, 2: 30, 3: 20},
    ),
    _Setting(
        "class 1 of 50 silent, class 2 of 30 bounded, class 3 of 20 borrows",
        {1: CbqClass(rate="50 Mbit"), 2: CbqClass(rate="30 Mbit", bounded=True), 3: CbqClass(rate="20 Mbit")},
        {2: 90, 3: 90},
        {2: 30, 3: 70},
    ),
    _Setting(
        "an agency of 60 with classes 11 and 12, of which 11 wants 10, beside class 2 of 40",
        {
            1: CbqClass(rate="60 Mbit"),
            2: CbqClass(rate="40 Mbit"),
            11: CbqClass(rate="40 Mbit", parent=1),
            12: CbqClass(rate="20 Mbit", parent=1),
        },
        {11: 10, 12: 90, 2: 90},
        {11: 10, 12: 50, 2: 40},
    ),
)


def _measure(quick: bool) -> Sequence[Row]:
    seconds = 2.5 if quick else 10.5
    rows: list[Row] = []
    for one in _SETTINGS:
        queue = Cbq(rate="100 Mbit", classes=one.classes).to_spec()
        demands = {number: Demand(float(mbit)) for number, mbit in one.wants.items()}
        seen = measured_shares(queue, demands, _LINE_MBIT, seconds)
        for number, found in zip(one.wants, seen, strict=True):
            wanted = float(one.shares[number])
            why = "0.5 Mbit/s: who is over its limit is judged by an average over 32 frames"
            rows.append(Row(one.text, f"class {number}", "Mbit/s", wanted, found, why, abs(found - wanted) <= 0.5))
    return rows


LAW = Law(
    "cbq",
    "CBQ: link sharing",
    "Each class that wants it gets its allotment; what one leaves goes first to those of its own agency; a bounded "
    "class gets no more than its allotment.",
    "Floyd and Jacobson 1995, Link-sharing and resource management models for packet networks, 3",
    _measure,
)
