"""Rates, sizes and settings in the words of ``tc``."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["LineRefused", "after", "rate_bps", "rate_text", "red_weight", "size_bytes", "size_text"]

_RATE = re.compile(r"([0-9.]+)([kmgt]?i?)(bit|bps)?", re.IGNORECASE)
_SIZE = re.compile(r"([0-9.]+)([kmg]?)(b|bit|bits)?", re.IGNORECASE)
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_HALVINGS = 31
_SIZE_PREFIXES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class LineRefused(Exception):
    """A command that cannot be done; its text is what ``tc`` says."""


def after(words: Sequence[str], *names: str) -> str | None:
    """Return the word that follows the first of `names` that is there."""
    for name in names:
        if name in words[:-1]:
            return words[words.index(name) + 1]
    return None


def rate_bps(text: str) -> float:
    """Return the rate that `text` gives, in bit/s: ``10mbit``, ``1.5mbps`` (bytes per second); raises
    :class:`LineRefused`."""
    found = _RATE.fullmatch(text)
    if found is None or found[2].lower() not in _PREFIXES:
        raise LineRefused(f'Illegal "rate": {text}')
    return _number(found[1], text) * _PREFIXES[found[2].lower()] * (8 if (found[3] or "").lower() == "bps" else 1)


def size_bytes(text: str) -> int:
    """Return the size that `text` gives, in bytes: ``15k``, ``1600b``; raises :class:`LineRefused`."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise LineRefused(f"Illegal size: {text}")
    bits = (found[3] or "").lower().startswith("bit")
    return int(_number(found[1], text) * _SIZE_PREFIXES[found[2].lower()] / (8 if bits else 1))


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise LineRefused(f"{text} is no number") from None


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


def rate_text(bps: float) -> str:
    """Return the rate as ``tc`` shows it: ``10Mbit``."""
    for unit, factor in (("Gbit", 1e9), ("Mbit", 1e6), ("Kbit", 1e3)):
        if bps >= factor and bps % factor == 0:
            return f"{bps / factor:g}{unit}"
    return f"{bps:.0f}bit"


def size_text(count: int) -> str:
    """Return the size as ``tc`` shows it: ``15Kb``, ``1600b``."""
    for unit, factor in (("Mb", 1024**2), ("Kb", 1024)):
        if count >= factor and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}b"
