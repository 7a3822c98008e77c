"""Deficit round robin (Shreedhar and Varghese 1996): classes share by their quanta."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue, checked_inner
from twinnet.ranges import stored_bytes

__all__ = ["Drr", "DrrClass"]


@dataclass(frozen=True)
class DrrClass:
    """One class of a deficit round robin.

    Parameters
    ----------
    quantum
        What it may send in each round, with unit.
    queue
        Where its frames wait.
    """

    quantum: str
    queue: Queue = field(default_factory=Fifo)

    def __post_init__(self) -> None:
        if stored_bytes(self.quantum, "quantum") == 0:
            raise BadQueue("the quantum is 0 B: the class could never send", 'write for example "1514 B"')
        checked_inner(self.queue, "the class's queue")


@dataclass(frozen=True)
class Drr(Queue):
    """Classes served in turn; class N takes the frames with OpenFlow queue number N, others go to class 0.

    Parameters
    ----------
    classes
        The classes, 1 to 1024.
    """

    classes: Sequence[DrrClass]

    def __post_init__(self) -> None:
        if not 1 <= len(self.classes) <= 1024:
            raise BadQueue(f"a deficit round robin has {len(self.classes)} classes; allowed are 1 to 1024")
        for number, one in enumerate(self.classes):
            if not isinstance(one, DrrClass):
                raise BadQueue(f"class {number} is {one!r}", 'give tn.qos.DrrClass(quantum="1514 B")')

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        classes = [
            {"quantum_bytes": stored_bytes(c.quantum, "quantum"), "queue": c.queue.to_spec()} for c in self.classes
        ]
        return {"kind": "drr", "classes": classes}
