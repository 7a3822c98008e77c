"""Exact curves: while somebody looks at the curves of a link, the lab samples its two ports in intervals of 20 ms."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue, TwinnetError
from twinnet.live.watch import DROPS, more_of_way, with_more
from twinnet.units import PS_PER_SECOND

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["INTERVAL_S", "MOST_LINKS", "FineCurves"]

INTERVAL_PS = 20 * 10**9
INTERVAL_S = INTERVAL_PS / PS_PER_SECOND
MOST_LINKS = 64
"""So many links are sampled at once."""
_MOST_IN_SAMPLER = 500
"""Of more intervals another sampler goes on, so that the lab keeps few."""
_MOST_TOLD = 3000
_FORGET_S = 3.0
"""A link of whose curves nobody has asked for so long is sampled no more."""

Row = tuple[float, list[Any], list[Any]]


@dataclass
class _Sampler:
    """A sampler of the lab, and how many of its intervals were read."""

    number: int
    read: int = 0


class _Sampled:
    """The ports of one link, the sampler that counts them, the one before as long as it goes on, and what they told,
    each interval once."""

    def __init__(self, ports: Sequence[str], sampler: _Sampler) -> None:
        self.ports = ports
        self.sampler = sampler
        self.ending: _Sampler | None = None
        self.rows: deque[Row] = deque(maxlen=_MOST_TOLD)
        self.asked_s = 0.0

    def keep(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if not self.rows or row[0] > self.rows[-1][0]:
                self.rows.append(row)

    def since(self, since_s: float) -> list[Row]:
        newest = takewhile(lambda row: row[0] > since_s, reversed(self.rows))
        return [*newest][::-1]


class FineCurves:
    """The samples of a lab's links. Threads may share them. Call `rest` now and then, and `end` at the end: a page that
    is killed leaves its samplers in the lab, which keep 140 MB each at most.

    Attributes
    ----------
    is_paused
        True while nothing is sampled: each moment of a sampler is an event of the virtual clock.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = threading.Lock()
        self._links: dict[int, _Sampled] = {}
        self._left: set[int] = set()
        self.is_paused: bool = False

    def since(self, asked: Mapping[int, float]) -> dict[int, list[Row]]:
        """Return what links did lately: by their numbers a row for each interval that ended after the time in `asked`,
        in seconds of the lab's clock; the last 3,000 at most. Where 64 others are sampled already, a link is left out.

        A row has the end of its interval in seconds, and what the link did there and back, as
        :func:`~twinnet.live.watch.way_record` tells it, without loads and line rates.

        Raises
        ------
        BadValue
            There is no such link.
        """
        with self._lock:
            if self.is_paused:
                return {link: [] for link in asked}
            found: dict[int, list[Row]] = {}
            for link, since_s in asked.items():
                sampled = self._links.get(link) or self._begin(link)
                if sampled is not None:
                    sampled.asked_s = time.monotonic()
                    self._read(sampled)
                    found[link] = sampled.since(since_s)
            return found

    def rest(self) -> None:
        """Sample no more what nobody has asked for lately."""
        with self._lock:
            for link, sampled in [*self._links.items()]:
                if time.monotonic() - sampled.asked_s > _FORGET_S:
                    self._end(link)

    def end(self) -> None:
        """Sample nothing more."""
        with self._lock:
            for link in [*self._links]:
                self._end(link)

    def was_left(self, moment_ps: int) -> bool:
        """Return whether a sampler that has ended would have counted at a moment to come: nothing else need happen
        then."""
        return moment_ps in self._left

    def _begin(self, link: int) -> _Sampled | None:
        links = self._lab.links()
        if not 0 <= link < len(links):
            raise BadValue(f"there is no link {link}", f"the lab has {len(links)}")
        if len(self._links) >= MOST_LINKS:
            return None
        ports = [links[link][way]["port"] for way in ("ab", "ba")]
        self._links[link] = _Sampled(ports, self._sampler(ports))
        return self._links[link]

    def _sampler(self, ports: Sequence[str]) -> _Sampler:
        return _Sampler(self._lab.connection.samples_start(interval_ps=INTERVAL_PS, ports=ports)["sampler"])

    def _read(self, sampled: _Sampled) -> None:
        rows = self._news(sampled.sampler, sampled.ports)
        if sampled.ending is not None and not rows:
            rows = self._news(sampled.ending, sampled.ports)
        elif sampled.ending is not None:
            # The interval in which the other sampler began is the last of this one that is kept: nothing is left out.
            begin_s = rows[0][0] - INTERVAL_S
            past = _rows(self._stop(sampled.ending), sampled.ports)
            sampled.keep(row for row in past if row[0] - INTERVAL_S < begin_s)
            sampled.ending = None
        elif sampled.sampler.read >= _MOST_IN_SAMPLER:
            sampled.ending, sampled.sampler = sampled.sampler, self._sampler(sampled.ports)
        sampled.keep(rows)

    def _news(self, sampler: _Sampler, ports: Sequence[str]) -> list[Row]:
        """What a sampler has counted since it was read."""
        rows = _rows(self._lab.connection.samples_read(sampler=sampler.number, skip=sampler.read), ports)
        sampler.read += len(rows)
        return rows

    def _end(self, link: int) -> None:
        sampled = self._links.pop(link)
        with contextlib.suppress(TwinnetError, TimeoutError):
            for sampler in (sampled.ending, sampled.sampler):
                if sampler is not None:
                    self._stop(sampler)

    def _stop(self, sampler: _Sampler) -> Mapping[str, Any]:
        """End a sampler, and return what it has counted since it was read."""
        told = self._lab.connection.samples_stop(sampler=sampler.number, skip=sampler.read)
        counted = len(next(iter(told["ports"].values()))["frames"])
        end_ps = int(told["start_ps"]) + counted * INTERVAL_PS
        # A moment of it is left among the events of the lab.
        self._left = {moment_ps for moment_ps in self._left if moment_ps > end_ps} | {end_ps + INTERVAL_PS}
        return told


def _rows(told: Mapping[str, Any], ports: Sequence[str]) -> list[Row]:
    ways = [_ways(told["ports"][port]) for port in ports]
    ends = (told["start_ps"] + place * INTERVAL_PS for place in range(1, len(ways[0]) + 1))
    return [(end_ps / PS_PER_SECOND, there, back) for end_ps, there, back in zip(ends, *ways, strict=True)]


def _ways(columns: Mapping[str, Sequence[int]]) -> list[list[Any]]:
    """What a port did in each interval."""
    reasons = [*DROPS]
    dropped = zip(*(columns[counter] for counter in DROPS.values()), strict=True)
    counts = zip(columns["link_bytes"], columns["backlog_frames"], columns["drops"], columns["marked"], strict=True)
    return [
        with_more(
            [round(sent * 8 / INTERVAL_S), None, queue, drops, True, None],
            more_of_way(dict(zip(reasons, by_reason, strict=True)), marked),
        )
        for (sent, queue, drops, marked), by_reason in zip(counts, dropped, strict=True)
    ]
