"""Exact curves: while somebody looks at the curves of a link, the lab samples its two ports in intervals of 20 ms."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue, TwinnetError
from twinnet.live.watch import DROPS, more_of_way, with_more
from twinnet.units import PS_PER_SECOND

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["INTERVAL_S", "MOST_LINKS", "FineCurves"]

INTERVAL_PS = 20 * 10**9
INTERVAL_S = INTERVAL_PS / PS_PER_SECOND
MOST_LINKS = 8
"""So many links are sampled at once."""
_MOST_IN_SAMPLER = 500
"""Of more intervals another sampler goes on, so that each answer of the lab stays short."""
_MOST_TOLD = 3000
_FORGET_S = 3.0
"""A link of whose curves nobody has asked for so long is sampled no more."""

Row = tuple[float, list[Any], list[Any]]


class _Sampled:
    """The ports of one link, the sampler that counts them, the one before as long as it goes on, and what that told."""

    def __init__(self, ports: Sequence[str], sampler: int) -> None:
        self.ports = ports
        self.sampler = sampler
        self.ending: int | None = None
        self.before: list[Row] = []
        self.asked_s = 0.0


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

    def since(self, link: int, since_s: float) -> list[Row]:
        """Return of each interval that ended after `since_s` of the lab's clock its end in seconds, and what the link
        did there and back, as :func:`~twinnet.live.watch.way_record` tells it, without loads and line rates; the last
        3,000 at most.

        Raises
        ------
        BadValue
            There is no such link, or eight others are sampled.
        """
        with self._lock:
            if self.is_paused:
                return []
            sampled = self._links.get(link) or self._begin(link)
            sampled.asked_s = time.monotonic()
            return [row for row in self._read(sampled) if row[0] > since_s][-_MOST_TOLD:]

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

    def _begin(self, link: int) -> _Sampled:
        links = self._lab.links()
        if not 0 <= link < len(links):
            raise BadValue(f"there is no link {link}", f"the lab has {len(links)}")
        if len(self._links) >= MOST_LINKS:
            raise BadValue(f"{MOST_LINKS} links are sampled already", "close the curves of another one")
        ports = [links[link][way]["port"] for way in ("ab", "ba")]
        self._links[link] = _Sampled(ports, self._sampler(ports))
        return self._links[link]

    def _sampler(self, ports: Sequence[str]) -> int:
        return self._lab.connection.samples_start(interval_ps=INTERVAL_PS, ports=ports)["sampler"]

    def _read(self, sampled: _Sampled) -> list[Row]:
        told = self._lab.connection.samples_read(sampler=sampled.sampler)
        rows = _rows(told, sampled.ports)
        if sampled.ending is not None:
            if not rows:
                return _rows(self._lab.connection.samples_read(sampler=sampled.ending), sampled.ports)
            # The interval in which the other sampler began is the last of this one that is told: nothing is left out.
            begin_s = told["start_ps"] / PS_PER_SECOND
            past = _rows(self._stop(sampled.ending), sampled.ports)
            sampled.before = [row for row in past if row[0] - INTERVAL_S < begin_s]
            sampled.ending = None
        elif len(rows) >= _MOST_IN_SAMPLER:
            sampled.ending, sampled.before = sampled.sampler, []
            sampled.sampler = self._sampler(sampled.ports)
            return rows
        return [*sampled.before, *(row for row in rows if not sampled.before or row[0] > sampled.before[-1][0])]

    def _end(self, link: int) -> None:
        sampled = self._links.pop(link)
        with contextlib.suppress(TwinnetError, TimeoutError):
            for number in (sampled.ending, sampled.sampler):
                if number is not None:
                    self._stop(number)

    def _stop(self, number: int) -> Mapping[str, Any]:
        told = self._lab.connection.samples_stop(sampler=number)
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
