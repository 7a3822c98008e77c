"""``bench.gate``: what counts as slower than another commit."""

from __future__ import annotations

import math

import pytest

from bench.figure import Figure
from bench.gate import Row, rows_of, slower
from bench.record import PartRecord


def test_a_time_is_worse_where_it_is_longer_and_a_rate_where_it_is_less() -> None:
    longer, less = Row("start", "s", (2.2, 2.0), (2.0, 2.2)), Row("flow", "Gbit/s", (1.0, 1.0), (2.0, 2.0))
    assert (longer.worse() or ())[0] == pytest.approx(1.0)
    assert less.worse() == pytest.approx((2.0, 2.0, 2.0))
    assert slower(less) and not slower(longer)


def test_the_interval_is_students_of_the_logarithms() -> None:
    # Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1; t of 2 degrees of freedom at 97.5 % is 4.3027.
    here = [math.exp(one) for one in (0.1, 0.2, 0.3)]
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert Row("a", "us", here, (1.0, 1.0, 1.0)).worse() == pytest.approx(
        (math.exp(0.2), math.exp(0.2 - half), math.exp(0.2 + half)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("here", "is_slower"),
    [((1.2, 1.2, 1.2), True), ((1.05, 1.05, 1.05), False), ((0.9, 1.2, 1.6), False), ((3.0,), False)],
)
def test_only_what_is_certainly_beyond_a_tenth_counts(here: tuple[float, ...], is_slower: bool) -> None:
    assert slower(Row("a", "ms", here, (1.0,) * len(here))) == is_slower


@pytest.mark.parametrize("row", [Row("off by", "%", (3.0,), (1.0,)), Row("start", "s", (0.0,), (1.0,))])
def test_errors_and_nothing_have_no_ratio(row: Row) -> None:
    assert row.worse() is None and not slower(row)


def part(*figures: Figure) -> dict[str, PartRecord]:
    return {"load": PartRecord("Load", "abc", "2026-11-28 00:00", 1.0, True, {}, (), 0.0, "", figures)}


def test_rows_that_one_of_them_lacks_in_a_turn_are_left_out() -> None:
    both, once = Figure("both", "s", (1.0, 3.0, 2.0)), Figure("once", "s", (1.0,))
    rows = rows_of([part(both, once), part(both)], [part(both, once), part(both, once)])
    assert [(row.name, row.here, row.there) for row in rows] == [("load: both", [2.0, 2.0], [2.0, 2.0])]
