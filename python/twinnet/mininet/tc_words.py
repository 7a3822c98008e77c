"""Rates, sizes and settings in the words of ``tc``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

__all__ = [
    "TICKS_PER_US",
    "LineRefused",
    "Settings",
    "class_id",
    "kept_bytes",
    "kernel_refuses",
    "matching",
    "number",
    "prefix",
    "rate_bps",
    "rate_text",
    "red_weight",
    "seconds",
    "share",
    "share_text",
    "size_bytes",
    "size_text",
    "taken",
    "ticks_shown",
    "time_ps",
    "time_text",
]

Settings = dict[str, Any]
"""What the words of a discipline or class set, by name."""
_NUMBER = r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+\.)"
_WITH_UNIT = re.compile(_NUMBER + "([a-z]*)", re.IGNORECASE)
_SHARE = re.compile(_NUMBER + "(%?)")
_WHOLE = {0: "0x[0-9a-f]+|[0-7]+|[1-9][0-9]*", 10: "[0-9]+", 16: "(0x)?[0-9a-f]+"}
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
_TIMES_US = {
    **dict.fromkeys(("s", "sec", "secs"), 10**6),
    **dict.fromkeys(("ms", "msec", "msecs"), 10**3),
    **dict.fromkeys(("", "us", "usec", "usecs"), 1),
}
"""A bare number is in microseconds (tc(8))."""
_HALVINGS = 31
TICKS_PER_US = 15.625
"""In these the kernel counts delays, and how long a burst takes (``/proc/net/psched``)."""
_NS_PER_TICK = 64
_MOST_SHARE = 2**32 - 1


class LineRefused(Exception):
    """A command that cannot be done; its text is what ``tc`` says, and `status` what it ends with: 1 for a line that it
    cannot read, 2 for one that the kernel would refuse."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def taken(given: list[str]) -> str:
    """Take the next of the words `given`."""
    if not given:
        raise LineRefused('Command line is not complete. Try option "help"', 255)
    return given.pop(0)


def kernel_refuses(text: str) -> LineRefused:
    """Return the refusal of a filter that ``tc`` has read and the kernel does not take."""
    return LineRefused(f"{text}\nWe have an error talking to the kernel")


def matching(word: str, names: Sequence[str]) -> str | None:
    """Return the first of `names` that begins with `word`, as ``tc`` takes words that are cut short."""
    return next((name for name in names if name.startswith(word)), None)


def _measured(text: str, units: dict[str, float] | dict[str, int]) -> float:
    found = _WITH_UNIT.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise ValueError(text)
    value = float(found[1]) * units[found[2].lower()]
    if value >= 2**63:
        raise ValueError(text)
    return value


def rate_bps(text: str) -> float:
    """Return the rate that `text` gives, in bit/s: ``10mbit``, ``1.5mbps`` (bytes per second); raises `ValueError`."""
    if "%" in text:
        raise LineRefused(f"the rate {text}, a part of the interface's, is not there; give bit/s, 10mbit for example")
    return _measured(text, _RATES)


def size_bytes(text: str) -> int:
    """Return the size that `text` gives, in bytes: ``15k``, ``1600b``; raises `ValueError`."""
    size = int(_measured(text, _SIZES))
    if size >= 2**32:
        raise ValueError(text)
    return size


def time_ps(text: str) -> int:
    """Return the time that `text` gives, in picoseconds: ``10ms``, ``0.01s``, ``10000``. As ``tc`` does, it keeps whole
    microseconds. Raises `ValueError`."""
    return int(_measured(text, _TIMES_US)) * 10**6


def share(text: str) -> float:
    """Return the share that `text` gives in per cent, with the sign or without; raises `ValueError`."""
    found = _SHARE.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise ValueError(text)
    return float(found[1]) / 100


def number(text: str, base: int = 0, most: int = 2**32 - 1) -> int:
    """Return a whole number of 0 to `most` in the form of C, where the base 0 is that of its prefix; raises
    `ValueError`."""
    if re.fullmatch(_WHOLE[base], text, re.IGNORECASE) is None:
        raise ValueError(text)
    octal = base == 0 and text[0] == "0" and text[1:2] not in ("x", "X")
    value = int(text, 8 if octal else base)
    if value > most:
        raise ValueError(text)
    return value


def class_id(text: str) -> str:
    """Return the name of a discipline or class as ``tc`` shows it: ``1:a``, ``1:``, ``:20``, ``root``; both sides of
    the colon are hexadecimal, and a number without a colon is a class of no discipline. Raises `ValueError`."""
    if text in ("root", "none"):
        return text
    major, colon, low = text.partition(":")
    if not colon:
        whole = number(major, 16)
        major, low = f"{whole >> 16:x}", f"{whole & 0xFFFF:x}"
    parts = [number(part, 16, 0xFFFF) if part else 0 for part in (major, low)]
    return ":".join(f"{part:x}" if part else "" for part in parts) if any(parts) else "none"


def prefix(text: str, six: bool) -> tuple[int, int]:
    """Return address and mask that `text` gives, ``10.0.0.0/8``, ``10.0.0.0/255.0.0.0``, ``2001:db8::/32``, or
    ``any``; raises `ValueError`."""
    address, slash, length = text.partition("/")
    width = 128 if six else 32
    if address in ("default", "all", "any") and not slash:
        return 0, 0
    whole = int(ipaddress.IPv6Address(address)) if six and "%" not in address else _dotted(address)
    bits = width
    if slash:
        bits = _prefix_length(length) if "." in length else number(length, most=width)
    mask = (1 << width) - (1 << width - bits)
    return whole & mask, mask


def _dotted(text: str) -> int:
    parts = [number(part, most=255) for part in text.split(".")]
    if len(parts) > 4:
        raise ValueError(text)
    return int.from_bytes(bytes(parts + [0] * (4 - len(parts))))


def _prefix_length(mask: str) -> int:
    gaps = _dotted(mask) ^ 0xFFFFFFFF
    if gaps & gaps + 1:
        raise ValueError(mask)
    return 32 - gaps.bit_length()


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
    failed = "RED: failed to calculate EWMA constant."
    if beyond < 1:
        few = f"tc_red_eval_ewma() burst {burst} is too small ? Try burst {1 + min_bytes // frame_bytes}"
        raise LineRefused(f"{few}\n{failed}", 1)
    for halvings in range(1, _HALVINGS + 1):
        weight = 2.0**-halvings
        if beyond <= (1 - (1 - weight) ** burst) / weight:
            return weight
    raise LineRefused(failed, 1)


def kept_bytes(count: float, rate_bps: float, by_kernel: bool = False) -> int:
    """Return the burst of `count` bytes as it is shown: by its time at the rate, in ticks. ``tc`` counts whole
    microseconds on the way there, the kernel nanoseconds (`by_kernel`), and ``tc`` whole microseconds on the way
    back."""
    rate = int(rate_bps / 8)
    ticks = int(count * 10**9 / rate) // _NS_PER_TICK if by_kernel else int(int(10**6 * (count / rate)) * TICKS_PER_US)
    return int(rate * int(ticks / TICKS_PER_US) / 10**6)


def ticks_shown(ps: int) -> str:
    """Return the time as ``tc`` shows it that the kernel keeps in ticks."""
    return time_text(int(int(ps // 10**6 * TICKS_PER_US) / TICKS_PER_US) * 10**6)


def share_text(part: float) -> str:
    """Return the share as ``tc`` shows it, which has kept it in 32 bits."""
    return f"{100 * round(part * _MOST_SHARE) / _MOST_SHARE:g}%"


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
