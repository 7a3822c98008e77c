"""Verdicts on statements: how often they are wrong, and how often their intervals hold the truth, in simulated studies.

The studies go through the functions that judge real ones. Only the values of runs are drawn, with a known truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from twinnet.stats import holm
from twinnet.study.interaction import interaction
from twinnet.study.machine_blocks import together
from twinnet.study.value_functions import value_of

from twinnet_validation.drawn_runs import LEVEL, Claim, DrawnRun, drawn_runs
from twinnet_validation.law import Law, Row

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["LAW"]

_STUDIES = 1000
_SHORT = 100
_BLOCKS = ("a", "b", "c", "d", "e", "f")
_FACTORS = {"queue": ["fifo", "codel"], "rate": _BLOCKS}
_BOUND = 0.010
_SPREAD = 0.001
_SHARE_OF_A_SECOND = 10.0
"""How much a share grows for a shift of a second."""
_SURE = 3.29
"""Standard errors of a share that 99.9 % of shares keep."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Kind:
    """A kind of statement: its check, how a study is drawn with a shift of what is claimed, and the truth then.

    Attributes
    ----------
    draw
        From a generator and the shift, in seconds, the runs. At shift 0 the claim is just not true.
    truth
        The true difference of the sides (left minus right) at a shift of `_SPREAD`.
    least, most
        How often the interval of the difference may hold it.
    """

    setting: str
    check: str
    draw: Callable[[np.random.Generator, float], list[DrawnRun]]
    truth: float
    least: float = 0.93
    most: float = 0.97


