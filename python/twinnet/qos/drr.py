"""Deficit round robin (Shreedhar and Varghese 1996): classes share by their quanta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import ClassWithQueue, Queue, checked_count
from twinnet.qos.queue_settings import MOST_CLASSES
from twinnet.settings import size
from twinnet.units import Size

__all__ = ["Drr", "DrrClass"]


@dataclass(frozen=True)
class DrrClass(ClassWithQueue):
    """One class of a deficit round robin.

    Parameters
    ----------
    quantum
        What it may send in each round, with unit.
    queue
        Where its frames wait; default: a FIFO of 1000 frames.
    """

    quantum: Annotated[Size, size(1, (1 << 32) - 1, BadQueue)]
    queue: Queue | None = None


@dataclass(frozen=True)
class Drr(Queue):
    """Deficit round robin: classes take turns, and share by their quanta.

    Parameters
    ----------
    classes
        The classes, in the order of their turns.
    """

    kind: Literal["drr"] = field(default="drr", kw_only=True, repr=False)
    classes: Sequence[DrrClass]

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        checked_count(len(self.classes), f"a deficit round robin has {len(self.classes)} classes", MOST_CLASSES)
        for number, one in enumerate(self.classes):
            if not isinstance(one, DrrClass):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadQueue(f"class {number} is {one!r}", 'give tn.qos.DrrClass(quantum="1514 B")')
        return {"kind": self.discipline, "classes": [one.to_spec() for one in self.classes]}
