"""The ranges of what queue configurations hold, where several have them."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from twinnet.errors import BadQueue
from twinnet.ranges import stored_bytes
from twinnet.units import duration_ps, format_duration

__all__ = ["MOST_FRAMES", "judged_bytes", "quantum_bytes", "share", "span_ps", "switch", "whole_number"]

MOST_FRAMES = 10**8
"""Frames that one discipline may keep."""
_MOST_JUDGED_BYTES = (1 << 31) - 1
_LONGEST_SPAN_PS = 10**15


def whole_number(value: object, what: str, least: int, most: int) -> int:
    """Return `value` when it is a whole number within its range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadQueue(f"{what} is {value!r}; allowed are whole numbers from {least} to {most}")
    return value


def span_ps(value: object, what: str, least_ps: int = 10**6) -> int:
    """Return a target, an interval or a period in picoseconds: at most 1000 s."""
    found = duration_ps(value, what)
    if not least_ps <= found <= _LONGEST_SPAN_PS:
        allowed = f"{format_duration(least_ps)} to {format_duration(_LONGEST_SPAN_PS)}"
        raise BadQueue(f"{what} is {value!r}; allowed are {allowed}")
    return found


def judged_bytes(value: object, what: str) -> int:
    """Return a threshold in bytes: 1 B to 2 GB."""
    found = stored_bytes(value, what)
    if not 1 <= found <= _MOST_JUDGED_BYTES:
        raise BadQueue(f"{what} is {value!r}; allowed are 1 B to {_MOST_JUDGED_BYTES} B")
    return found


def quantum_bytes(value: object) -> int:
    """Return what may be sent in a turn, in bytes: 64 B to 4 GB."""
    found = stored_bytes(value, "quantum")
    if not 64 <= found <= (1 << 32) - 1:
        raise BadQueue(f"the quantum is {value!r}; allowed are 64 B to {(1 << 32) - 1} B")
    return found


def share(value: object, what: str) -> float:
    """Return a probability or weight above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise BadQueue(f"{what} is {value!r}; allowed are numbers above 0, at most 1")
    return float(value)


def switch(value: object, what: str) -> bool:
    """Return `value` when it is true or false."""
    if not isinstance(value, bool):
        raise BadQueue(f"{what} is {value!r}; allowed are True and False")
    return value
