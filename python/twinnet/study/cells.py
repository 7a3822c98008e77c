"""Runs under one combination of levels (a cell), what they measured, and what their repetitions tell of chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from twinnet.stats import alike
from twinnet.study.natural_range import range_of_aggregate, top_of
from twinnet.study.predicate import Aggregate, is_under
from twinnet.study.skew import Part, Sample, stretch_of_sum

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = [
    "Cell",
    "InCell",
    "cell_of",
    "chosen_runs",
    "counted_the_same",
    "equal_values_decide",
    "grain_in",
    "is_exact",
    "no_step_known",
    "one_repetition",
    "top_in",
    "values_and_missing",
    "values_of",
]

Cell = tuple[tuple[str, str], ...]
"""The level of each factor."""


@dataclass
class InCell:
    """The runs of one cell with the sum of the terms that speak of them.

    Attributes
    ----------
    runs, values
        The runs, and the sum in each.
    scale
        How much of what a machine changes in one run the sum holds.
    grain
        The least step of the sum; `None` where that of a term is not known.
    parts
        The terms one by one, each with its value in every run.
    """

    runs: list[RunTables] = field(default_factory=list[Any])
    values: list[float] = field(default_factory=list[float])
    scale: float = 0.0
    grain: float | None = 0.0
    parts: list[Part] = field(default_factory=list[Any])

    def add(self, factor: float, aggregate: Aggregate, values: Sequence[float]) -> None:
        """Add a term, `factor` times `aggregate`, which has these `values` in the runs."""
        own = [factor * value for value in values]
        self.values = [total + value for total, value in zip(self.values or [0.0] * len(own), own, strict=True)]
        self.scale += factor
        steps = [grain_in(run, aggregate) for run in self.runs]
        known = [abs(factor) * step for step in steps if step is not None]
        step = max(known) if len(known) == len(steps) else None
        self.grain = None if step is None or self.grain is None else self.grain + step
        top = top_in(self.runs, aggregate)
        self.parts.append(Part(own, step, None if top is None else factor * top))

    def only(self, places: Sequence[int]) -> InCell:
        """The cell with the runs at `places` alone."""
        parts = [Part([part.values[at] for at in places], part.grain, part.top) for part in self.parts]
        runs, values = [self.runs[at] for at in places], [self.values[at] for at in places]
        return InCell(runs, values, self.scale, self.grain, parts)

    @property
    def is_bounded(self) -> bool:
        """True if the repetitions tell a spread: they differ, or their step is known."""
        return self.grain is not None or not alike(self.values)

    @property
    def magnitude(self) -> float:
        """The greatest size of what was added up; rounding leaves no less than its share of that."""
        return max(float(np.abs(part.values).max()) for part in self.parts)

    def sample(self, level: float, alone: bool) -> Sample:
        """The spread of the repetitions, of equal ones that of a step, and how far an interval at `level` reaches
        beyond Student's; `alone`: no other cell is of the same side."""
        stretch = stretch_of_sum(self.values, self.parts, level, alone)
        spread = (self.grain or 0.0) ** 2 if alike(self.values) else float(np.var(self.values, ddof=1))
        return Sample(spread, len(self.values), stretch)


def cell_of(run: RunTables) -> Cell:
    """The cell of `run`."""
    return tuple(sorted(run.run.levels.items()))


def chosen_runs(runs: Sequence[RunTables], levels: Mapping[str, str]) -> list[RunTables]:
    """The runs under `levels`; raises `LookupError` when there is none."""
    chosen = [run for run in runs if is_under(run.run.levels, levels)]
    if not chosen:
        said = ", ".join(f"{name}={level}" for name, level in levels.items()) or "any levels"
        raise LookupError(f"no usable run with {said}")
    return chosen


def counted_the_same(runs: Sequence[RunTables]) -> bool:
    """True if all that was counted in these runs is equal."""
    return len({run.fingerprint for run in runs}) == 1


def is_exact(runs: Sequence[RunTables]) -> bool:
    """True if the repetitions of a cell are one run made again: on the virtual clock, with other seeds, where nothing
    is drawn by chance, or all that was counted is equal. One repetition does not show that."""
    if len(runs) < 2 or not _is_virtual(runs):
        return False
    return not runs[0].is_drawn or counted_the_same(runs)


def one_repetition(runs: Iterable[RunTables]) -> str:
    """Why one repetition of each cell decides nothing, and how many do."""
    if all(_is_virtual([run]) and not run.is_drawn for run in runs):
        return "one repetition does not show that nothing varies; a second of the same makes it exact"
    return "one repetition says nothing about the spread; repeat at least twice"


def _is_virtual(runs: Sequence[RunTables]) -> bool:
    return runs[0].run.record.get("clock") == "virtual"


def equal_values_decide(count: int, confidence: float) -> bool:
    """True if so many infinite values permit a verdict: by the sign test (Dixon and Mood 1946), a run is above or below
    the median by chance with 1/2 each."""
    return 0.5**count <= 1 - confidence


def no_step_known(count: int, confidence: float) -> str:
    """Why `count` equal values bound no mean: they bound the share of runs that have another, by Clopper and Pearson
    (1934), and not how far that other is away."""
    share = 1 - (1 - confidence) ** (1 / count)
    return (
        f"all {count} runs gave the same value although chance has a part in them: at most {100 * share:.2g} % of runs "
        "give another, and that bounds no mean"
    )


def values_and_missing(aggregate: Aggregate, runs: Sequence[RunTables]) -> tuple[list[float], dict[int, str]]:
    """The values of the runs that have one, and by their places why the others have none. Those of which too few
    packets were kept are all told the greatest number that one of them needs."""
    values: list[float] = []
    errors: dict[int, LookupError] = {}
    for place, run in enumerate(runs):
        try:
            values.append(run.value(aggregate))
        except LookupError as error:
            errors[place] = error
    # Such an error has the number as its second argument.
    numbered = [error for error in errors.values() if len(error.args) > 1]
    greatest = max(numbered, key=lambda error: error.args[1], default=None)
    return values, {
        place: str((greatest if error in numbered and greatest is not None else error).args[0])
        for place, error in errors.items()
    }


def values_of(aggregate: Aggregate, runs: Sequence[RunTables]) -> list[float]:
    """The value of `aggregate` in each of `runs`.

    Raises
    ------
    LookupError
        Some run has none: the message says how many of them, for others may have.
    """
    values, missing = values_and_missing(aggregate, runs)
    if missing:
        why = next(iter(missing.values()))
        raise LookupError(f"{len(missing)} of {len(runs)} runs have no value: {why}" if values else why)
    return values


def grain_in(run: RunTables, aggregate: Aggregate) -> float | None:
    """The least step of the value of `aggregate` in `run`; `None` where it is not known."""
    try:
        return run.grain(aggregate)
    except LookupError:
        return None


def top_in(runs: Sequence[RunTables], aggregate: Aggregate) -> float | None:
    """The greatest that the value of `aggregate` can be in a run; `None` where there is no such."""
    return top_of(range_of_aggregate(aggregate, runs[0].measurements))
