"""A comparison under each combination of the levels that it leaves out: whether it says the same under all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinnet.stats import Interval
from twinnet.study.cells import Cell, cell_of
from twinnet.study.contrast import sum_of_means
from twinnet.study.extremes import is_extreme
from twinnet.study.predicate import Comparison, Term
from twinnet.study.verdict import compare

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["Interaction", "interaction"]


@dataclass(frozen=True)
class Interaction:
    """What a comparison is under the levels that it leaves out, where that is not the same.

    Attributes
    ----------
    least, most
        The combinations of levels that have the least and the greatest, with its interval. The intervals of all
        combinations hold at once (Bonferroni).
    of_difference
        True if it is that of the two sides; else the left side, beside a number.
    blocks
        How many combinations there are.
    reversed
        In how many of them what is claimed does not hold.
    """

    least: tuple[Cell, Interval]
    most: tuple[Cell, Interval]
    of_difference: bool
    blocks: int
    reversed: int


def interaction(comparison: Comparison, runs: Sequence[RunTables], confidence: float) -> Interaction | None:
    """Return how `comparison` differs between the combinations of the factors that none of its terms names.

    The difference of its sides, or the left side beside a number, has an interval under each combination, by
    :func:`~twinnet.study.contrast.sum_of_means`. All of them hold at once (Bonferroni): if it is the same everywhere,
    all of them overlap, but for one study of twenty at 95 %.

    Returns
    -------
    Interaction or None
        `None` where all overlap, where it names all factors, and where a term is a least or greatest value.
    """
    of_difference = any(term.aggregate is not None for term in comparison.right)
    less = [Term(-term.factor, term.aggregate) for term in comparison.right] if of_difference else []
    side = (*comparison.left, *less)
    aggregates = [term.aggregate for term in side if term.aggregate is not None]
    if not aggregates or any(is_extreme(one) for one in aggregates):
        return None
    named = {name for one in aggregates for name, _ in one.levels}
    blocks: dict[Cell, list[RunTables]] = {}
    for run in runs:
        blocks.setdefault(tuple(one for one in cell_of(run) if one[0] not in named), []).append(run)
    level = 1 - (1 - confidence) / len(blocks) if blocks else confidence
    try:
        found = [(block, sum_of_means(side, own, level).interval) for block, own in blocks.items()]
    except LookupError:
        # Not measured under all of them.
        return None
    lows, highs = [interval.low for _, interval in found], [interval.high for _, interval in found]
    if len(found) < 2 or any(map(math.isnan, lows)) or not min(highs) < max(lows):
        return None
    ends = sorted(found, key=lambda one: one[1].estimate)
    denied = sum(compare(comparison, own, level).verdict == "not supported" for own in blocks.values())
    return Interaction(ends[0], ends[-1], of_difference, len(found), denied)
