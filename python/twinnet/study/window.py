"""Windows of time that a measurement is limited to, and the end of the warm-up, which a run tells itself."""

from __future__ import annotations

import math
import re
from typing import Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from twinnet.study.quantity import parse_moment_ps

__all__ = ["LEAST_FOR_WARM_UP", "WARM_UP", "Window", "is_span", "parse_window", "warm_up_length"]

WARM_UP: Literal["warm-up"] = "warm-up"
Span = tuple[float, float]
"""From and to, in seconds from the start of traffic; to infinity where nothing ends it."""
Window = Span | Literal["warm-up"]

Vector = npt.NDArray[np.float64]

_PS_PER_SECOND = 1e12
_BATCH = 5
_LEAST_BATCHES = 10
LEAST_FOR_WARM_UP = _BATCH * _LEAST_BATCHES
"""Values below which no warm-up is looked for."""


def is_span(window: Window | None) -> TypeGuard[Span]:
    """True if `window` says when it begins and ends."""
    return isinstance(window, tuple)


def parse_window(during: str | None, after: str | None) -> Window | None:
    """Read the keys `during` (``5 s to 20 s``) and `after` (``2 s``, ``warm-up``) of a measurement.

    Raises
    ------
    ValueError
        Both are given, or one is not of its form.
    """
    if during is not None and after is not None:
        raise ValueError("'during' and 'after' are two windows; give one, such as 'during: 5 s to 20 s'")
    if after is not None:
        if after.strip() == WARM_UP:
            return WARM_UP
        try:
            return parse_moment_ps(after) / _PS_PER_SECOND, math.inf
        except ValueError as error:
            raise ValueError(f"'after': {error}; write a time such as '2 s', or warm-up") from None
    if during is None:
        return None
    ends = re.split(r"\s+to\s+", during.strip())
    if len(ends) != 2:
        raise ValueError(f"'during': {during!r} is no window; write for example '5 s to 20 s'")
    try:
        begin, end = (parse_moment_ps(one) / _PS_PER_SECOND for one in ends)
    except ValueError as error:
        raise ValueError(f"'during': {error}") from None
    if begin >= end:
        raise ValueError(f"'during': {during!r} ends before it begins")
    return begin, end


def warm_up_length(values: Vector) -> int:
    """Return how many of the first `values` belong to the warm-up: those that MSER-5 cuts.

    The marginal standard error rule (K. P. White, "An effective truncation heuristic for bias reduction in simulation
    output", Simulation 69 (1997) 323-334) makes the cut that leaves the mean of the rest with the least standard error,
    here of means of batches of 5 values (White, Cobb and Spratt, Winter Simulation Conference 2000, 755-760). The cut
    is looked for in the first half: later, few values are left, which agree by chance. Where the error still falls in
    the middle, there is no steady state.

    Raises
    ------
    LookupError
        There are fewer than 50 values, or they reach no steady state.
    """
    count = values.size // _BATCH
    if count < _LEAST_BATCHES:
        raise LookupError(
            f"{values.size} values are too few to look for a warm-up, which takes {LEAST_FOR_WARM_UP}: measure for "
            "longer or in shorter intervals, or give a time such as 'after: 2 s'"
        )
    batches = values[: count * _BATCH].reshape(count, _BATCH).mean(axis=1)
    # Sums of what differs from the mean lose fewer digits.
    centred = batches - batches.mean()
    left = np.arange(count, 0, -1)
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    errors = (squares - sums**2 / left) / left**2
    errors = errors[: count // 2 + 1]
    rounding = 1e-12 * float(np.abs(batches).max()) ** 2
    cut = int(np.flatnonzero(errors <= errors.min() + rounding)[0])
    if cut == count // 2:
        raise LookupError(
            f"there is no steady state in {values.size} values: MSER-5 would cut half of them or more; let traffic "
            "last longer, or give a time such as 'after: 2 s'"
        )
    return cut * _BATCH
