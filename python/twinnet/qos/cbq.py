"""Class-based queueing (Floyd and Jacobson 1995): a link shared by a hierarchy of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import ClassWithQueue, Queue, checked_count, checked_numbers
from twinnet.qos.queue_settings import MOST_CLASSES, Number, Priority8, Rate, Switch
from twinnet.settings import OneOf, Whole
from twinnet.units import format_rate

__all__ = ["LINK_SHARING", "Cbq", "CbqClass", "LinkSharing"]

LinkSharing = Literal["formal", "ancestor_only", "top_level"]
"""The rule that decides who may borrow when; see :class:`Cbq`."""
LINK_SHARING: tuple[LinkSharing, ...] = ("formal", "ancestor_only", "top_level")

_MOST_LEVELS = 8


@dataclass(frozen=True)
class CbqClass(ClassWithQueue):
    """One class of class-based queueing.

    Parameters
    ----------
    rate
        Its allotment, with unit.
    parent
        The number of the class above; default: the link itself.
    priority
        0 to 7, of a class without classes below: who is served first.
    bounded
        It does not borrow.
    isolated
        It does not lend.
    burst_frames
        Full-size frames that it may send back to back after a quiet time.
    queue
        Where its frames wait; default: a FIFO of 1000 frames. Only for a class without classes below.
    """

    rate: Rate
    parent: Number | None = None
    priority: Priority8 = 0
    bounded: Switch = False
    isolated: Switch = False
    burst_frames: Annotated[int, Whole(BadQueue, 0, 1000)] = 16
    queue: Queue | None = None


@dataclass(frozen=True)
class Cbq(Queue):
    """Class-based queueing: a link shared by a tree of classes.

    Parameters
    ----------
    rate
        What the classes share, with unit.
    classes
        The classes by their numbers.
    gain
        How slowly the average idle time of a class follows what it does: its newest value has the weight 1/2^gain.
    link_sharing
        Who may borrow when: by the ``formal`` rule of the paper, or by its ``ancestor_only`` or ``top_level`` rule.
    """

    kind: Literal["cbq"] = field(default="cbq", kw_only=True, repr=False)
    rate: Rate
    classes: Mapping[int, CbqClass]
    gain: Annotated[int, Whole(BadQueue, 1, 16)] = 5
    link_sharing: Annotated[LinkSharing, OneOf(BadQueue, LINK_SHARING)] = "formal"

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec = super().to_spec()
        checked_count(len(self.classes), f"a class-based queueing has {len(self.classes)} classes", MOST_CLASSES)
        checked_numbers(self.classes, CbqClass, "class", 'tn.qos.CbqClass(rate="1 Mbit")')
        for number in self.classes:
            self._check_ancestors(number)
        specs = {number: self.classes[number].to_spec() for number in sorted(self.classes)}
        for parent in [None, *self.classes]:
            self._check_allotments(parent, specs, spec["rate_bps"])
        return spec | {"classes": {str(number): one for number, one in specs.items()}}

    def _check_ancestors(self, number: int) -> None:
        levels, above = 1, self.classes[number].parent
        while above is not None:
            levels += 1
            if above not in self.classes:
                raise BadQueue(f"above class {number} there is to be {above}, which is not given", "add it to classes")
            if above == number or levels > _MOST_LEVELS:
                most = _MOST_LEVELS - 1
                raise BadQueue(f"the parents of class {number} go in a circle, or are more than {most}", "set parent")
            above = self.classes[above].parent

    def _check_allotments(self, parent: int | None, specs: Mapping[int, Mapping[str, Any]], link_bps: int) -> None:
        below = [one for one in specs.values() if one["parent"] == parent]
        total = sum(one["rate_bps"] for one in below)
        if total > (link_bps if parent is None else specs[parent]["rate_bps"]):
            name, rate = ("the link", self.rate) if parent is None else (f"class {parent}", self.classes[parent].rate)
            raise BadQueue(f"the classes below {name} have {format_rate(total)} together, above its {rate}")
        if parent is not None and below and self.classes[parent].queue is not None:
            raise BadQueue(f"class {parent} has a queue and classes below", "give the queue to those below")
