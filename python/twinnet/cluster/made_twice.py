"""Some runs on the virtual clock are made a second time on another machine: equal runs must have equal traces."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from twinnet.study.gather import DifferentTraces
from twinnet.study.machine import machine_of, processors_apart
from twinnet.study.runner import Made, PlaceLost, Progress
from twinnet.study.store import Measured

if TYPE_CHECKING:
    from twinnet.cluster.places import RemoteSlot
    from twinnet.study.campaign import CompareAgain
    from twinnet.study.plan import PlannedRun
    from twinnet.study.resolution import Study
    from twinnet.study.store import StoredRun

__all__ = ["SHARE", "compare_machines", "comparison_on"]

SHARE = 0.02
"""How many of the runs are made twice."""


class _Slots(Protocol):
    """The part of `ClusterPlaces` that is used."""

    def slots(self) -> list[RemoteSlot]:
        """The slots that there are now."""
        ...

    def make(self, run: PlannedRun, place: RemoteSlot, progress: Progress) -> Made:
        """Have `run` made in `place`."""
        ...


def comparison_on(places: _Slots, study: Study) -> CompareAgain | None:
    """Return what makes some runs of `study` again at `places` and compares them; ``None`` where runs are not
    repeatable."""
    return partial(compare_machines, places) if study.specification.clock == "virtual" else None


def compare_machines(
    places: _Slots, plan: Sequence[PlannedRun], finished: Sequence[StoredRun], share: float = SHARE
) -> int:
    """Make some of the runs again, each on another machine than the first time, and compare their traces.

    Parameters
    ----------
    places
        The slots, which make nothing else meanwhile.
    plan
        The runs of the study, on the virtual clock.
    finished
        Those that were made now. They are chosen from evenly.
    share
        How many of them, above 0 and up to 1; rounded up.

    Returns
    -------
    int
        How many were compared: none where all slots are of one machine.

    Raises
    ------
    DifferentTraces
        A run had another trace the second time. All results are kept.
    """
    planned = {run.id: run for run in plan}
    count = math.ceil(share * len(finished))
    chosen = [finished[place * len(finished) // count] for place in range(count)]
    todo = _dealt(chosen, places.slots())
    if not todo:
        return 0

    def made_by(slot: RemoteSlot) -> list[tuple[StoredRun, RemoteSlot, Measured]]:
        again: list[tuple[StoredRun, RemoteSlot, Measured]] = []
        for stored in todo[slot]:
            try:
                made = places.make(planned[stored.id], slot, Progress(threading.Event()))
            except PlaceLost:
                # Its worker has ended. What it did not make is not compared.
                break
            if isinstance(made.result, Measured):
                again.append((stored, slot, made.result))
        return again

    with ThreadPoolExecutor(len(todo)) as pool:
        compared = [one for found in pool.map(made_by, todo) for one in found]
    _check(compared)
    return len(compared)


def _dealt(chosen: Sequence[StoredRun], slots: Sequence[RemoteSlot]) -> Mapping[RemoteSlot, Sequence[StoredRun]]:
    """The slot in which each run is made again: of another machine, and with the fewest so far."""
    dealt: dict[RemoteSlot, list[StoredRun]] = {}
    for stored in chosen:
        others = [slot for slot in slots if slot.machine != machine_of(stored.record)]
        if others:
            slot = min(others, key=lambda one: len(dealt.get(one, ())))
            dealt.setdefault(slot, []).append(stored)
    return dealt


def _check(compared: Sequence[tuple[StoredRun, RemoteSlot, Measured]]) -> None:
    different = [
        f"{stored.id} has the trace hash {stored.record.get('trace_hash')} on machine {machine_of(stored.record)} and "
        f"{trace} on {slot}{processors_apart(stored.record.get('notes', {}), made.notes)}"
        for stored, slot, made in compared
        if (trace := str(made.fidelity.record.get("trace_hash"))) != str(stored.record.get("trace_hash"))
    ]
    if different:
        raise DifferentTraces.of(
            different,
            "the results are kept; make one of these runs again on each machine: one whose trace changes is faulty, "
            "and two whose traces stay apart have different builds",
        )
