"""Whether this machine is quiet enough for a test that judges time, now.

A test that is marked ``quiet`` or ``judged`` says by ``processors=`` how much of them it needs (`PROCESSORS`). Before
it begins, this looks at what others leave of the processors, at what the host of a virtual machine takes of them
(Linux's steal), and at how late a sleep ends. A machine that is too busy has the test skipped, with the figure.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NOT_QUIET", "PROCESSORS", "Look", "look", "too_busy"]

PROCESSORS = 1.5
"""How much of the processors a test needs where it says nothing: a lab and the programs in it."""
MOST_STOLEN = 0.03
"""Of the time of all processors: a lab that lacks more is late by as much."""
MOST_LATE_MS = 5.0
"""What a sleep of 1 ms may end late by: more than a whole time slice of another program."""
NOT_QUIET = "this machine is not quiet enough"
"""How each reason begins."""
_LOOK_S = 0.1
_LOOKS = 30
"""For 3 s: what an earlier test has left may still be ending."""
_SLEEPS = 20
_STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Look:
    """What was seen of a machine.

    Parameters
    ----------
    free
        How many processors nobody used, a number with a fraction.
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


def _ticks(stat: Path) -> tuple[int, int, int]:
    """Idle, stolen, all; those of guests are in those of their users."""
    ticks = [int(one) for one in stat.read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], ticks[7], sum(ticks)


def look(stat: Path = _STAT) -> Look:
    """Look at the machine for a tenth of a second."""
    before, latest = _ticks(stat), 0.0
    end = time.monotonic() + _LOOK_S
    for _ in range(_SLEEPS):
        began = time.monotonic()
        time.sleep(0.001)
        latest = max(latest, time.monotonic() - began - 0.001)
    time.sleep(max(0.0, end - time.monotonic()))
    idle, stolen, every = (now - then for now, then in zip(_ticks(stat), before, strict=True))
    if not every:
        return Look(0.0, 0.0, latest * 1000)
    return Look(len(os.sched_getaffinity(0)) * idle / every, stolen / every, latest * 1000)


def too_busy(processors: float, stat: Path = _STAT) -> str | None:
    """Return why a test that needs `processors` cannot be trusted now; ``None`` when it can.

    Looks several times: the reason that counts is the last.
    """
    reason = None
    for _ in range(_LOOKS):
        reason = look(stat).against(processors)
        if reason is None:
            return None
    return reason
