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
from twinnet.study.published_results import AS_PUBLISHED_SHARE
from twinnet.study.reference_settings import Reference
from twinnet.study.twin import study_on

__all__ = ["Closeness", "ComparedFigure", "ReferenceTable", "compare_with_reference"]

Closeness = Literal["closer", "as close", "farther", "not comparable"]
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
        """``as published`` where what was measured on `clock` differs from the truth by at most 5 %, or is the same
        when both are rounded as the truth was printed; else ``differs``. Empty where one of them is not known."""
        truth = self.figure.truth
        ends = truth.ends
        if clock not in self.measured or ends is None:
            return ""
        here = self.measured[clock].estimate
        if truth.value is None:
            return "as published" if ends[0] <= here <= ends[1] else "differs"
        allowed = max(AS_PUBLISHED_SHARE * abs(truth.value), self.figure.scale * 10.0**-truth.decimals / 2)
        return "as published" if abs(here - truth.value) <= allowed else "differs"


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
        """Return the numbers of figures that are closer on `clock`, as close, farther and not comparable; of `rows`
        or of all."""
        verdicts = [row.closeness[clock] for row in (self.rows if rows is None else rows)]
        return {name: verdicts.count(name) for name in ("closer", "as close", "farther", "not comparable")}


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
    return PrintedValue(f"{change / scale:.{decimals}f}", change)


def _minus(interval: Interval, base: Interval) -> Interval:
    """The change of an estimate; its interval is not known, for the repetitions of both may go together."""
    return Interval(interval.estimate - base.estimate, math.nan, math.nan, interval.level, "difference")


def _samples(analysis: Analysis, reference: Reference, figure: Figure) -> list[float]:
    runs = [run for run in analysis.used if all(run.run.levels[name] == of for name, of in figure.levels.items())]
    return statistic_samples(runs, reference.metrics[figure.metric].measurement, figure.statistic)


def how_close(figure: Figure, measured: float) -> Closeness:
    """Compare `measured` and the rival with the truth, both rounded as finely as the figures were printed.

    A figure that was printed as `<x` may be anything from zero to x: it is judged where all of that comes to the same.
    """
    truths, rivals = figure.truth.ends, figure.rival.ends
    if truths is None or rivals is None:
        return "not comparable"
    decimals = max(figure.truth.decimals, figure.rival.decimals)
    verdicts: set[Closeness] = set()
    for truth in truths:
        # The rival is closest in the middle, where it may be the truth itself, and farthest at one of its ends.
        nearest = min(max(truth, rivals[0]), rivals[1])
        verdicts |= {_compared(measured, truth, rival, figure.scale, decimals) for rival in (*rivals, nearest)}
    return verdicts.pop() if len(verdicts) == 1 else "not comparable"


def _compared(measured: float, truth: float, rival: float, scale: float, decimals: int) -> Closeness:
    ours = abs(round(measured / scale, decimals) - round(truth / scale, decimals))
    theirs = abs(round(rival / scale, decimals) - round(truth / scale, decimals))
    # Differences of decimal numbers differ in their last binary digits.
    if abs(ours - theirs) < 10.0**-decimals / 1000:
        return "as close"
    return "closer" if ours < theirs else "farther"
