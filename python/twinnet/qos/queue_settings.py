"""The settings that several queue disciplines have, with their ranges."""

from __future__ import annotations

from typing import Annotated

from twinnet.errors import BadQueue
from twinnet.settings import Flag, Share, Whole, duration, rate, size
from twinnet.units import Duration, Size
from twinnet.units import Rate as RateValue

__all__ = [
    "MOST_BYTES",
    "MOST_CLASSES",
    "Burst",
    "Frames",
    "Limit",
    "Number",
    "Part",
    "Priority8",
    "Quantum",
    "Rate",
    "Span",
    "Switch",
    "Threshold",
]

MOST_BYTES = (1 << 31) - 1
"""The largest limit of a discipline that averages or counts bytes."""
MOST_CLASSES = 1024
"""Bands, classes or queues of one discipline."""
_MOST_STORED_BYTES = 10**12
"""More than any machine that runs a lab could hold."""
_DEEPER = "a bucket that no full-size frame with a VLAN tag fits into would never let one through"

Frames = Annotated[int, Whole(BadQueue, 1, 10**8)]
"""Frames that one discipline keeps."""
Limit = Annotated[Size, size(1, _MOST_STORED_BYTES, BadQueue)]
"""Data that a FIFO keeps."""
Threshold = Annotated[Size, size(1, MOST_BYTES, BadQueue)]
"""A limit or threshold in bytes of a discipline that averages or counts them."""
Quantum = Annotated[Size, size(64, (1 << 32) - 1, BadQueue)]
"""The data that may be sent in a turn, in bytes. A short turn costs many turns for each long frame."""
Burst = Annotated[Size, size(1518, _MOST_STORED_BYTES, BadQueue, remedy=_DEEPER)]
"""The depth of a bucket; below a full-size frame with a VLAN tag it would never let one through."""
Rate = Annotated[RateValue, rate(1, 10**15, BadQueue)]
"""A rate of the link layer."""
Span = Annotated[Duration, duration(10**6, 10**15, BadQueue)]
"""A target, an interval or a period: 1 us to 1000 s."""
Part = Annotated[float, Share(BadQueue)]
"""A probability or a weight."""
Switch = Annotated[bool, Flag(BadQueue)]
"""On or off."""
Priority8 = Annotated[int, Whole(BadQueue, 0, 7)]
"""A priority: the lowest number is served first."""
Number = Annotated[int, Whole(BadQueue, 0, (1 << 32) - 1)]
"""The number of a class or queue, by which OpenFlow chooses it."""
