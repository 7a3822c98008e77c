"""Values written for readers: units with a prefix, three or four digits, intervals, spans of time, levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from twinnet.stats import Interval

if TYPE_CHECKING:
    from twinnet.study.analysis import PhaseMean

__all__ = [
    "Scale",
    "common_scale",
    "counted",
    "of_runs",
    "percent_apart",
    "value_with_interval",
    "worded_effect",
    "worded_levels",
    "worded_mean",
    "worded_p",
    "worded_phase",
    "worded_span",
    "worded_value",
]

_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


_WITHOUT_BOUNDS = ("constant", "exact", "extreme")
"""Of a number of the study, of repetitions that do not differ, and of the worst unit: none of these is a mean."""

_LEAST_SHOWN = 0.01
"""Smaller numbers lose digits: 0.002 has one."""
_GREATEST_SHOWN = 1e5
"""A number of six digits is harder to read than one of few."""

_INFINITE = "infinite"
"""A percentile of delays where more packets were lost than it leaves out, and the time of a transfer that had not
ended."""

Scale = tuple[float, str]
"""What a value is divided by, and the name of the unit then."""


def common_scale(values: Iterable[float], unit: str) -> Scale:
    """One prefix for several values: the divisor and the unit's name.

    It is that of the largest, or a smaller one in which the least has digits and the largest not too many.

    Examples
    --------
    >>> common_scale([2e9, 5e8], "bit/s"), common_scale([1e9, 2e6], "bit/s"), common_scale([1.0, 2e-9], "s")
    ((1000000000.0, 'Gbit/s'), (1000000.0, 'Mbit/s'), (1.0, 's'))
    """
    if unit == "1":
        return 0.01, "%"
    if unit not in ("bit/s", "s"):
        return 1.0, unit
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    scales = _RATES if unit == "bit/s" else _TIMES
    if not sizes:
        return scales[1] if unit == "bit/s" else scales[0]
    least, largest = min(sizes), max(sizes)
    usual = next((place for place, (scale, _) in enumerate(scales) if largest >= scale), len(scales) - 1)
    for scale, name in scales[usual:]:
        if least >= _LEAST_SHOWN * scale and largest < _GREATEST_SHOWN * scale:
            return scale, name
    return scales[usual]


def _digits(number: float) -> str:
    size = abs(number)
    if size >= 1000 or number == 0:
        return f"{number:.0f}"
    if size >= 100:
        return f"{number:.1f}" if size < 200 else f"{number:.0f}"
    return f"{number:.1f}" if size >= 10 else f"{number:.3f}" if size < 1 else f"{number:.2f}"


def worded_value(value: float, unit: str, scale: Scale | None = None) -> str:
    """`value` in `unit` (`bit/s`, `s` or `1`) as people read it.

    Examples
    --------
    >>> worded_value(957_200_000, "bit/s")
    '957 Mbit/s'
    """
    if math.isnan(value):
        return "not measured"
    if math.isinf(value):
        return _INFINITE
    divisor, name = scale or common_scale([value], unit)
    return f"{_digits(value / divisor)} {name}"


def value_with_interval(interval: Interval, unit: str, scale: Scale | None = None, with_unit: bool = True) -> str:
    """An estimate with its confidence interval in one unit.

    Examples
    --------
    >>> value_with_interval(Interval(4.8e8, 4.7e8, 4.9e8, 0.95, "t"), "bit/s")
    '480 [470, 490] Mbit/s'
    """
    if math.isnan(interval.estimate):
        return "not measured"
    if math.isinf(interval.estimate):
        word, known = ("least", interval.low) if interval.estimate > 0 else ("most", interval.high)
        if not math.isfinite(known) or interval.method in _WITHOUT_BOUNDS:
            return _INFINITE
        divisor, name = scale or common_scale([known], unit)
        return f"{_INFINITE}, at {word} {_digits(known / divisor)}" + (f" {name}" if with_unit else "")
    divisor, name = scale or common_scale([interval.estimate], unit)
    shown = _digits(interval.estimate / divisor)
    if not math.isnan(interval.low) and interval.method not in _WITHOUT_BOUNDS:
        shown += f" [{_digits(interval.low / divisor)}, {_digits(interval.high / divisor)}]"
    return f"{shown} {name}" if with_unit else shown


def worded_mean(one: PhaseMean, scale: Scale | None = None, with_unit: bool = True) -> str:
    """The mean of repetitions with its interval, and of how many runs it is where some failed."""
    return value_with_interval(one.interval, one.unit, scale, with_unit) + of_runs(one)


def of_runs(one: PhaseMean) -> str:
    """Of how many runs a mean is, where some have no value or an infinite one: `` (of 5 of 6 runs)``; otherwise
    empty."""
    runs, infinite = len(one.samples) + len(one.missing), sum(map(math.isinf, one.samples))
    if infinite:
        return f" in {infinite} of {runs} runs" if infinite < runs else ""
    return f" (of {len(one.samples)} of {runs} runs)" if one.missing and one.samples else ""


def worded_levels(levels: Mapping[str, str]) -> str:
    """Levels as `queues: shared`; `all` when the study has no factors."""
    return ", ".join(f"{name}: {level}" for name, level in levels.items()) or "all"


def percent_apart(share: float) -> str:
    """A difference as a share of what it is from, in per cent: three digits, and no powers of ten.

    Examples
    --------
    >>> percent_apart(0.0123), percent_apart(-13.37)
    ('+1.23 %', '-1337 %')
    """
    apart = 100 * share
    return f"{apart:+.0f} %" if abs(apart) >= 100 else f"{apart:+.3g} %"


def worded_effect(value: float, magnitude: str) -> str:
    """The size of an effect in standard deviations, and how large that is called: `-1.20, large`."""
    # With hardly any spread the number grows without bound and says nothing more.
    return f"beyond ±100, {magnitude}" if abs(value) > 100 else f"{value:.2f}, {magnitude}"


def worded_phase(phase: tuple[float, float] | None) -> str:
    """A phase as `0 to 80 s`."""
    return "whole run" if phase is None else f"{phase[0]:g} to {phase[1]:g} s"


def worded_span(seconds: float) -> str:
    """A span of time to wait, rounded: `5 s`, `2 min 10 s`, `1 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def counted(count: int, thing: str, things: str = "") -> str:
    """A count with its noun.

    Examples
    --------
    >>> counted(1, "run"), counted(6, "run"), counted(2, "switch", "switches")
    ('1 run', '6 runs', '2 switches')
    """
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def worded_p(p_value: float) -> str:
    """A p-value with two digits, not below 0.001."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.2g}"
