"""Whether this machine is quiet enough for a test that judges time, now.

A test that is marked ``quiet`` or ``judged`` says by ``processors=`` how much of them it needs (`PROCESSORS`). Before
it begins, this looks at what others leave of the processors, at what the host of a virtual machine takes of them
(Linux's steal), and at how late a sleep ends. A machine that is too busy has the test skipped, with the figure.

Others are all processes but those of this session of pytest: its descendants, and those that have `MARK` in their
environment from it, whoever is their parent now. A lab of the test's module is no reason to skip the test.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MARK", "NOT_QUIET", "PROCESSORS", "Look", "look", "mark_session", "own_processes", "too_busy"]

MARK = "TWINNET_TEST_SESSION"
"""What the processes of a session have in their environment."""

PROCESSORS = 1.5
"""How much of the processors a test needs where it says nothing: a lab and the programs in it."""
MOST_STOLEN = 0.03
"""Of the time of all processors: a lab that lacks more is late by as much."""
MOST_LATE_MS = 5.0
"""What a sleep of 1 ms may end late by: more than a whole time slice of another program."""
NOT_QUIET = "this machine is not quiet enough"
"""How each reason begins."""
_LOOK_S = 0.2
"""Linux counts in hundredths of a second: 20 of each processor."""
_LOOKS = 15
"""For 3 s: what others do may just be ending."""
_SLEEPS = 20
_PROC = Path("/proc")


@dataclass(frozen=True)
class Look:
    """What was seen of a machine.

    Parameters
    ----------
    free
        How many processors no other used, a number with a fraction.
    stolen
        The share of all processors that the host took, 0 to 1.
    late_ms
        By how much the latest of some sleeps ended late, in milliseconds.
    """

    free: float
    stolen: float
    late_ms: float

    def against(self, processors: float) -> str | None:
        """Return why a test that needs `processors` cannot be trusted here; ``None`` when it can."""
        if self.free < processors:
            return f"{NOT_QUIET}: {self.free:.1f} processors are free, {processors:g} are needed"
        if self.stolen > MOST_STOLEN:
            return f"{NOT_QUIET}: the host takes {self.stolen:.0%} of the processors, at most {MOST_STOLEN:.0%} may be"
        if self.late_ms > MOST_LATE_MS:
            return f"{NOT_QUIET}: a sleep ended {self.late_ms:.1f} ms late, at most {MOST_LATE_MS:g} may be"
        return None


def mark_session() -> None:
    """Have the processes that this one starts carry the mark of its session; one inside of another has the outer's."""
    os.environ.setdefault(MARK, str(uuid.uuid4()))


def own_processes(proc: Path = _PROC) -> dict[int, int]:
    """Return the processes of this session, each with the ticks that it and its children that ended have used."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    own = {os.getpid()}
    mark = f"{MARK}={os.environ.get(MARK)}".encode()
    for folder in proc.glob("[0-9]*"):
        process = int(folder.name)
        try:
            # Behind the name, which may hold anything: the state is field 3, proc(5).
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        # The parent is field 4. Fields 14 to 17 are the times of the process and of its children that it waited for, so
        # that the sum of all stays the same when one ends.
        parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                own.add(process)
        except OSError:
            # Ended, or another user's.
            continue
    for process in parents:
        line = [process]
        while line[-1] in parents and line[-1] not in own:
            line.append(parents[line[-1]])
        if line[-1] in own:
            own.update(line)
    return {process: ticks[process] for process in own if process in ticks}


def _ticks(proc: Path) -> tuple[int, int, int, int]:
    """Idle, stolen, all, and those of this session; those of guests are in those of their users."""
    ticks = [int(one) for one in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], ticks[7], sum(ticks), sum(own_processes(proc).values())


def look(proc: Path = _PROC) -> Look:
    """Look at the machine for a fifth of a second."""
    before, latest = _ticks(proc), 0.0
    end = time.monotonic() + _LOOK_S
    for _ in range(_SLEEPS):
        began = time.monotonic()
        time.sleep(0.001)
        latest = max(latest, time.monotonic() - began - 0.001)
    time.sleep(max(0.0, end - time.monotonic()))
    idle, stolen, every, own = (now - then for now, then in zip(_ticks(proc), before, strict=True))
    if not every:
        return Look(0.0, 0.0, latest * 1000)
    # A process of ours that ended without a parent of ours takes its ticks away.
    left = min(idle + max(0, own), every)
    return Look(len(os.sched_getaffinity(0)) * left / every, stolen / every, latest * 1000)


def too_busy(processors: float, proc: Path = _PROC) -> str | None:
    """Return why a test that needs `processors` cannot be trusted now; ``None`` when it can.

    Looks several times: the reason that counts is the last.
    """
    reason = None
    for _ in range(_LOOKS):
        reason = look(proc).against(processors)
        if reason is None:
            return None
    return reason
