"""Class-based queueing (Floyd and Jacobson 1995): a link shared by a hierarchy of classes."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from twinnet.errors import BadQueue, did_you_mean
from twinnet.qos.queue import Queue, checked_inner, optional_spec
from twinnet.qos.queue_ranges import switch, whole_number
from twinnet.ranges import line_rate_bps
from twinnet.units import format_rate

__all__ = ["LINK_SHARING", "Cbq", "CbqClass", "LinkSharing"]

LinkSharing = Literal["formal", "ancestor_only", "top_level"]
"""Who may borrow when; see :class:`Cbq`."""
LINK_SHARING: tuple[LinkSharing, ...] = ("formal", "ancestor_only", "top_level")

_CLASS_NUMBER_LIMIT = 65_535
_MOST_LEVELS = 8


@dataclass(frozen=True)
class CbqClass:
    """One class.

    Parameters
    ----------
    rate
        Its allotment, with unit.
    parent
        The number of the class above; the link itself when nothing is said.
    priority
        0 to 7, of a class without classes below: who is served first.
    bounded
        It does not borrow.
    isolated
        It does not lend.
    burst_frames
        Full-size frames that it may send back to back after a quiet time.
    queue
        Where its frames wait; a FIFO of 1000 frames when nothing is said. Only for a class without classes below.
    """

    rate: str
    parent: int | None = None
    priority: int = 0
    bounded: bool = False
    isolated: bool = False
    burst_frames: int = 16
    queue: Queue | None = None

    def __post_init__(self) -> None:
        checked_inner(self.queue, "the class's queue")
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        parent = self.parent
        return {
            "parent": None if parent is None else whole_number(parent, "the parent", 0, _CLASS_NUMBER_LIMIT),
            "rate_bps": line_rate_bps(self.rate, "rate"),
            "priority": whole_number(self.priority, "the priority", 0, 7),
            "bounded": switch(self.bounded, "bounded"),
            "isolated": switch(self.isolated, "isolated"),
            "burst_frames": whole_number(self.burst_frames, "burst_frames", 0, 1000),
            "queue": optional_spec(self.queue),
        }


@dataclass(frozen=True)
class Cbq(Queue):
    """A link shared by classes; frames choose by OpenFlow's queue number.

    A number that is no class, or a class with others below, goes to the lowest number of those without any.

    Parameters
    ----------
    rate
        What the whole link may carry, with unit.
    classes
        The classes by number, 1 to 1024.
    gain
        The estimator's weight is 1/2^gain.
    link_sharing
        When a class over its limit may borrow from an ancestor that is not (Floyd and Jacobson 1995, section 4):
        ``formal``, when no class below that ancestor's level is unsatisfied; ``ancestor_only``, when the class or an
        ancestor of its is under its limit; ``top_level``, when that ancestor's level is at most the top level, which
        goes down to a class under its limit that gets a frame.
    """

    rate: str
    classes: Mapping[int, CbqClass]
    gain: int = 5
    link_sharing: LinkSharing = "formal"

    def __post_init__(self) -> None:
        line_rate_bps(self.rate, "rate")
        whole_number(self.gain, "gain", 1, 16)
        if self.link_sharing not in LINK_SHARING:
            remedy = did_you_mean(str(self.link_sharing), LINK_SHARING)
            raise BadQueue(f"link_sharing is {self.link_sharing!r}", remedy)
        if not 1 <= len(self.classes) <= 1024:
            raise BadQueue(f"a class-based queueing has {len(self.classes)} classes; allowed are 1 to 1024")
        for number, one in self.classes.items():
            whole_number(number, "the class number", 0, _CLASS_NUMBER_LIMIT)
            if not isinstance(one, CbqClass):
                raise BadQueue(f"class {number} is {one!r}", 'give tn.qos.CbqClass(rate="1 Mbit")')
        for number in self.classes:
            self._check_ancestors(number)
        for parent in [None, *self.classes]:
            self._check_allotments(parent)

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

    def _check_allotments(self, parent: int | None) -> None:
        below = [one for one in self.classes.values() if one.parent == parent]
        total = sum(line_rate_bps(one.rate) for one in below)
        rate = self.rate if parent is None else self.classes[parent].rate
        if total > line_rate_bps(rate):
            name = "the link" if parent is None else f"class {parent}"
            raise BadQueue(f"the classes below {name} have {format_rate(total)} together, above its {rate}")
        if parent is not None and below and self.classes[parent].queue is not None:
            raise BadQueue(f"class {parent} has a queue and classes below", "give the queue to those below")

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        classes = {str(number): self.classes[number].to_spec() for number in sorted(self.classes)}
        spec = {"kind": "cbq", "rate_bps": line_rate_bps(self.rate, "rate"), "classes": classes, "gain": self.gain}
        return spec if self.link_sharing == "formal" else spec | {"link_sharing": self.link_sharing}
