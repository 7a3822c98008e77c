"""The ticks of logarithmic axes."""

from __future__ import annotations

import math

__all__ = ["BESIDE_ZERO", "log_ticks", "log_words", "with_zero"]

BESIDE_ZERO = 1.15
"""How far an axis goes below the place of its zeros, so that their marks are whole."""

_SHORT, _LONG = 2, 5
"""Decades of an axis that has ticks between powers of ten, and of one that has room for all of these."""
_FEWEST = 3
_APART = 0.1
"""The part of an axis that ticks keep from the place of its zeros."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of an axis from `low` to `high`: powers of ten, and 2 and 5 times these on short axes.

    Where these are fewer than three, they are as on a linear axis.

    Examples
    --------
    >>> log_ticks(7, 130)
    [10.0, 20.0, 50.0, 100.0]
    >>> log_ticks(0.5, 1500)
    [1.0, 10.0, 100.0, 1000.0]
    >>> log_ticks(5, 16)
    [6.0, 8.0, 10.0, 12.0, 14.0, 16.0]
    """
    decades = math.log10(high / low)
    step = math.ceil(decades / _LONG)
    ways = [(1.0, 2.0, 5.0)] if decades <= _SHORT else [(1.0,), (1.0, 3.0)]
    for factors in ways:
        ticks = [
            # Rounded, so that a tick is 0.2 and not 0.20000000000000001.
            float(f"{factor * 10.0**decade:.3g}")
            for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            if decade % step == 0
            for factor in factors
        ]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _FEWEST:
            return ticks
    return _linear_ticks(low, high)


def _linear_ticks(low: float, high: float) -> list[float]:
    """Three to seven multiples of 1, 2 or 5 times a power of ten."""
    least = (high - low) / 7
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(factor * unit for factor in (1.0, 2.0, 5.0, 10.0) if factor * unit >= least)
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [float(f"{place * step:.6g}") for place in places]


def log_words(ticks: list[float]) -> list[str]:
    """Return the words of `ticks`: powers of ten where a number would be long.

    Examples
    --------
    >>> log_words([1e-06, 0.001, 20.0])
    ['10⁻⁶', '0.001', '20']
    """
    words: list[str] = []
    for tick in ticks:
        exponent = math.log10(tick)
        is_long = not 1e-4 < tick < 1e5 and exponent == round(exponent)
        words.append(f"10{str(round(exponent)).translate(_SUPERSCRIPTS)}" if is_long else f"{tick:g}")
    return words


def with_zero(ticks: list[float], low: float, high: float) -> tuple[list[float], list[str]]:
    """Return `ticks` and their words with a zero at `low`, where a logarithmic axis has what it cannot have."""
    apart = low * (high / low) ** _APART
    kept = [tick for tick in ticks if tick >= apart]
    return [low, *kept], ["0", *log_words(kept)]
