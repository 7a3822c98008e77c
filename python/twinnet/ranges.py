"""Upper limits of the values of a network and its traffic, on both clocks. A mistyped unit is reported where it stands,
and no sum of times exceeds the clock, which ends after 106 days.
"""

from __future__ import annotations

from typing import TypeGuard

from twinnet.errors import BadQuantity
from twinnet.units import (
    PS_PER_SECOND,
    duration_ps,
    format_duration,
    format_rate,
    format_size,
    rate_bps,
    size_bytes,
)

__all__ = [
    "FASTEST_LINE_BPS",
    "LONGEST_RUN_PS",
    "LONGEST_WAY_PS",
    "SHORTEST_INTERVAL_PS",
    "counting_interval_ps",
    "is_whole",
    "line_rate_bps",
    "moment_ps",
    "run_time_ps",
    "transfer_bytes",
    "way_ps",
]

LONGEST_WAY_PS = 3600 * PS_PER_SECOND
"""The longest time that a frame may take somewhere, and the longest interval in which apps count: an hour."""
LONGEST_RUN_PS = 100 * 24 * LONGEST_WAY_PS
"""The longest time that traffic may last, and the last moment at which something may happen."""
SHORTEST_INTERVAL_PS = PS_PER_SECOND // 1000
"""The shortest interval in which apps count."""
FASTEST_LINE_BPS = 10**13
"""The greatest rate of a line."""
_LARGEST_TRANSFER_BYTES = 10**15


def is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Return whether `value` is a whole number from `least` to `most`; a truth value is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _within_time(value: object, what: str, least_ps: int, most_ps: int) -> int:
    found = duration_ps(value, what)
    if least_ps <= found <= most_ps:
        return found
    allowed = f"{format_duration(least_ps)} to {format_duration(most_ps)}"
    raise BadQuantity(f"the {what} {value!r} is out of range; allowed are {allowed}")


def way_ps(value: object, what: str) -> int:
    """The time that a frame takes somewhere, in picoseconds: at most an hour."""
    return _within_time(value, what, 0, LONGEST_WAY_PS)


def moment_ps(value: object, what: str = "time") -> int:
    """A moment of a lab's clock in picoseconds: at most 100 days."""
    return _within_time(value, what, 0, LONGEST_RUN_PS)


def run_time_ps(value: object, what: str = "duration") -> int:
    """Return the duration of traffic, in picoseconds: above zero, at most 100 days."""
    return _within_time(value, what, 1, LONGEST_RUN_PS)


def counting_interval_ps(value: object, what: str = "interval") -> int:
    """An interval in which apps count, in picoseconds: 1 ms to an hour."""
    return _within_time(value, what, SHORTEST_INTERVAL_PS, LONGEST_WAY_PS)


def line_rate_bps(value: object, what: str = "rate") -> int:
    """A rate in bits per second: at most 10 Tbit/s."""
    found = rate_bps(value, what)
    if found > FASTEST_LINE_BPS:
        most = format_rate(FASTEST_LINE_BPS)
        raise BadQuantity(f"the {what} {value!r} is out of range; allowed are 1 bit/s to {most}")
    return found


def _within_size(value: object, what: str, least: int, most: int) -> int:
    found = size_bytes(value, what)
    if least <= found <= most:
        return found
    raise BadQuantity(f"the {what} {value!r} is out of range; allowed are {format_size(least)} to {format_size(most)}")


def transfer_bytes(value: object, what: str = "size", least: int = 0) -> int:
    """The size of a transfer in bytes: at most 1 PB."""
    return _within_size(value, what, least, _LARGEST_TRANSFER_BYTES)
