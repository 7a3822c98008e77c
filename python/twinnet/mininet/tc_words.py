"""Rates, sizes and settings in the words of ``tc``."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "LineRefused",
    "after",
    "kept_bytes",
    "number",
    "rate_bps",
    "rate_text",
    "red_weight",
    "seconds",
    "share",
    "size_bytes",
    "size_text",
    "time_ps",
    "time_text",
]

_NUMBER = r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+\.)"
_WITH_UNIT = re.compile(_NUMBER + "([a-z]*)", re.IGNORECASE)
_SHARE = re.compile(_NUMBER + "(%?)")
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_RATES = {
    **{f"{prefix}bit": factor for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}bps": 8 * factor for prefix, factor in _PREFIXES.items()},
    **{prefix: factor for prefix, factor in _PREFIXES.items() if len(prefix) < 2},
}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SIZES: dict[str, float] = {
    **{f"{prefix}b": factor for prefix, factor in _BINARY.items()},
    **{f"{prefix}bit": factor / 8 for prefix, factor in _BINARY.items()},
    **_BINARY,
}
_TIMES_PS = {
    **dict.fromkeys(("s", "sec", "secs"), 10**12),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**9),
    **dict.fromkeys(("", "us", "usec", "usecs"), 10**6),
    **dict.fromkeys(("ns", "nsec", "nsecs"), 10**3),
}
"""A bare number is in microseconds (tc(8))."""
_HALVINGS = 31
_TICKS_PER_SECOND = 15_625_000
"""In these the kernel counts how long a burst takes (``/proc/net/psched``)."""


class LineRefused(Exception):
    """A command that cannot be done; its text is what ``tc`` says, and `status` what it ends with: 1 for a line that it
    cannot read, 2 for one that the kernel would refuse."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def after(words: Sequence[str], *names: str) -> str | None:
    """Return the word that follows the first of `names` that is there."""
    for name in names:
        if name in words[:-1]:
            return words[words.index(name) + 1]
    return None


def _measured(text: str, units: dict[str, float] | dict[str, int]) -> float:
    found = _WITH_UNIT.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise ValueError(text)
    return float(found[1]) * units[found[2].lower()]


def rate_bps(text: str) -> float:
    """Return the rate that `text` gives, in bit/s: ``10mbit``, ``1.5mbps`` (bytes per second); raises `ValueError`."""
    return _measured(text, _RATES)


def size_bytes(text: str) -> int:
    """Return the size that `text` gives, in bytes: ``15k``, ``1600b``; raises `ValueError`."""
    return int(_measured(text, _SIZES))


def time_ps(text: str) -> int:
    """Return the time that `text` gives, in picoseconds: ``10ms``, ``0.01s``, ``10000``; raises `ValueError`."""
    return round(_measured(text, _TIMES_PS))


def share(text: str) -> float:
    """Return the share that `text` gives in per cent, with the sign or without; raises `ValueError`."""
    found = _SHARE.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise ValueError(text)
    return float(found[1]) / 100


def number(text: str) -> int:
    """Return a whole number that is not negative, in the form of C; raises `ValueError`."""
    value = int(text, 8 if re.fullmatch("0[0-7]+", text) else 0)
    if value < 0:
        raise ValueError(text)
    return value


def seconds(text: str) -> int:
    """Return whole seconds in picoseconds; raises `ValueError`."""
    return number(text) * 10**12


def red_weight(min_bytes: int, max_bytes: int, frame_bytes: int, burst_frames: int | None) -> float:
    """Return the weight of the newest length in RED's average, as ``tc`` chooses it: the greatest power of one half
    with which `burst_frames` that find an empty queue do not lift the average beyond `min_bytes` (Floyd and Jacobson
    1993, section 6; one frame less in the exponent, as ``tc-red(8)`` counts). Without a burst it is that of the manual
    page: ``(2 * min + max) / (3 * avpkt)``. Raises :class:`LineRefused` for a burst that `min_bytes` holds as it is."""
    burst = (2 * min_bytes + max_bytes) // (3 * frame_bytes) if burst_frames is None else burst_frames
    beyond = burst + 1 - min_bytes / frame_bytes
    if beyond < 1:
        raise LineRefused(f"RED: a burst of {burst} is too small for min {min_bytes} and avpkt {frame_bytes}")
    for halvings in range(1, _HALVINGS + 1):
        weight = 2.0**-halvings
        if beyond <= (1 - (1 - weight) ** burst) / weight:
            return weight
    raise LineRefused(f"RED: a burst of {burst} is too large for min {min_bytes} and avpkt {frame_bytes}")


def kept_bytes(count: float, rate_bps: float) -> int:
    """Return the burst of `count` bytes as the kernel keeps it: as its time at the rate, in whole ticks."""
    ticks = int(count * 8 / rate_bps * _TICKS_PER_SECOND)
    return int(rate_bps / 8 * ticks / _TICKS_PER_SECOND + 1e-9)


def rate_text(bps: float) -> str:
    """Return the rate as ``tc`` shows it: ``10Mbit``. The kernel keeps whole bytes per second."""
    left = int(bps / 8) * 8
    for unit in ("", "K", "M", "G", "T"):
        if left < 1000 or (left % 1000 and left < 1_000_000) or unit == "T":
            return f"{left}{unit}bit"
        left //= 1000
    raise AssertionError("the last unit returns")


def size_text(count: float) -> str:
    """Return the size as ``tc`` shows it: ``15Kb``, ``1600b``."""
    for unit, factor, near in (("Mb", 2**20, 1024), ("Kb", 2**10, 16)):
        if count >= factor and abs(factor * round(count / factor) - count) < near:
            return f"{round(count / factor)}{unit}"
    return f"{count:.0f}b"


def time_text(ps: float) -> str:
    """Return the time as ``tc`` shows it: ``50ms``, ``47.2ms``."""
    for unit, factor in (("s", 10**12), ("ms", 10**9), ("us", 10**6)):
        if ps >= factor:
            return f"{ps / factor:.3g}{unit}"
    return f"{ps / 1000:.0f}ns"
