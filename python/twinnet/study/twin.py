"""A study on both clocks compared: every metric under every combination of levels, with a verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from twinnet.stats import Interval, TestResult, alike, kolmogorov_smirnov, t_quantile, welch_interval
from twinnet.study.analysis import Analysis
from twinnet.study.bodies import of_models
from twinnet.study.cells import grain_in, is_exact, no_step_known, values_and_missing
from twinnet.study.natural_range import range_of_aggregate, top_of
from twinnet.study.parting import AtThatMoment, Parting, fidelity_between, find_parting
from twinnet.study.predicate import Aggregate
from twinnet.study.resolution import Study, with_changes
from twinnet.study.run_quantities import RunTables
from twinnet.study.skew import difference_interval
from twinnet.study.store import ResultStore
from twinnet.study.tolerance import Tolerance, Tolerances

__all__ = ["Agreement", "Twin", "TwinResult", "study_on"]

Agreement = Literal["agrees", "differs", "cannot tell"]
Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_OVERLOADED_SENDER = "could not keep up"
_WORST = ("valid", "doubtful", "invalid")


@dataclass(frozen=True)
class TwinResult:
    """One metric under one combination of levels, on both clocks.

    Attributes
    ----------
    phase
        The time that it covers in seconds; `None` for a quantity of the whole run.
    wall, virtual, real
        The value of each repetition; of `real`, those on physical machines, which stand beside and are not judged.
    models, of_model, model_verdict
        Where hosts are real on both clocks: the value of each repetition with model hosts on the virtual clock, the
        difference of real hosts there minus these, and whether they agree; empty or `None` without such runs.
    difference
        Wall minus virtual with its confidence interval.
    tolerance, allowed
        What the study states, and how far these means may be apart by it.
    test
        Kolmogorov-Smirnov over the intervals of all repetitions, or over the packets that were kept; `None` where a run
        has one value, for a few means are no distribution.
    wall_values, virtual_values
        The values that it is over.
    why
        In words, why the verdict is what it is; empty when it agrees.
    emulation
        The worst fidelity verdict among the wall clock's runs that were used.
    """

    measurement: str
    label: str
    levels: Mapping[str, str]
    phase: tuple[float, float] | None
    unit: str
    wall: tuple[float, ...]
    virtual: tuple[float, ...]
    difference: Interval
    tolerance: Tolerance
    allowed: float
    test: TestResult | None
    wall_values: Vector
    virtual_values: Vector
    verdict: Agreement
    why: str
    emulation: str
    parting: Parting | None
    moment: AtThatMoment | None
    real: tuple[float, ...] = ()
    models: tuple[float, ...] = ()
    of_model: Interval | None = None
    model_verdict: Agreement | None = None


def study_on(study: Study, clock: str) -> Study:
    """`study` on the clock `clock`."""
    return with_changes(study, {"clock": clock})


class Twin:
    """The runs of a study on both clocks that a store holds, and what follows from them.

    Attributes
    ----------
    wall, virtual
        The study on each clock; invalid runs are in, for the twin is to show them.
    here
        The study on the wall clock, of runs that are not invalid: what it says of its statements.
    real
        The study on physical machines: means that stand beside those of both clocks, where the store has such runs.
    models
        The study with model hosts on the virtual clock where those of `virtual` are real; otherwise `None`.
    """

    def __init__(self, study: Study, store: ResultStore) -> None:
        self.wall: Analysis = Analysis(study_on(study, "wall"), store, with_invalid=True)
        self.virtual: Analysis = Analysis(study_on(study, "virtual"), store, with_invalid=True)
        self.real: Analysis = Analysis(study_on(study, "real"), store)
        modelled = of_models(study)
        self.models: Analysis | None = None if modelled is None else Analysis(modelled, store, with_invalid=True)
        self.study: Study = self.wall.study
        self.store = store
        self.here: Analysis = Analysis(self.study, store)
        self.tolerances: Tolerances = Tolerances(self.study.specification, self.study.names())

    @cached_property
    def results(self) -> list[TwinResult]:
        """Every metric under every combination of levels; throughputs by phase."""
        found: list[TwinResult] = []
        for name, measurement in self.study.specification.measurements.items():
            phases: Sequence[tuple[float, float] | None] = self.wall.phases_of(name)
            if measurement.is_series and measurement.window is None:
                phases = self.phases
            labels = dict.fromkeys([*self.wall.labels(name), *self.virtual.labels(name)])
            for levels, (label, filters) in itertools.product(self.wall.combinations, labels):
                for phase in phases:
                    one = self._compare(name, label, filters, levels, phase)
                    if one is not None:
                        found.append(one)
        return found

    @property
    def phases(self) -> list[tuple[float, float]]:
        """The spans between the moments at which traffic of known duration begins or ends, on both clocks."""
        end_s = min(self.wall.end_s, self.virtual.end_s)
        return [(begin, min(end, end_s)) for begin, end in self.wall.phases if begin < end_s]

    def wall_runs(self, levels: Mapping[str, str]) -> list[RunTables]:
        """The wall clock's runs that numbers rest on: those that kept their schedule, or all when none did."""
        runs = self.wall.runs_at(levels)
        return [run for run in runs if run.run.verdict != "invalid"] or runs

    def counts(self) -> dict[Agreement, int]:
        """Return the number of metrics with each verdict."""
        return _counted([one.verdict for one in self.results])

    def model_counts(self) -> dict[Agreement, int]:
        """Return the number of metrics with each verdict on models beside real hosts on the virtual clock."""
        return _counted([one.model_verdict for one in self.results])

    def series(
        self, measurement: str, filters: tuple[tuple[str, str], ...], levels: Mapping[str, str], clock: str
    ) -> tuple[Vector, list[Vector]]:
        """Starts of the intervals in seconds and the rates in bit/s of each repetition on `clock`."""
        runs = self.wall_runs(levels) if clock == "wall" else self.virtual.runs_at(levels)
        interval_s = (self.study.specification.measurements[measurement].interval_ps or 0) / _PS_PER_SECOND
        end_s = min(self.wall.end_s, self.virtual.end_s)
        starts: Vector = np.zeros(0)
        rows: list[Vector] = []
        for run in runs:
            try:
                starts, rates = run.line(measurement, filters).rates_bps(interval_s, end_s)
            except LookupError:
                continue
            rows.append(rates)
        return starts, rows

    def _compare(
        self,
        name: str,
        label: str,
        filters: tuple[tuple[str, str], ...],
        levels: Mapping[str, str],
        phase: tuple[float, float] | None,
    ) -> TwinResult | None:
        measurement = self.study.specification.measurements[name]
        aggregate = self.wall.shown(name, filters, phase)
        wall_runs, virtual_runs = self.wall_runs(levels), self.virtual.runs_at(levels)
        (wall, none_on_wall), (virtual, none_on_virtual) = (
            values_and_missing(aggregate, runs) for runs in (wall_runs, virtual_runs)
        )
        if not wall and not virtual:
            return None
        real, _ = values_and_missing(aggregate, self.real.runs_at(levels))
        level = self.study.specification.confidence
        top = top_of(range_of_aggregate(aggregate, self.study.specification.measurements))
        tolerance = self.tolerances.of(name, label)
        models, none_of_models = (
            values_and_missing(aggregate, self.models.runs_at(levels)) if self.models is not None else ([], {})
        )
        incomplete = _incomplete(virtual, none_on_virtual, "the virtual clock")
        of_models = _incomplete(models, none_of_models, "models")
        of_model, model_verdict = self._of_model(virtual, models, (level, top), tolerance, incomplete or of_models)
        unit = measurement.shown_unit
        emulation = max(map(_emulation, wall_runs), key=_WORST.index, default="missing")
        difference, no_step = _no_narrower(_difference(wall, virtual, level, top), wall_runs, virtual_runs, aggregate)
        allowed = tolerance.allowed(_mean(wall), _mean(virtual)) if wall and virtual else math.nan
        incomplete = _incomplete(wall, none_on_wall, "the wall clock") or incomplete or no_step
        verdict, why = _judged(wall, virtual, difference, allowed, emulation, bool(virtual_runs), incomplete)
        parting = moment = None
        if phase is not None and measurement.is_series and measurement.window is None:
            starts, of_wall, of_virtual = self._in_phase(name, filters, levels, phase)
            parting = find_parting(starts, of_wall, of_virtual, tolerance, level)
            wall_values, virtual_values = (
                np.concatenate(rows) if rows else np.zeros(0) for rows in (of_wall, of_virtual)
            )
            if parting is not None:
                stored = [run.run for run in wall_runs]
                end_s = parting.worst_s + (0.0 if math.isnan(parting.interval_s) else parting.interval_s)
                moment = fidelity_between(stored, parting.worst_s, max(end_s, parting.worst_s + 1e-9))
        elif measurement.is_of_packets:
            wall_values, virtual_values = (_of_packets(runs, name, filters) for runs in (wall_runs, virtual_runs))
        else:
            # A few means are no distribution.
            wall_values, virtual_values = np.zeros(0), np.zeros(0)
        test = kolmogorov_smirnov(wall_values, virtual_values) if wall_values.size and virtual_values.size else None
        return TwinResult(
            name, label, levels, phase, unit, tuple(wall), tuple(virtual), difference, tolerance, allowed, test,
            wall_values, virtual_values, verdict, why, emulation, parting, moment, tuple(real), tuple(models),
            of_model, model_verdict,
        )  # fmt: skip

    @staticmethod
    def _of_model(
        virtual: Sequence[float],
        models: Sequence[float],
        level_and_top: tuple[float, float | None],
        tolerance: Tolerance,
        incomplete: str,
    ) -> tuple[Interval | None, Agreement | None]:
        """How far real hosts on the virtual clock are from models there, and whether they agree."""
        if not virtual or not models:
            return None, None
        difference = _difference(virtual, models, *level_and_top)
        allowed = tolerance.allowed(_mean(virtual), _mean(models))
        return difference, _judged(virtual, models, difference, allowed, "valid", True, incomplete)[0]

    def _in_phase(
        self,
        name: str,
        filters: tuple[tuple[str, str], ...],
        levels: Mapping[str, str],
        phase: tuple[float, float],
    ) -> tuple[Vector, list[Vector], list[Vector]]:
        """The intervals that lie within `phase`, with the rates of each repetition on both clocks."""
        starts, of_wall = self.series(name, filters, levels, "wall")
        more, of_virtual = self.series(name, filters, levels, "virtual")
        interval_s = (self.study.specification.measurements[name].interval_ps or 0) / _PS_PER_SECOND
        count = min(starts.size, more.size)
        slack_s = interval_s * 1e-6
        inside = (starts[:count] >= phase[0] - slack_s) & (starts[:count] + interval_s <= phase[1] + slack_s)
        chosen: list[list[Vector]] = [[row[:count][inside] for row in rows] for rows in (of_wall, of_virtual)]
        return starts[:count][inside], chosen[0], chosen[1]


