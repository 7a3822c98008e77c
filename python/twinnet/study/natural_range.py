"""The least and the greatest that a measured quantity can be, and intervals that are shown no wider than that.

An interval of Student's t knows nothing of what it is of: that of a rate may begin below zero, and that of a share end
above 100 %. What is beyond the range says nothing, and so is not shown, and no verdict is left open by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from twinnet.stats import Interval
from twinnet.study.measured_quantity import ABOVE_ZERO, SHARE, MeasuredQuantity
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate, Side
from twinnet.study.value_functions import NORMALITY, Bound

__all__ = ["clipped", "range_of_aggregate", "range_of_function", "range_of_side", "top_of"]

Range = tuple[float, float]


def range_of_function(quantity: MeasuredQuantity, function: str, bound: Bound | None = None) -> Range:
    """The least and the greatest that `function` of the values in a run can be, in its unit.

    Examples
    --------
    >>> from twinnet.study.quantities import QUANTITIES
    >>> range_of_function(QUANTITIES["throughput"], "mean"), range_of_function(QUANTITIES["loss"], "mean")
    ((0.0, inf), (0.0, 1.0))
    >>> range_of_function(QUANTITIES["available_bandwidth_error"], "std")
    (0.0, inf)
    """
    if bound is not None or function == NORMALITY:
        return SHARE
    return ABOVE_ZERO if function == "std" else quantity.ends


def range_of_aggregate(aggregate: Aggregate, measurements: Mapping[str, Measurement]) -> Range:
    """The least and the greatest that the value of `aggregate` in a run can be, in its unit."""
    return range_of_function(measurements[aggregate.measurement].quantity, aggregate.function, aggregate.bound)


def top_of(ends: Range) -> float | None:
    """The greatest that a value can be; `None` where there is no such."""
    return ends[1] if math.isfinite(ends[1]) else None


def range_of_side(side: Side, measurements: Mapping[str, Measurement]) -> Range:
    """The least and the greatest that a sum of terms can be, in its unit."""
    low = high = 0.0
    for term in side:
        ends = (1.0, 1.0) if term.aggregate is None else range_of_aggregate(term.aggregate, measurements)
        if term.factor:
            least, most = sorted(term.factor * end for end in ends)
            low, high = low + least, high + most
    return low, high


def clipped(interval: Interval, within: Range) -> Interval:
    """Return `interval` with its bounds no farther than `within`; its estimate, and bounds that are not known, stay.

    Examples
    --------
    >>> clipped(Interval(622.0, -559.0, 1802.0, 0.95, "t"), (0.0, math.inf)).low
    0.0
    """
    low, high = (
        bound if math.isnan(bound) else min(max(bound, within[0]), within[1]) for bound in (interval.low, interval.high)
    )
    return replace(interval, low=low, high=high)
