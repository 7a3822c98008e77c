"""Waiting for a machine that others use too to be quiet, within reason, and telling how quiet it was."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["Quiet"]

_SAMPLE_S = 0.3
_BUSY_PERCENT = 12.0


class Quiet:
    """What others' programs take of the machine before each measurement of one part.

    Parameters
    ----------
    budget_s
        How long all waiting of the part may last together; then measurements go on whatever others do.
    """

    def __init__(self, budget_s: float) -> None:
        self._left_s = budget_s
        self.seen: list[float] = []

    def wait(self) -> None:
        """Return when the machine is idle, or the budget is used up."""
        while (busy := _busy_percent()) > _BUSY_PERCENT and self._left_s > 0:
            self._left_s -= _SAMPLE_S
        self.seen.append(busy)


def _busy_percent() -> float:
    before = _times()
    time.sleep(_SAMPLE_S)
    busy, total = (now - then for now, then in zip(_times(), before, strict=True))
    return 100 * busy / total if total else 0.0


def _times() -> tuple[int, int]:
    """Return the ticks that all processors were busy, and all ticks."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)