def _emulation(run: RunTables) -> str:
    """The fidelity verdict of a wall clock's run; doubtful at best when its senders could not keep up, for then the
    machine, and no model, decided what was sent."""
    slow = run.flows["errors"].drop_nulls().str.contains(_OVERLOADED_SENDER, literal=True).any()
    return "doubtful" if slow and run.run.verdict == "valid" else run.run.verdict


def _incomplete(values: Sequence[float], missing: Mapping[int, str], where: str) -> str:
    """Say that only some of the runs have a finite value: then those that have it flatter the clock."""
    runs, infinite = len(values) + len(missing), sum(map(math.isinf, values))
    if missing and values:
        return f"{len(missing)} of {runs} runs of {where} have no value: {next(iter(missing.values()))}"
    return f"the value of {infinite} of {runs} runs of {where} is infinite" if infinite else ""


def _difference(first: Sequence[float], second: Sequence[float], level: float, top: float | None) -> Interval:
    if first and second and np.isfinite([*first, *second]).all():
        if min(len(first), len(second)) > 1:
            return difference_interval(first, second, level, top)
        return welch_interval(first, second, level)
    return Interval(math.nan, math.nan, math.nan, level, "Welch")


def _no_narrower(
    difference: Interval, first: Sequence[RunTables], second: Sequence[RunTables], aggregate: Aggregate
) -> tuple[Interval, str]:
    """`difference`, no narrower than where each side had the spread of a step of what is counted, unless its runs are
    one made again; and why it has no bounds where a side has no spread and no step of it is known."""
    if math.isnan(difference.low):
        return difference, ""
    squares = 0.0
    for runs in (first, second):
        if is_exact(runs):
            continue
        steps = [grain_in(run, aggregate) for run in runs]
        if None in steps:
            if alike([run.value(aggregate) for run in runs]):
                nothing = replace(difference, low=math.nan, high=math.nan)
                return nothing, no_step_known(len(runs), difference.level)
            continue
        squares += max(step for step in steps if step is not None) ** 2 / len(runs)
    half = t_quantile(difference.level, min(len(first), len(second)) - 1) * math.sqrt(squares)
    low, high = min(difference.low, difference.estimate - half), max(difference.high, difference.estimate + half)
    return replace(difference, low=low, high=high), ""


