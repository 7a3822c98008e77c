"""How long something may take on processors that other tests use, too."""

from __future__ import annotations

import os

__all__ = ["stretched_s"]


def stretched_s(seconds: float) -> float:
    """Return how long what takes at most `seconds` on a quiet machine may take now: as many times as long as programs
    wanted to run at once, on average over the last minute."""
    return seconds * max(1.0, os.getloadavg()[0])
