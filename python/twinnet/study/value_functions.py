"""What is made of the values in one run: mean, deviation, extremes, percentiles, and the share that keeps a bound.

A datagram that was lost has an infinite delay: it counts in percentiles and shares (RFC 7679, sections 5.1, 5.2 and
5.4), and so a percentile is infinite where more was lost than it leaves out. Means, deviations and extremes are of what
arrived. A transfer that had not ended is a value itself, an infinite one, and so are the mean and the greatest of those
that it is among.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from twinnet.errors import did_you_mean
from twinnet.stats import alike, anderson_darling
from twinnet.study.dimensions import combined, described, example, unit_of_kind
from twinnet.study.quantity import parse_quantity

__all__ = [
    "FUNCTIONS",
    "MEAN",
    "NORMALITY",
    "Bound",
    "BoundOperator",
    "ValueFunction",
    "needs_values",
    "parse_function",
    "percentile_of",
    "value_of",
]

Vector = npt.NDArray[np.float64]
BoundOperator = Literal["<", "<=", ">", ">="]
Bound = tuple[BoundOperator, float]

NORMALITY = "normality"
"""The p-value of the Anderson-Darling test that the values follow a normal distribution."""
FUNCTIONS = ("mean", "std", "min", "max", "median", "share", NORMALITY)
"""Those with a name of their own; `p50`, `p99.9` and other percentiles are the rest."""
_LEAST_FOR_NORMALITY = 8
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)")
_SHARE = re.compile(r"share\s*(<=|>=|<|>)\s*(\S.*)")


@dataclass(frozen=True, slots=True)
class ValueFunction:
    """A function of the values in a run.

    Attributes
    ----------
    name
        One of `FUNCTIONS`, or a percentile such as `p99`.
    bound
        Of a share: the operator, and the bound in the unit of the values.
    text
        As it was written.
    """

    name: str
    bound: Bound | None = None
    text: str = "mean"


MEAN = ValueFunction("mean")


def percentile_of(name: str) -> float | None:
    """The share of values that do not exceed the percentile `name`: 0.99 of `p99`; `None` if it is none.

    Raises
    ------
    ValueError
        It is a percentile of 0, which no value is.
    """
    if name == "median":
        return 0.5
    found = _PERCENTILE.fullmatch(name)
    if found is None:
        if re.fullmatch(r"p\d+(\.\d+)?", name):
            raise ValueError(f"{name} is no percentile: write p1 to p99, p99.9, median, or min and max")
        return None
    if float(found.group(1)) == 0:
        raise ValueError(f"{name} is no percentile: the least value is min")
    return float(found.group(1)) / 100


def needs_values(function: str, bound: Bound | None) -> bool:
    """Whether `function` is of all values one by one, of which flows keep no summary."""
    return bound is not None or function == NORMALITY or percentile_of(function) is not None


def parse_function(text: str, unit: str) -> ValueFunction:
    """Read `text`, a function of values in `unit`: ``mean``, ``p99``, ``share < 20 ms``.

    Raises
    ------
    ValueError
        It is none, or its bound is of another kind than the values.
    """
    given = text.strip()
    share = _SHARE.fullmatch(given)
    if share is not None:
        operator: BoundOperator = share.group(1)  # type: ignore[assignment]
        bound = parse_quantity(share.group(2))
        own = unit_of_kind(bound.kind) if bound.kind != "word" else ""
        if bound.kind == "word" or (bound.number != 0 and combined(unit, own) is None):
            like = example(unit)
            remedy = f"write for example 'share {operator} {like}'" if like else "give a bare number"
            raise ValueError(f"{bound.text} is no bound of {described(unit)}; {remedy}")
        return ValueFunction("share", (operator, bound.number), f"share {operator} {bound.text}")
    if given == "share":
        raise ValueError("a share needs a bound, such as 'share < 20 ms'")
    if given not in FUNCTIONS and percentile_of(given) is None:
        raise ValueError(f"unknown function {given!r}; {did_you_mean(given, [*FUNCTIONS, 'p50', 'p90', 'p99'])}")
    return ValueFunction(given, None, given)


def value_of(function: str, bound: Bound | None, values: Vector, lost: int = 0) -> float:
    """The value of `function` over `values` and `lost` more that are infinite.

    Percentiles are values of the empirical distribution, the least that so many do not exceed (RFC 2330, section 11.3);
    the median of an even number is the mean of both in the middle (RFC 7679, section 5.2).

    Raises
    ------
    LookupError
        There is no value, or none that arrived where one is needed.
    """
    count = values.size + lost
    if count == 0:
        raise LookupError("nothing that it selects was measured")
    if bound is not None:
        return _share(bound, values, lost)
    share = percentile_of(function)
    if share is not None:
        ordered = np.sort(values)
        # What rounding adds to 0.99 * 100 is no further value.
        place = max(0, math.ceil(share * count - 1e-9) - 1)
        upper = place + 1 if function == "median" and count % 2 == 0 else place
        low, high = (float(ordered[one]) if one < values.size else math.inf for one in (place, upper))
        return (low + high) / 2
    if values.size == 0:
        raise LookupError(f"none of {lost} packets arrived")
    infinite = int(np.isinf(values).sum())
    if infinite and function in ("std", NORMALITY):
        raise LookupError(f"{infinite} of {count} values are infinite, and {function} is of finite ones")
    if function == NORMALITY:
        return _normality(values)
    return float({"mean": values.mean, "std": values.std, "min": values.min, "max": values.max}[function]())


def _normality(values: Vector) -> float:
    if values.size < _LEAST_FOR_NORMALITY:
        raise LookupError(f"{values.size} values are too few for a test of normality; it needs {_LEAST_FOR_NORMALITY}")
    if alike(values):
        raise LookupError("all values are equal, which follows no normal distribution and is no test of one")
    return anderson_darling(values).p_value


def _share(bound: Bound, values: Vector, lost: int) -> float:
    operator, limit = bound
    within = {"<": values < limit, "<=": values <= limit, ">": values > limit, ">=": values >= limit}[operator]
    return (int(within.sum()) + (lost if operator in (">", ">=") else 0)) / (values.size + lost)
