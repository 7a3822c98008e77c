"""Traces of labs on the virtual clock (``net.simulate(trace=FILE)``): where two of them part.

Equal runs have equal traces, line by line. The first line that differs is where to look for the reason.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from twinnet.errors import BadFile, reason
from twinnet.given_files import open_given
from twinnet.results.frame_fields import frame_fields

__all__ = ["Parting", "TraceEvent", "part"]

_HEADER = b"twinnet trace 1\n"
_LONGEST_LINE = 1 << 22
_REMEDY = "give files that net.simulate(trace=FILE) or `twinnet lab --clock virtual --trace FILE` wrote"
_SAID = {
    "begins": "an app begins in {who}",
    "changes": "change {who} of the schedule is made",
    "forwards": "{who} forwards a frame",
    "receives": "a frame arrives at {who}",
    "times-out": "{who} times flows out, or hears from its controller",
    "wakes": "a timer of {who} is due",
}


@dataclass(frozen=True)
class TraceEvent:
    """One line of a trace.

    Parameters
    ----------
    number
        Which one, from 1.
    at_ps
        The lab's time in picoseconds.
    what
        What happens: ``sends``, ``receives``, ``forwards``, ``starts`` and others.
    who
        To which host, switch or interface.
    rest
        For a frame its length, the hash of its bytes and its first bytes; for a program its number and words.
    """

    number: int
    at_ps: int
    what: str
    who: str
    rest: str

    @property
    def time(self) -> str:
        """The lab's time in seconds, to the picosecond."""
        return f"{self.at_ps // 10**12}.{self.at_ps % 10**12:012d} s"

    @property
    def frame(self) -> bytes:
        """The first bytes of the frame that is sent; empty for other events."""
        return bytes.fromhex(self.rest.split()[2]) if self.what == "sends" else b""

    def __str__(self) -> str:
        if self.what == "sends":
            return f"{self.who} sends {self.rest.split()[0]} bytes: {frame_fields(self.frame)}"
        if self.what == "starts":
            number, _, words = self.rest.partition(" ")
            return f"program {number} is started in {self.who}: {' '.join(json.loads(words))}"
        if self.what == "ended":
            number, _, status = self.rest.partition(" ")
            return f"program {number} has ended with status {status}"
        return _SAID[self.what].format(who=self.who)


@dataclass(frozen=True)
class Parting:
    """Where two traces part.

    Parameters
    ----------
    before
        The last event that both have; ``None`` when they differ from the first on.
    first, second
        The next one of each; ``None`` where the trace ends.
    """

    before: TraceEvent | None
    first: TraceEvent | None
    second: TraceEvent | None

    @property
    def difference(self) -> str:
        """What differs: the time, the event, or the fields of the frame."""
        first, second = self.first, self.second
        if first is None or second is None:
            return "one trace ends here"
        if (first.what, first.who) != (second.what, second.who):
            return "other events"
        found: list[str] = []
        if first.at_ps != second.at_ps:
            found.append(f"the time, by {abs(first.at_ps - second.at_ps) / 1e6:g} us")
        if first.rest != second.rest:
            if first.what == "sends" and first.frame != second.frame:
                found += frame_fields(first.frame).differences(first.frame, second.frame)
            else:
                found.append("the frame's content" if first.what == "sends" else "the program")
        return ", ".join(found)

    def to_record(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {
            "equal_events": self.before.number if self.before is not None else 0,
            "difference": self.difference,
            "before": _record(self.before),
            "first": _record(self.first),
            "second": _record(self.second),
        }


def _record(event: TraceEvent | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {"at_ps": event.at_ps, "what": event.what, "who": event.who, "said": str(event)}


def part(first: Path, second: Path) -> tuple[int, Parting | None]:
    """Compare two traces.

    Parameters
    ----------
    first, second
        The files.

    Returns
    -------
    tuple
        How many events are equal from the beginning, and where they part: ``None`` when they are equal.

    Raises
    ------
    BadFile
        A file cannot be read, or is no trace.
    """
    number, before = 0, b""
    with closing(_lines(first)) as one, closing(_lines(second)) as other:
        for left, right in zip_longest(one, other):
            if left != right:
                last = _event(first, number, before) if number else None
                events = [
                    _event(path, number + 1, line) if line is not None else None
                    for path, line in ((first, left), (second, right))
                ]
                return number, Parting(last, *events)
            number, before = number + 1, left
    return number, None


def _lines(path: Path) -> Generator[bytes]:
    try:
        with open_given(path) as file:
            if file.readline(len(_HEADER)) != _HEADER:
                raise BadFile(f"{path} is no trace of twinnet", _REMEDY)
            while line := file.readline(_LONGEST_LINE):
                yield line
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {reason(error)}", _REMEDY) from None


def _event(path: Path, number: int, line: bytes) -> TraceEvent:
    words = line.decode(errors="replace").rstrip("\n").split(" ", 3)
    try:
        event = TraceEvent(number, int(words[0]), words[1], words[2], words[3] if len(words) > 3 else "")
        str(event)
    except (ValueError, LookupError, TypeError):
        what = "is cut off" if not line.endswith(b"\n") else "is none of a trace"
        raise BadFile(f"{path}: line {number + 1} {what}", _REMEDY) from None
    return event