def _of_packets(runs: Sequence[RunTables], name: str, filters: tuple[tuple[str, str], ...]) -> Vector:
    """The values of all packets that were kept."""
    found: list[Vector] = []
    for run in runs:
        try:
            found.append(run.values(name, filters)[1])
        except LookupError:
            continue
    return np.concatenate(found) if found else np.zeros(0)


def _counted(verdicts: Sequence[Agreement | None]) -> dict[Agreement, int]:
    return {name: verdicts.count(name) for name in ("agrees", "differs", "cannot tell")}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _judged(
    wall: Sequence[float],
    virtual: Sequence[float],
    difference: Interval,
    allowed: float,
    emulation: str,
    simulated: bool,
    incomplete: str,
) -> tuple[Agreement, str]:
    """The verdict and why. An emulation that did not surely keep its schedule speaks neither for
    the model nor against it."""
    if emulation == "missing" or not simulated:
        return "cannot tell", f"no finished run on the {'wall' if emulation == 'missing' else 'virtual'} clock"
    if emulation == "invalid":
        return "cannot tell", "the emulation is invalid: it did not keep its schedule"
    if emulation == "doubtful":
        return "cannot tell", "the emulation is doubtful: agreement would prove as little as a difference"
    if not wall or not virtual:
        which = "wall" if not wall else "virtual"
        return "differs", f"nothing was measured on the {which} clock"
    if incomplete:
        return "cannot tell", incomplete
    if math.isnan(difference.low):
        return "cannot tell", "one repetition says nothing about the spread; repeat at least twice"
    if -allowed <= difference.low and difference.high <= allowed:
        return "agrees", ""
    if difference.low > allowed or difference.high < -allowed:
        return "differs", "the whole interval of the difference is beyond the tolerance"
    return "cannot tell", "the interval of the difference reaches across the tolerance; more repetitions may decide"
