"""A mean over levels says where what it claims is not the same under all of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from twinnet.study.interaction import interaction
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Names, parse_check

LOADS = ("low", "high")
QUEUES = ("codel", "fifo", "red")
NAMES = Names({}, {"delay": "s"}, {"queue": list(QUEUES), "load": list(LOADS)})
LESS = "mean(delay, queue=codel) < mean(delay, queue=fifo)"


class Run:
    def __init__(self, levels: dict[str, str], delay_s: float) -> None:
        self.run = SimpleNamespace(levels=levels, record={"clock": "virtual", "seed": None})
        self.delay_s = delay_s
        self.fingerprint = (id(self),)
        self.is_drawn = True
        self.measurements = {"delay": Measurement(of="delay")}

    def value(self, aggregate: object) -> float:
        return self.delay_s

    def grain(self, aggregate: object) -> float | None:
        return None


def runs(means_ms: Mapping[tuple[str, str], float], repetitions: int = 4, spread_ms: float = 0.1) -> Any:
    return [
        Run({"queue": queue, "load": load}, (mean + spread_ms * (place - 1.5)) / 1e3)
        for (queue, load), mean in means_ms.items()
        for place in range(repetitions)
    ]


def found(check: str, given: Any) -> Any:
    return interaction(parse_check(check, NAMES)[0], cast(Any, given), 0.95)


# Two queues at two loads, and a third: 3 x 2 combinations.
ADDED = {
    ("codel", "low"): 5,
    ("fifo", "low"): 7,
    ("red", "low"): 6,
    ("codel", "high"): 50,
    ("fifo", "high"): 52,
    ("red", "high"): 51,
}


def test_a_difference_that_is_the_same_everywhere_is_not_said_to_vary() -> None:
    # Loads differ by far more than queues do.
    assert found(LESS, runs(ADDED)) is None


def test_a_difference_at_one_load_alone_is_told_with_both_ends() -> None:
    seen = found(LESS, runs({**ADDED, ("fifo", "low"): 5, ("codel", "high"): 20}))
    assert seen.least[0] == (("load", "high"),) and seen.least[1].estimate == pytest.approx(-0.032)
    assert seen.most[0] == (("load", "low"),) and seen.most[1].estimate == pytest.approx(0, abs=1e-12)
    assert seen.of_difference and (seen.blocks, seen.reversed) == (2, 0)


def test_a_difference_that_turns_round_says_in_how_many_blocks() -> None:
    """Less on the mean of three loads, by far in one of them, and more in the two others."""
    three = Names({}, {"delay": "s"}, {"queue": list(QUEUES), "load": [*LOADS, "full"]})
    means = {("codel", "low"): 5, ("fifo", "low"): 4, ("codel", "high"): 50, ("fifo", "high"): 40}
    given = runs({**means, ("codel", "full"): 100, ("fifo", "full"): 200})
    for check, reversed_in in ((LESS, 2), (LESS.replace("<", ">"), 1)):
        seen = interaction(parse_check(check, three)[0], cast(Any, given), 0.95)
        assert seen is not None and (seen.blocks, seen.reversed) == (3, reversed_in)


def test_beside_a_number_the_means_themselves_are_compared() -> None:
    seen = found("mean(delay, queue=codel) < 100 ms", runs(ADDED))
    assert (seen.least[1].estimate, seen.most[1].estimate) == pytest.approx((0.005, 0.05))
    assert not seen.of_difference and seen.reversed == 0
    assert found("mean(delay, queue=codel) < 30 ms", runs(ADDED)).reversed == 1


@pytest.mark.parametrize(
    "check",
    [
        "mean(delay, queue=codel, load=low) < mean(delay, queue=fifo, load=low)",
        "max(delay, queue=codel) < 100 ms",
        "mean(delay, queue=codel, load=high) < 100 ms",
    ],
)
def test_nothing_is_said_where_nothing_is_left_out_or_the_worst_is_meant(check: str) -> None:
    given = runs({**ADDED, ("codel", "high"): 20})
    assert found(check, [run for run in given if "load=low" not in check or run.run.levels["load"] == "low"]) is None


def test_single_repetitions_show_nothing() -> None:
    assert found(LESS, runs({**ADDED, ("codel", "high"): 20}, repetitions=1)) is None
