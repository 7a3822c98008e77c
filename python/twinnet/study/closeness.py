"""Published figures beside what was measured: is it closer to the truth than the rival was?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from twinnet.stats import Interval, t_interval
from twinnet.study.analysis import Analysis
from twinnet.study.distributions import statistic_samples
from twinnet.study.published_figures import Figure, PrintedValue, read_figures
from twinnet.study.published_results import AS_PUBLISHED_SHARE, BOUND_WORDS, told_apart
from twinnet.study.reference_settings import Reference
from twinnet.study.twin import study_on

__all__ = ["Closeness", "ComparedFigure", "ReferenceTable", "compare_with_reference"]

Closeness = Literal["closer", "not told apart", "farther", "not comparable"]
_CLOCKS = ("virtual", "wall", "real")


@dataclass(frozen=True)
class ComparedFigure:
    """A published figure and, by clock, what was measured and how close that is."""

    figure: Figure
    measured: Mapping[str, Interval]
    closeness: Mapping[str, Closeness]

    def difference(self, clock: str) -> float | None:
        """By how much what was measured on `clock` is above the truth, as a share of it; `None` where that has no
        meaning."""
        truth = self.figure.truth.value
        if clock not in self.measured or not truth:
            return None
        return (self.measured[clock].estimate - truth) / abs(truth)

    def word(self, clock: str) -> str:
        """``as published``, ``differs`` or ``cannot be told`` (:func:`~twinnet.study.published_results.told_apart`).

        What was measured on `clock` may differ from the truth by 5 %, or by what rounding took from it when it was
        printed. A truth that was printed as less than a number is a bound, which is kept or broken. Empty where one of
        them is not known.
        """
        truth = self.figure.truth
        ends = truth.ends
        if clock not in self.measured or ends is None:
            return ""
        if truth.value is None:
            return BOUND_WORDS.get(found := told_apart(self.measured[clock], ends), found)
        allowed = max(AS_PUBLISHED_SHARE * abs(truth.value), self.figure.scale * 10.0**-truth.decimals / 2)
        return told_apart(self.measured[clock], ends, allowed)


@dataclass(frozen=True)
class ReferenceTable:
    """All figures of a study's reference.

    Attributes
    ----------
    clocks
        The clocks on which there are runs that numbers rest on.
    changes
        How figures differ from those of the reference's baseline, compared alike; empty without one.
    """

    reference: Reference
    clocks: tuple[str, ...]
    rows: tuple[ComparedFigure, ...]
    changes: tuple[ComparedFigure, ...]

    def counts(self, clock: str, rows: Sequence[ComparedFigure] | None = None) -> dict[Closeness, int]:
        """Return the numbers of figures that are closer on `clock`, not told apart, farther and not comparable; of
        `rows` or of all."""
        verdicts = [row.closeness[clock] for row in (self.rows if rows is None else rows)]
        return {name: verdicts.count(name) for name in ("closer", "not told apart", "farther", "not comparable")}


def compare_with_reference(analysis: Analysis) -> ReferenceTable | None:
    """The reference of the study beside the runs on each clock that its store holds; `None` without a reference."""
    reference = analysis.specification.reference
    if reference is None or analysis.makes_no_claims:
        return None
    on_clocks = {analysis.specification.clock: analysis}
    for clock in _CLOCKS:
        if clock not in on_clocks:
            on_clocks[clock] = Analysis(study_on(analysis.study, clock), analysis.store, analysis.with_invalid)
    clocks = tuple(clock for clock in _CLOCKS if on_clocks[clock].used)
    rows: list[ComparedFigure] = []
    for figure in read_figures(reference, analysis.study.beside[reference.file], analysis.specification):
        measured: dict[str, Interval] = {}
        closeness: dict[str, Closeness] = {}
        for clock in clocks:
            samples = _samples(on_clocks[clock], reference, figure)
            closeness[clock] = "not comparable"
            # What is left where some runs have no value is no sample.
            if samples:
                measured[clock] = t_interval(samples, analysis.specification.confidence)
                closeness[clock] = how_close(figure, measured[clock].estimate)
        rows.append(ComparedFigure(figure, measured, closeness))
    return ReferenceTable(reference, clocks, tuple(rows), tuple(_changes(reference, rows)))


def _changes(reference: Reference, rows: Sequence[ComparedFigure]) -> list[ComparedFigure]:
    if not reference.baseline:
        return []
    by_case = {_key(row.figure, row.figure.levels): row for row in rows}
    found: list[ComparedFigure] = []
    for row in rows:
        base = by_case.get(_key(row.figure, {**row.figure.levels, **reference.baseline}))
        if base is None or base is row:
            continue
        figure = replace(
            row.figure,
            truth=_difference(row.figure.truth, base.figure.truth, row.figure.scale),
            rival=_difference(row.figure.rival, base.figure.rival, row.figure.scale),
        )
        measured = {
            clock: _minus(interval, base.measured[clock])
            for clock, interval in row.measured.items()
            if clock in base.measured
        }
        closeness: dict[str, Closeness] = {
            clock: how_close(figure, measured[clock].estimate) if clock in measured else "not comparable"
            for clock in row.closeness
        }
        found.append(ComparedFigure(figure, measured, closeness))
    return found


def _key(figure: Figure, levels: Mapping[str, str]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return figure.metric, figure.statistic, tuple(sorted(levels.items()))


def _difference(value: PrintedValue, base: PrintedValue, scale: float) -> PrintedValue:
    if value.value is None or base.value is None:
        return PrintedValue("", None)
    decimals = max(value.decimals, base.decimals)
    change = value.value - base.value
    return PrintedValue(f"{change / scale:.{decimals}f}", change, half_digits=value.off + base.off)


def _minus(interval: Interval, base: Interval) -> Interval:
    """The change of an estimate; its interval is not known, for the repetitions of both may go together."""
    return Interval(interval.estimate - base.estimate, math.nan, math.nan, interval.level, "difference")


def _samples(analysis: Analysis, reference: Reference, figure: Figure) -> list[float]:
    runs = [run for run in analysis.used if all(run.run.levels[name] == of for name, of in figure.levels.items())]
    samples = statistic_samples(runs, reference.metrics[figure.metric].measurement, figure.statistic)
    return samples if len(samples) == len(runs) and all(map(math.isfinite, samples)) else []


def how_close(figure: Figure, measured: float) -> Closeness:
    """Compare how far `measured` and the rival are from the truth.

    A printed figure stands for all that is rounded to it, half of its last digit up and down; one that was printed as
    `<x` for all from zero to x. What was measured is as it is. It is closer where it is for all that was rounded, and
    farther likewise; else the printed digits do not tell.
    """
    truth, rival = _printed_for(figure.truth, figure.scale), _printed_for(figure.rival, figure.scale)
    if truth is None or rival is None or not math.isfinite(measured):
        return "not comparable"
    # Both distances are straight between these, so that the least and the greatest difference is at one of them.
    bends = (*truth, *(value for value in (measured, *rival, sum(rival) / 2) if truth[0] <= value <= truth[1]))
    ours = [abs(measured - value) for value in bends]
    nearest = [max(rival[0] - value, value - rival[1], 0.0) for value in bends]
    farthest = [max(abs(end - value) for end in rival) for value in bends]
    # Differences of decimal numbers differ in their last binary digits.
    slack = 1e-9 * figure.scale * max(figure.truth.off, figure.rival.off)
    if all(own < other - slack for own, other in zip(ours, nearest, strict=True)):
        return "closer"
    if all(own > other + slack for own, other in zip(ours, farthest, strict=True)):
        return "farther"
    return "not told apart"


def _printed_for(value: PrintedValue, scale: float) -> tuple[float, float] | None:
    """The ends of what a printed value stands for; `None` where nothing is known."""
    if value.value is None:
        return value.ends
    half = value.off * scale
    return value.value - half, value.value + half
