"""Something broken in a lab that the page does not tell, and what of the lab it hides meanwhile.

What a class can see by looking stays: loads, queues, drops, flow tables, and which link is down. What would name the
fault without looking is hidden, of all links and ports alike, so that the gap tells nothing either: line rates, delays,
loss that is set, limits of queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from twinnet.errors import BadValue
from twinnet.live.watch import with_more

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.live.done import Done

__all__ = ["Seal"]


class Seal:
    """The seal on `lab`. One thread at a time puts it on or takes it off; any may ask.

    Who tells something of the lab asks the lab first and the seal then: so nothing is told of a lab that was broken in
    between.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lines: Sequence[int | None] | None = None
        self._broken: Done | None = None

    @property
    def is_on(self) -> bool:
        """True while something is broken that is not told."""
        return self._lines is not None

    def put_on(self, work: Callable[[], Done]) -> None:
        """Have `work` break something. From before that on nothing is told."""
        self.refuse()
        rows = cast("Sequence[Mapping[str, Any]]", self._lab.links())
        settings: list[Mapping[str, Any]] = [row[way]["config"] or {} for row in rows for way in ("ab", "ba")]
        self._lines = [one.get("rate_bps") for one in settings]
        try:
            self._broken = work()
        except BaseException:
            self._lines = None
            raise

    def take_off(self) -> Done:
        """Return what was broken; from now on all is told."""
        if self._broken is None:
            raise BadValue("nothing is sealed", "break something first")
        broken, self._broken, self._lines = self._broken, None, None
        return broken

    def refuse(self) -> None:
        """Raise `BadValue` while something is broken that is not told."""
        if self.is_on:
            raise BadValue("something is broken, and the page does not tell what", "look, then show the answer")

    def refuse_change(self) -> None:
        """Raise `BadValue` where a change of a link or a queue would tell, by what undoes it, how that was set."""
        if self._broken is not None:
            self.refuse()

    def hide(self, seen: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return a look of :class:`~twinnet.live.watch.LabWatch` without settings: loads are those of the lines as they
        are, the line rates those from before something was broken. A line that had none then has no load either."""
        lines = self._lines
        if seen is None or lines is None:
            return None if seen is None else {**seen}
        ways = [_hidden(way, line_bps) for way, line_bps in zip(seen["ways"], lines, strict=True)]
        return {**seen, "ways": ways}


def _hidden(way: Sequence[Any], line_bps: int | None) -> list[Any]:
    rate, load, queue, drops, up, _, *more = way
    plain = [rate, load if line_bps else None, queue, drops, up, line_bps or None]
    return with_more(plain, {name: value for one in more for name, value in one.items() if name != "lossy"})