def _one(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    return drawn_runs(_BOUND - shift + _SPREAD * random.standard_normal(5), {"queue": "codel", "rate": "a"})


def _two(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Deviations of 1 and 3, 5 and 10 repetitions."""
    return [
        *drawn_runs(_BOUND - shift + _SPREAD * random.standard_normal(5), {"queue": "codel", "rate": "a"}),
        *drawn_runs(_BOUND + 3 * _SPREAD * random.standard_normal(10), {"queue": "fifo", "rate": "a"}),
    ]


def _blocked(
    random: np.random.Generator, shift: float, repetitions: int = 3, seeds: bool = False, mixed: bool = True
) -> list[DrawnRun]:
    """Two queues at six rates that differ by tens of deviations."""
    found: list[DrawnRun] = []
    common = _SPREAD * random.standard_normal(repetitions)
    for place, rate in enumerate(_BLOCKS):
        for queue, less in (("codel", shift), ("fifo", 0.0)):
            spread = _SPREAD * (1 + place if mixed else 1)
            own = spread * random.standard_normal(repetitions) + (3 * common if seeds else 0.0)
            found += drawn_runs(10 * _SPREAD * (1 + place) - less + own, {"queue": queue, "rate": rate}, seeds=seeds)
    return found


def _on_machines(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Three machines that differ by tens of deviations made two runs of each queue."""
    machines = ["one", "one", "two", "two", "three", "three"]
    effects = np.repeat(20 * _SPREAD * np.arange(3), 2)
    return [
        run
        for queue, less in (("codel", shift), ("fifo", 0.0))
        for run in drawn_runs(
            effects - less + _SPREAD * random.standard_normal(6), {"queue": queue, "rate": "a"}, machines
        )
    ]


def _worst(random: np.random.Generator, shift: float, at_bound: int = 1) -> list[DrawnRun]:
    """Six rates of five repetitions; the first `at_bound` of them are at the bound less `shift`, the rest far below."""
    found: list[DrawnRun] = []
    for place, rate in enumerate(_BLOCKS):
        mean = _BOUND - shift - (0.0 if place < at_bound else 10 * _SPREAD)
        found += drawn_runs(mean + _SPREAD * random.standard_normal(5), {"queue": "codel", "rate": rate})
    return found


def _equal_values(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Five runs that are above or below the bound by the same amount, with 1/2 each."""
    signs = np.where(random.random(5) < 0.5, -1.0, 1.0)
    return drawn_runs(_BOUND + _SPREAD * signs - shift, {"queue": "codel", "rate": "a"})


def _percentiles(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Five runs of 1000 packets whose delays are exponential, with a mean that differs between runs. The mean of the
    990th of 1000 such delays is their mean times 1/11 + ... + 1/1000 (Renyi 1953)."""
    mean = (_BOUND - shift) / sum(1 / place for place in range(11, 1001))
    delays = [mean * (1 + 0.1 * random.standard_normal()) * random.exponential(size=1000) for _ in range(5)]
    return drawn_runs([value_of("p99", None, one) for one in delays], {"queue": "codel", "rate": "a"})


def _shares(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Five runs of 1000 packets, of which about 95 % are in time; half of the others are late, half are lost."""
    values: list[float] = []
    for _ in range(5):
        in_time = random.binomial(1000, min(1.0, 0.95 + _SHARE_OF_A_SECOND * shift + 0.01 * random.standard_normal()))
        lost = random.binomial(1000 - in_time, 0.5)
        delays = np.repeat([_BOUND / 2, 2 * _BOUND], [in_time, 1000 - in_time - lost])
        values.append(value_of("share", ("<", _BOUND), delays, lost))
    return drawn_runs(values, {"queue": "codel", "rate": "a"})


def _half_lost(random: np.random.Generator, shift: float) -> list[DrawnRun]:
    """Five runs of 1000 packets, each of which loses 2 % of them with 1/2."""
    values: list[float] = []
    for lost in [20 if random.random() < 0.5 else 0 for _ in range(5)]:
        values.append(value_of("p99", None, _BOUND / 2 + _SPREAD * random.random(1000 - lost) - shift, lost))
    return drawn_runs(values, {"queue": "codel", "rate": "a"})


_LESS = "mean(delay, queue=codel) < mean(delay, queue=fifo)"
_KINDS = (
    _Kind("a mean beside a bound, 5 repetitions (Student)", "mean(delay) < bound", _one, -_SPREAD),
    _Kind("two levels, deviations 1 and 3, 5 and 10 repetitions (Welch)", _LESS, _two, -_SPREAD),
    _Kind("two levels over 6 others, 3 repetitions (blocks)", _LESS, _blocked, -_SPREAD),
    _Kind(
        "the same with common seeds (repetition by repetition)",
        _LESS,
        lambda random, shift: _blocked(random, shift, 5, seeds=True),
        -_SPREAD,
    ),
    _Kind(
        "the same with single repetitions (pairs)",
        _LESS,
        lambda random, shift: _blocked(random, shift, 1, mixed=False),
        -_SPREAD,
    ),
    _Kind("two levels on three machines (least squares)", _LESS, _on_machines, -_SPREAD),
    _Kind("every one of 6 levels, 5 repetitions", "max(delay) < bound", _worst, -_SPREAD, most=1.0),
    _Kind(
        "some one of 6 levels, 5 repetitions",
        "max(delay) > bound",
        lambda random, shift: _worst(random, -shift, at_bound=6),
        _SPREAD,
        most=1.0,
    ),
    _Kind(
        "no difference within 2 ms, 5 and 10 repetitions (two one-sided tests)",
        "mean(delay, queue=codel) = mean(delay, queue=fifo) within 2 ms",
        lambda random, shift: _two(random, 2 * _SPREAD - shift),
        -_SPREAD,
        0.87,
        # The wider side varies by 30 %: some of its samples look skewed, and their intervals reach further.
        0.95,
    ),
    _Kind("a percentile beside a bound, 5 repetitions of 1000 packets", "p99(delay) < bound", _percentiles, -_SPREAD),
    _Kind(
        "a share beside a bound, with losses, 5 repetitions of 1000 packets",
        "share(delay < bound) > 95 %",
        _shares,
        _SHARE_OF_A_SECOND * _SPREAD,
    ),
)
_BY_SIGN = (
    _Kind("equal values, 5 repetitions (no bounds)", "mean(delay) < bound", _equal_values, 0.0),
    _Kind("a percentile that is infinite in every other run (sign test)", "p99(delay) < bound", _half_lost, 0.0),
)


def _measure(quick: bool) -> Sequence[Row]:
    studies = _SHORT if quick else _STUDIES
    rows: list[Row] = []
    for number, kind in enumerate(_KINDS):
        claim = _claim(kind.check)
        wrong = sum(_verdict(kind, claim, [number, place, 0], 0.0)[0] == "supported" for place in range(studies))
        rows.append(_at_most(kind.setting, wrong, studies))
        judged = [_verdict(kind, claim, [number, place, 1], _SPREAD) for place in range(studies)]
        held = sum(low <= kind.truth <= high for _, low, high in judged)
        rows.append(_between(kind.setting, held, studies, kind.least, kind.most))
    for number, kind in enumerate(_BY_SIGN):
        claim = _claim(kind.check)
        wrong = sum(_verdict(kind, claim, [90 + 2 * number, place], 0.0)[0] == "supported" for place in range(studies))
        rows.append(_at_most(kind.setting, wrong, studies))
    return [*rows, *_interactions(studies), *_families(studies)]


def _claim(check: str) -> Claim:
    return Claim(check, "10 ms", _FACTORS)


def _verdict(kind: _Kind, claim: Claim, seed: list[int], shift: float) -> tuple[str, float, float]:
    found = claim.judged(kind.draw(np.random.default_rng(seed), shift))
    difference = found.comparisons[0].difference
    return found.verdict, difference.low, difference.high


def _interactions(studies: int) -> list[Row]:
    """A difference that is the same at six rates, and is said not to be."""
    check = _claim(_LESS).check
    rows: list[Row] = []
    for number, (how, seeds) in enumerate((("", False), (" with common seeds", True))):
        wrong = 0
        for place in range(studies):
            drawn = _blocked(np.random.default_rng([94 + number, place]), _SPREAD, 5, seeds=seeds)
            wrong += interaction(check[0], cast("Sequence[RunTables]", drawn), LEVEL) is not None
        setting = f"a difference over 6 others{how}, 5 repetitions (intervals that overlap, Bonferroni)"
        rows.append(_at_most(setting, wrong, studies, "said to vary although it does not"))
    return rows


def _families(studies: int) -> list[Row]:
    """All 15 differences of six levels that do not differ: one that is reported is one too many."""
    setting = "all 15 differences of 6 levels, 5 repetitions (Holm, Bonferroni)"
    wrong = held = 0
    for place in range(studies):
        groups = np.random.default_rng([91, place]).standard_normal((6, 5))
        pairs = [(groups[i], [""] * 5, groups[j], [""] * 5) for i in range(6) for j in range(i)]
        compared = together([(list(a), b, list(c), d) for a, b, c, d in pairs], LEVEL)
        wrong += min(holm([test.p_value for _, test in compared if test is not None])) < 1 - LEVEL
        held += all(interval.low <= 0 <= interval.high for interval, _ in compared)
    return [_at_most(setting, wrong, studies), _between(setting, held, studies, 0.93, 1.0)]


def _at_most(setting: str, wrong: int, studies: int, what: str = "supported although not true") -> Row:
    limit = 1 - LEVEL
    most = limit + _SURE * math.sqrt(limit * (1 - limit) / studies)
    why = f"at most 5 %; {studies} studies of 5 % show up to {100 * most:.1f} %"
    return Row(setting, what, "%", None, 100 * wrong / studies, why, wrong / studies <= most)


def _between(setting: str, held: int, studies: int, least: float, most: float) -> Row:
    slack = 0.0 if studies >= _STUDIES else _SURE * math.sqrt(0.05 * 0.95 / studies)
    share = held / studies
    why = f"{100 * least:g} to {100 * most:g} %"
    passed = least - slack <= share <= most + slack
    return Row(setting, "intervals that hold the truth", "%", None, 100 * share, why, passed)


LAW = Law(
    "statements",
    "Verdicts on statements",
    "A statement that is not true may be supported in one study of twenty, and an interval of 95 % holds the truth in "
    "19 of 20. Each kind of statement is judged in 1000 simulated studies that are just not true (what is claimed to "
    "be smaller is equal, the worst is at the bound, the difference is the allowed one), and in 1000 with an effect "
    "of one deviation. Claims about the worst or about all differences have intervals that hold more often; those of "
    "equivalence are of 90 %. A difference that is the same under six levels is said to vary in at most one study of "
    "twenty. See [the statistics of a study](statistics.md).",
    "Student 1908; Welch 1947; Renyi 1953; Searle 1971; Schuirmann 1987; Berger 1982; Holm 1979; Dunn 1961",
    _measure,
)
