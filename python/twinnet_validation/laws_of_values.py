"""Verdicts on means of values that are not normal: how often they are wrong, by the law of the values and their number.

The studies go through the functions that judge real ones. Only the values of runs are drawn, with a known mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from twinnet.study.predicate import Aggregate, Check, Names, parse_check
from twinnet.study.quantity import parse_quantity
from twinnet.study.specification import Statement
from twinnet.study.verdict import judge

from twinnet_validation.law import Law, Row

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["LAW"]

_STUDIES = 300
_SHORT = 60
_COUNTS = (3, 5, 10, 20)
_SURE = 3.29
"""Standard errors of a share that 99.9 % of shares keep."""

Values = npt.NDArray[np.float64]
_Draw = Callable[[np.random.Generator, int], Values]


@dataclass(frozen=True)
class _Run:
    """A run with one drawn value, as the judge of statements sees a run."""

    run: SimpleNamespace
    drawn: float
    step: float | None

    is_drawn = True

    @property
    def fingerprint(self) -> tuple[int, ...]:
        """No two runs are the same."""
        return (id(self),)

    def value(self, aggregate: Aggregate) -> float:
        """The drawn value."""
        return self.drawn

    def grain(self, aggregate: Aggregate) -> float | None:
        """The least step of the value."""
        return self.step


@dataclass(frozen=True)
class _Values:
    """A law of values.

    Attributes
    ----------
    name
        The law in words.
    draw
        Draws so many values; the mean of the law is 1.
    limit
        By the number of values: the share of studies in which a claim that is just not true may be supported.
    why
        Where that is from.
    step
        The least step of a value.
    """

    name: str
    draw: _Draw
    limit: Callable[[int], float]
    why: str
    step: float | None = None


def _lognormal(sigma: float) -> _Draw:
    return lambda random, count: np.exp(sigma * random.standard_normal(count) - sigma**2 / 2)


def _above_a_base(random: np.random.Generator, count: int) -> Values:
    """Lognormal values above a base that all have, as delays in queues above propagation."""
    return (5 + np.exp(1.5 * random.standard_normal(count))) / (5 + math.exp(1.125))


def _outliers(random: np.random.Generator, count: int) -> Values:
    """Near 1/2.8, and ten times as much in one run of five."""
    return (1 + 0.1 * random.standard_normal(count)) * np.where(random.random(count) < _RARE, 10.0, 1.0) / 2.8


def _events(random: np.random.Generator, count: int) -> Values:
    """Zero, and in one run of five something else."""
    return np.where(random.random(count) < _RARE, 1 / _RARE, 0.0)


def _losses(random: np.random.Generator, count: int) -> Values:
    """The share of 22 datagrams that is lost, of which one in a thousand is, over that."""
    return random.binomial(22, 0.001, count) / 22 / 0.001


def _censored(random: np.random.Generator, count: int) -> Values:
    """Exponential times, infinite in the one run of five in which they are above 1.6 times the mean."""
    drawn = random.exponential(size=count)
    return np.where(drawn > -math.log(_RARE), math.inf, drawn)


_RARE = 0.2
_ONE_IN_FORTY = "one study in forty"
_ONE_IN_TWENTY = "one study in twenty"
_HIDDEN = "fewer than eight do not show the skew, and a third may be wrong; later one in seven"
_UNSEEN = "one in twenty, and those in which no run has what is rare"


def _forty(count: int) -> float:
    return 0.025


def _twenty(count: int) -> float:
    return 0.05


def _hidden(count: int) -> float:
    return 0.35 if count < 8 else 0.15


def _unseen(count: int) -> float:
    return 0.05 + (1 - _RARE) ** count


_VALUES = (
    _Values("normal, deviation 0.1", lambda random, n: 1 + 0.1 * random.standard_normal(n), _forty, _ONE_IN_FORTY),
    _Values("normal, deviation 0.3", lambda random, n: 1 + 0.3 * random.standard_normal(n), _forty, _ONE_IN_FORTY),
    _Values("uniform from 0", lambda random, n: 2 * random.random(n), _twenty, _ONE_IN_TWENTY),
    _Values("exponential", lambda random, n: random.exponential(size=n), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 0.5", _lognormal(0.5), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 1", _lognormal(1.0), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 1.5", _lognormal(1.5), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 1.5, above a base of 5", _above_a_base, _hidden, _HIDDEN),
    _Values("lost datagrams, 0.1 % of 22", _losses, _twenty, _ONE_IN_TWENTY, 1 / 22 / 0.001),
    _Values("infinite above 1.6 times the mean", _censored, _twenty, _ONE_IN_TWENTY),
    _Values("zero, or else in one run of five", _events, _unseen, _UNSEEN),
    _Values("ten times as much in one run of five", _outliers, _unseen, _UNSEEN),
)


_PAIRS: tuple[tuple[str, _Values, _Draw], ...] = (
    ("normal, deviations 0.1 and 1", _VALUES[0], lambda random, count: 1 + random.standard_normal(count)),
    ("lognormal, sigma 1, and normal, deviation 0.1", _VALUES[5], _VALUES[0].draw),
    ("lognormal, sigma 1 and 0.5", _VALUES[5], _lognormal(0.5)),
)
"""Two laws with one mean, the second with twice as many values, of which the first is claimed to have less."""


def _measure(quick: bool) -> Sequence[Row]:
    studies = _SHORT if quick else _STUDIES
    rows: list[Row] = []
    for number, law in enumerate(_VALUES):
        for count in _COUNTS:
            wrong = sum(_is_supported(law, None, [number, count, place], count) for place in range(studies))
            rows.append(_row(law.name, law, count, wrong, studies))
    for number, (name, law, draw) in enumerate(_PAIRS, 50):
        for count in _COUNTS:
            wrong = sum(_is_supported(law, draw, [number, count, place], count) for place in range(studies))
            rows.append(_row(f"two: {name}", law, count, wrong, studies))
    return rows


def _is_supported(law: _Values, other: _Draw | None, seed: list[int], count: int) -> bool:
    """True if a study supports that the mean is below what it is: 1, or that of another law with as much."""
    random = np.random.default_rng(seed)
    runs = _runs(law.draw(random, count), "one", law.step)
    claim, check = _BESIDE_A_NUMBER
    if other is not None:
        runs += _runs(other(random, 2 * count), "other", None)
        claim, check = _BESIDE_ANOTHER
    return judge(claim, check, cast("Sequence[RunTables]", runs), 0.95).verdict == "supported"


def _runs(values: Values, law: str, step: float | None) -> list[_Run]:
    record = {"clock": "virtual", "seed": None}
    return [
        _Run(SimpleNamespace(levels={"law": law}, record=record, repetition=place), float(value), step)
        for place, value in enumerate(values, 1)
    ]


def _row(name: str, law: _Values, count: int, wrong: int, studies: int) -> Row:
    limit = law.limit(count)
    most = limit + _SURE * math.sqrt(limit * (1 - limit) / studies)
    why = f"at most {100 * limit:.3g} %: {law.why}; {studies} studies show up to {100 * most:.3g} %"
    share = wrong / studies
    what = "supported although not true"
    return Row(f"{name}, {count} repetitions", what, "%", None, 100 * share, why, share <= most)


def _claim(text: str) -> tuple[Statement, Check]:
    names = Names({"bound": parse_quantity("1 s")}, {"delay": "s"}, {"law": ["one", "other"]})
    return Statement(id="x", text="x", check=text), parse_check(text, names)


_BESIDE_A_NUMBER = _claim("mean(delay) < bound")
_BESIDE_ANOTHER = _claim("mean(delay, law=one) < mean(delay, law=other)")

LAW = Law(
    "values",
    "Verdicts on values that are not normal",
    "A claim that is just not true, `mean(x) < bound` where the mean is the bound, may be supported in one study of "
    "forty where values are normal, and in one of twenty where they are skewed as losses, tails and completion times "
    "are. Above a base that all runs have, as propagation below queueing, fewer than eight runs do not show a skew. "
    "What happens in one run of five is in none of five runs in a third of studies (0.8 to the fifth power): no "
    "method sees what no run had, so more repetitions are the only remedy. See [the statistics of a "
    "study](statistics.md).",
    "Student 1908; Krishnamoorthy and Mathew 2003; Cox 1961",
    _measure,
)
