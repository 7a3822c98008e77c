"""Verdicts on means of values that are not normal: how often they are wrong, by the law of the values and their number.

The studies go through the functions that judge real ones. Only the values of runs are drawn, with a known mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinnet_validation.drawn_runs import Claim, DrawnRun, drawn_runs
from twinnet_validation.law import Law, Row

__all__ = ["LAW"]

_STUDIES = 300
_SHORT = 60
_COUNTS = (3, 5, 10, 20)
_TWO_TOO = (2, *_COUNTS)
_SURE = 3.29
"""Standard errors of a share that 99.9 % of shares keep."""

Values = npt.NDArray[np.float64]
_Draw = Callable[[np.random.Generator, int], Values]


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
    counts
        How many values are drawn.
    """

    name: str
    draw: _Draw
    limit: Callable[[int], float]
    why: str
    step: float | None = None
    counts: tuple[int, ...] = _COUNTS


@dataclass(frozen=True)
class _Design:
    """A way to compare two levels.

    Attributes
    ----------
    name
        The design in words.
    claim
        What is claimed, and just not true.
    draw
        Draws the runs, by a number of repetitions or pairs.
    counts
        These numbers.
    counted
        What they are of.
    of_forty
        Whether it may be supported in one study of forty; else in one of twenty.
    """

    name: str
    claim: Claim
    draw: Callable[[np.random.Generator, int], list[DrawnRun]]
    counts: tuple[int, ...]
    counted: str = "repetitions"
    of_forty: bool = False


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
    _Values(
        "normal, deviation 0.1",
        lambda random, n: 1 + 0.1 * random.standard_normal(n),
        _forty,
        _ONE_IN_FORTY,
        counts=_TWO_TOO,
    ),
    _Values("normal, deviation 0.3", lambda random, n: 1 + 0.3 * random.standard_normal(n), _forty, _ONE_IN_FORTY),
    _Values("uniform from 0", lambda random, n: 2 * random.random(n), _twenty, _ONE_IN_TWENTY),
    _Values("exponential", lambda random, n: random.exponential(size=n), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 0.5", _lognormal(0.5), _twenty, _ONE_IN_TWENTY),
    _Values("lognormal, sigma 1", _lognormal(1.0), _twenty, _ONE_IN_TWENTY, counts=_TWO_TOO),
    _Values("lognormal, sigma 1.5", _lognormal(1.5), _twenty, _ONE_IN_TWENTY, counts=_TWO_TOO),
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
_PLACES = tuple("abcdefghij")
_FACTORS = {"law": ["one", "other"], "place": _PLACES}
_BESIDE_A_NUMBER = Claim("mean(delay) < bound", "1 s", _FACTORS)
_BESIDE_ANOTHER = Claim("mean(delay, law=one) < mean(delay, law=other)", "1 s", _FACTORS)


def _single_runs(random: np.random.Generator, pairs: int) -> list[DrawnRun]:
    """One run of each law in each place: lognormal with sigma 1, and normal."""
    return [
        run
        for law, draw in (("one", _lognormal(1.0)), ("other", _VALUES[0].draw))
        for place, value in zip(_PLACES, draw(random, pairs), strict=False)
        for run in drawn_runs([value], {"law": law, "place": place})
    ]


def _near_the_top(random: np.random.Generator, count: int) -> list[DrawnRun]:
    """A loss of 99 % on the mean, skewed downward."""
    return drawn_runs(1 - 0.01 * _lognormal(1.0)(random, count), {"law": "one"})


def _on_machines(first: _Draw, second: _Draw) -> Callable[[np.random.Generator, int], list[DrawnRun]]:
    """Three machines that differ by 0.2, of which each made so many runs of the first law and four times as many of the
    second."""

    def draw(random: np.random.Generator, count: int) -> list[DrawnRun]:
        found: list[DrawnRun] = []
        for law, each, values in (("one", count, first), ("other", 4 * count, second)):
            machines = np.repeat(np.arange(3), each)
            drawn = values(random, machines.size) + 0.2 * machines
            found += drawn_runs(drawn, {"law": law}, [f"m{machine}" for machine in machines])
        return found

    return draw


def _same_seeds(random: np.random.Generator, count: int) -> list[DrawnRun]:
    """Two laws that share a normal part, and of which the first has 0.2 more, of a lognormal law with sigma 1."""
    common = 1 + 0.3 * random.standard_normal(count)
    more = 0.2 * _lognormal(1.0)(random, count)
    return [
        *drawn_runs(common + more, {"law": "one"}, seeds=True),
        *drawn_runs(common, {"law": "other"}, seeds=True),
    ]


def _two_beside_many(random: np.random.Generator, count: int) -> list[DrawnRun]:
    draw = _VALUES[0].draw
    return [*drawn_runs(draw(random, 2), {"law": "one"}), *drawn_runs(draw(random, count), {"law": "other"})]


_DESIGNS = (
    _Design("single runs in pairs: lognormal, sigma 1, and normal", _BESIDE_ANOTHER, _single_runs, (3, 6, 10), "pairs"),
    _Design(
        "a loss near 100 %: 1 % less, lognormal with sigma 1",
        Claim("mean(loss) > 99 %", "1 s", _FACTORS),
        _near_the_top,
        (3, 5, 10),
    ),
    _Design(
        "within three machines: normal, deviations 1 and 0.1",
        _BESIDE_ANOTHER,
        _on_machines(lambda random, n: 1 + random.standard_normal(n), _VALUES[0].draw),
        (1, 2),
        "of the first on each",
        True,
    ),
    _Design(
        "within three machines: lognormal, sigma 1, and normal",
        _BESIDE_ANOTHER,
        _on_machines(_lognormal(1.0), _VALUES[0].draw),
        (1, 2),
        "of the first on each",
    ),
    _Design(
        "the same within 0.2, by common seeds: 0.2 more, lognormal with sigma 1",
        Claim("mean(delay, law=one) = mean(delay, law=other) within 0.2 s", "1 s", _FACTORS),
        _same_seeds,
        (2, 5, 10),
    ),
    _Design("two runs beside more: normal, deviation 0.1", _BESIDE_ANOTHER, _two_beside_many, (5, 20), of_forty=True),
)


def _measure(quick: bool) -> Sequence[Row]:
    studies = _SHORT if quick else _STUDIES
    rows: list[Row] = []
    for number, law in enumerate(_VALUES):
        for count in law.counts:
            wrong = sum(_is_supported(law, None, [number, count, place], count) for place in range(studies))
            rows.append(_row(f"{law.name}, {count} repetitions", law.limit(count), law.why, wrong, studies))
    for number, (name, law, draw) in enumerate(_PAIRS, 50):
        for count in _COUNTS:
            wrong = sum(_is_supported(law, draw, [number, count, place], count) for place in range(studies))
            rows.append(_row(f"two: {name}, {count} repetitions", law.limit(count), law.why, wrong, studies))
    for number, design in enumerate(_DESIGNS, 60):
        limit, why = (_forty(0), _ONE_IN_FORTY) if design.of_forty else (_twenty(0), _ONE_IN_TWENTY)
        for count in design.counts:
            drawn = (design.draw(np.random.default_rng([number, count, place]), count) for place in range(studies))
            wrong = sum(design.claim.judged(runs).verdict == "supported" for runs in drawn)
            rows.append(_row(f"{design.name}, {count} {design.counted}", limit, why, wrong, studies))
    return rows


def _is_supported(law: _Values, other: _Draw | None, seed: list[int], count: int) -> bool:
    """True if a study supports that the mean is below what it is: 1, or that of another law with as much."""
    random = np.random.default_rng(seed)
    runs = drawn_runs(law.draw(random, count), {"law": "one"}, step=law.step)
    if other is None:
        return _BESIDE_A_NUMBER.judged(runs).verdict == "supported"
    runs += drawn_runs(other(random, 2 * count), {"law": "other"})
    return _BESIDE_ANOTHER.judged(runs).verdict == "supported"


def _row(setting: str, limit: float, why: str, wrong: int, studies: int) -> Row:
    most = limit + _SURE * math.sqrt(limit * (1 - limit) / studies)
    said = f"at most {100 * limit:.3g} %: {why}; {studies} studies show up to {100 * most:.3g} %"
    share = wrong / studies
    return Row(setting, "supported although not true", "%", None, 100 * share, said, share <= most)


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
