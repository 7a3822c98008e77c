"""Joint analysis of a study's runs: series with bands, phases, differences between levels, verdicts."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twinnet.results.series import Band, band
from twinnet.stats import Effect, Interval, TestResult, hedges_g, holm
from twinnet.study.cells import counted_the_same, values_and_missing
from twinnet.study.forecast import CameTrue, came_true
from twinnet.study.grain import RunModel
from twinnet.study.judgement import judged_again
from twinnet.study.kept_tables import KeptTables
from twinnet.study.machine_blocks import block_of, confounded_levels, mean_of_repetitions, together
from twinnet.study.natural_range import clipped, range_of_function, top_of
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.predicate import SHARE_UNIT, Aggregate, Side, aggregate_of, is_under
from twinnet.study.published_results import PublishedResult, published_result
from twinnet.study.resolution import Study
from twinnet.study.run_quantities import RunTables
from twinnet.study.specification import StudySpecification, Traffic
from twinnet.study.store import ResultStore, StoredRun
from twinnet.study.verdict import StatementResult, judge
from twinnet.study.what_varies import nothing_varies
from twinnet.study.window import WARM_UP, is_span

__all__ = ["Analysis", "Difference", "PhaseMean", "PublishedResult", "SeriesBand", "analyse"]

_PS_PER_SECOND = 1e12
_ONLY_TIES = (
    "Nothing in this study is random: repetitions differ only by which of two frames goes first that arrive at one "
    "moment, and intervals speak of that alone."
)
_NO_VALUE = "there is no value in # runs: "
_INFINITE = "the value in # runs is infinite: too much was lost there, or a transfer had not ended"
_NEXT_TO_NOTHING = 0.01
"""A difference that a factor is asked about makes more than that of something."""
_USUAL_ORDER = ("udp", "rtp", "tcp", "http", "icmp")

Levels = Mapping[str, str]
Filters = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SeriesBand:
    """A throughput over time under one combination of levels, mean over repetitions."""

    measurement: str
    levels: Levels
    label: str
    band: Band


@dataclass(frozen=True)
class PhaseMean:
    """What a measurement shows (its mean, a percentile, a share) under one combination of levels: the mean over
    repetitions with its confidence interval.

    Attributes
    ----------
    phase
        The time it covers in seconds; `None` for a quantity of the whole run.
    samples
        The value of each repetition that has one; infinite where what is measured had not ended or was lost.
    missing
        Why others have none, by the names of their runs. What is left of a sample that failed in part is not the
        sample: it is shown with these counted, and not compared. Without samples the interval is NaN.
    blocks
        The machine that gave each of them; empty on the virtual clock, where it has no effect.
    top
        The greatest that a value can be; `None` where there is no such.
    """

    measurement: str
    levels: Levels
    label: str
    phase: tuple[float, float] | None
    samples: tuple[float, ...]
    interval: Interval
    unit: str
    blocks: tuple[str, ...]
    missing: Mapping[str, str]
    top: float | None = None


@dataclass(frozen=True)
class Difference:
    """Two combinations of levels compared in one quantity, within machines where several made the runs; the p-value is
    adjusted for all comparisons of the study, and so is the interval."""

    first: PhaseMean
    second: PhaseMean
    interval: Interval
    test: TestResult
    adjusted_p: float
    effect: Effect


class Analysis:
    """The finished runs of a study and what follows from them; each part is computed when it is first asked for.

    Attributes
    ----------
    study
        The study.
    planned
        Its runs.
    stored
        The finished ones, by id.
    failed
        The records of those that failed.
    others
        How many runs of other specifications stand in the same folder.
    with_invalid
        Whether runs with the verdict invalid are used too.
    """

    def __init__(self, study: Study, store: ResultStore, with_invalid: bool = False) -> None:
        self.study = study
        self.store = store
        self.with_invalid = with_invalid
        self.planned: list[PlannedRun] = plan_study(study)
        self.stored: dict[str, StoredRun] = {}
        shared: dict[str, object] = {}
        for run in self.planned:
            found = store.find(run)
            if found is not None:
                self.stored[run.id] = judged_again(_sharing(found, shared), study.specification.fidelity)
        ids = {run.id for run in self.planned}
        self.failed: list[StoredRun] = []
        self.others: int = 0
        for one in store.all_runs():
            if one.id not in ids:
                self.others += 1
            elif one.record.get("status") == "failed":
                self.failed.append(one)

    @property
    def specification(self) -> StudySpecification:
        """The study's specification."""
        return self.study.specification

    @property
    def makes_no_claims(self) -> bool:
        """True if this size only shows that the study works, and supports no claim."""
        return self.specification.claims == "none"

    @cached_property
    def used(self) -> list[RunTables]:
        """The runs that the numbers rest on: all finished ones whose fidelity is not invalid."""
        kept, own = KeptTables(), self.study.own_metrics()
        models: dict[tuple[str, ...], RunModel] = {}
        for run in self.planned:
            models.setdefault(tuple(run.levels.values()), RunModel(run))
        model_of = {run.id: models[tuple(run.levels.values())] for run in self.planned}
        return [
            RunTables(run, self.specification.measurements, self.end_s, kept, own, model_of[run.id])
            for run in self.stored.values()
            if self.with_invalid or run.verdict != "invalid"
        ]

    @property
    def left_out(self) -> int:
        """The number of finished runs that are not used because they are invalid."""
        return len(self.stored) - len(self.used)

    @property
    def verdict_counts(self) -> dict[str, int]:
        """The numbers of finished runs that are valid, doubtful and invalid."""
        verdicts = [run.verdict for run in self.stored.values()]
        return {name: verdicts.count(name) for name in ("valid", "doubtful", "invalid")}

    @property
    def forecast(self) -> CameTrue:
        """The outcome of the forecasts of runs that would exceed the machine."""
        return came_true(self.stored.values())

    @cached_property
    def combinations(self) -> list[dict[str, str]]:
        """The combinations of levels, in the order of the file."""
        factors = self.specification.levels_run()
        return [dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())]

    @cached_property
    def end_s(self) -> float:
        """The end of the last traffic of known duration, in seconds from the start of traffic."""
        ends = [end for end in map(_end_s, self.specification.traffic) if end is not None]
        if ends:
            return max(ends)
        return max((_last_end_s(run) for run in self.stored.values()), default=0.0)

    @cached_property
    def phases(self) -> list[tuple[float, float]]:
        """The spans between the moments at which traffic of known duration begins or ends."""
        moments = {0.0, self.end_s}
        for entry in self.specification.traffic:
            end_s = _end_s(entry)
            if end_s is not None:
                moments |= {entry.start_ps / _PS_PER_SECOND, end_s}
        ordered = sorted(moments)
        return [(begin, end) for begin, end in itertools.pairwise(ordered) if end > begin]

    def phases_of(self, name: str) -> Sequence[tuple[float, float] | None]:
        """The spans of time for which tables tell the measurement `name`: its window, or the phases of a throughput;
        `None` for the whole run, and for what is left of a run after its own warm-up."""
        measurement = self.specification.measurements[name]
        if is_span(measurement.window):
            return [(measurement.window[0], min(measurement.window[1], self.end_s))]
        return self.phases if measurement.is_series and measurement.window is None else [None]

    def shown(self, name: str, filters: Filters, phase: tuple[float, float] | None) -> Aggregate:
        """What tables show of the measurement `name` in one of its spans (:meth:`phases_of`)."""
        measurement = self.specification.measurements[name]
        return aggregate_of(name, filters, phase if measurement.window is None else None, measurement.function)

    def warm_ups(self, name: str) -> tuple[list[float], list[str]]:
        """The lengths in seconds of the warm-ups that runs left out of the measurement `name`, over levels and labels,
        and why none was found in others."""
        found: list[float] = []
        missing: list[str] = []
        if self.specification.measurements[name].window != WARM_UP:
            return found, missing
        for run in self.used:
            for _, filters in self.labels(name):
                try:
                    window_s = run.window_s(aggregate_of(name, filters))
                    found += [window_s[0]] if window_s is not None else []
                except LookupError as error:
                    missing.append(str(error.args[0]))
        return found, missing

    def runs_at(self, levels: Levels) -> list[RunTables]:
        """The used runs under `levels`."""
        return [run for run in self.used if run.run.levels == levels]

    @cached_property
    def _seen(self) -> dict[str, frozenset[str]]:
        """The labels that each measurement distinguishes in any run; run by run, so that the tables of each are read
        once."""
        of_flows = [name for name, one in self.specification.measurements.items() if not one.is_of_ports]
        seen: dict[str, set[str]] = {name: set() for name in of_flows}
        for run in self.used:
            for name in of_flows:
                seen[name] |= run.labels(name)
        return {name: frozenset(labels) for name, labels in seen.items()}

    def labels(self, name: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """Return the labels that the measurement `name` distinguishes, each with its filter, such as `("udp",
        (("protocol", "udp"),))`."""
        measurement = self.specification.measurements[name]
        if measurement.is_of_ports:
            return [(port, (("port", port),)) for port in measurement.ports or []]
        if measurement.is_own and "per" not in measurement.model_fields_set:
            return [("all", ())]
        key = "flow" if measurement.per == "flow" else "protocol"
        seen = self._seen[name]
        places = {name: place for place, name in enumerate(_USUAL_ORDER)}
        ordered = sorted(seen, key=lambda name: (places.get(name, len(places)), name))
        return [(label, ((key, label),)) for label in ordered]

    @cached_property
    def _evaluated(self) -> int:
        """The number of runs in which all that series, means and statements need was looked up, run by run, so that the
        tables of each are read once and not all kept."""
        means = [
            self.shown(name, filters, phase)
            for name in self.specification.measurements
            for _, filters in self.labels(name)
            for phase in self.phases_of(name)
        ]
        checks = self.study.checks().values()
        sides = [side for check in checks for one in check for side in (one.left, one.right, one.margin)]
        sides += [side for one in self.study.published_sides() for side in (one.measured, one.over)]
        claimed = [term.aggregate for side in sides for term in side if term.aggregate is not None]
        for run in self.used:
            chosen = (one for one in claimed if is_under(run.run.levels, dict(one.levels)))
            for aggregate in itertools.chain(means, chosen):
                with suppress(LookupError):
                    run.value(aggregate)
                    run.grain(aggregate)
            for name, measurement in self.specification.measurements.items():
                if measurement.is_series:
                    for _, filters in self.labels(name):
                        with suppress(LookupError):
                            run.rates(name, filters, (measurement.interval_ps or 0) / _PS_PER_SECOND)
        return len(self.used)

    @cached_property
    def series(self) -> list[SeriesBand]:
        """Every throughput over time, by measurement, levels and label."""
        found: list[SeriesBand] = []
        if not self._evaluated:
            return found
        for name, measurement in self.specification.measurements.items():
            if not measurement.is_series:
                continue
            interval_s = (measurement.interval_ps or 0) / _PS_PER_SECOND
            for levels in self.combinations:
                for label, filters in self.labels(name):
                    one = self._series(name, levels, filters, interval_s)
                    if one is not None:
                        found.append(SeriesBand(name, levels, label, one))
        return found

    def _series(
        self, name: str, levels: Levels, filters: tuple[tuple[str, str], ...], interval_s: float
    ) -> Band | None:
        rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
        starts: np.ndarray[tuple[int], np.dtype[np.float64]] = np.zeros(0)
        for run in self.runs_at(levels):
            try:
                starts, rates = run.rates(name, filters, interval_s)
            except LookupError:
                continue
            rows.append(rates)
        return band(starts, rows, self.specification.confidence) if rows else None

    @cached_property
    def means(self) -> list[PhaseMean]:
        """Every measurement's mean under every combination of levels; throughputs by phase.

        Under levels that carry none of its traffic a measurement has nothing to say. Under others it has a mean, also
        where no run has a value, if runs under other levels do.
        """
        found: list[PhaseMean] = []
        if not self._evaluated:
            return found
        for name, measurement in self.specification.measurements.items():
            unit = measurement.shown_unit
            for levels, phase in itertools.product(self.combinations, self.phases_of(name)):
                for label, filters in self.labels(name):
                    meant = aggregate_of(name, filters, phase, measurement.function)
                    samples, blocks, missing = self._samples(meant, levels)
                    if samples or self._is_to_have(name, label, levels):
                        function = measurement.function
                        within = range_of_function(measurement.quantity, function.name, function.bound)
                        top = top_of(within)
                        interval = mean_of_repetitions(samples, self.specification.confidence, top)
                        interval = clipped(interval, within)
                        one = PhaseMean(name, levels, label, phase, samples, interval, unit, blocks, missing, top)
                        found.append(one)
        somewhere = {(one.measurement, one.label) for one in found if one.samples}
        return [one for one in found if (one.measurement, one.label) in somewhere]

    def _samples(
        self, aggregate: Aggregate, levels: Levels
    ) -> tuple[tuple[float, ...], tuple[str, ...], dict[str, str]]:
        """The values of the runs under `levels` and who made them, and why runs have none, by their names."""
        runs = self.runs_at(levels)
        samples, missing = values_and_missing(aggregate, runs)
        blocks = tuple(block_of(run.run.record) for place, run in enumerate(runs) if place not in missing)
        return tuple(samples), blocks, {runs[place].run.id: why for place, why in missing.items()}

    def _is_to_have(self, name: str, label: str, levels: Levels) -> bool:
        """True if a run under `levels` has what the measurement `name` is taken of."""
        measurement = self.specification.measurements[name]
        runs = self.runs_at(levels)
        if measurement.is_of_ports or measurement.is_own:
            return bool(runs)
        return any(label in run.labels(name) for run in runs)

    @property
    def incomplete(self) -> list[str]:
        """Sentences about measurements that some runs have no value of, or an infinite one: of how many, and why."""
        failed: dict[str, dict[str, str]] = {}
        runs: dict[str, set[str]] = {}
        for one in self.means:
            alone = len(self.labels(one.measurement)) == 1
            name = one.measurement if alone else f"{one.measurement} ({one.label})"
            ids = [run.run.id for run in self.runs_at(one.levels)]
            runs.setdefault(name, set()).update(ids)
            of = failed.setdefault(name, {})
            of.update((id, _NO_VALUE + why) for id, why in one.missing.items())
            values = zip((id for id in ids if id not in one.missing), one.samples, strict=True)
            of.update((id, _INFINITE) for id, value in values if math.isinf(value))
        said: dict[str, list[str]] = {}
        for name, of in failed.items():
            for why in dict.fromkeys(of.values()):
                count = f"{list(of.values()).count(why)} of {len(runs[name])}"
                said.setdefault(why.replace("#", count, 1), []).append(name)
        return [f"Of {', '.join(names)} {why}." for why, names in said.items()]

    @cached_property
    def machines(self) -> dict[str, int]:
        """The number of used runs that each machine made on the wall clock, by its name; empty on the virtual clock."""
        names = [block_of(run.run.record) for run in self.used]
        return {name: names.count(name) for name in sorted(set(names)) if name}

    @cached_property
    def confounded(self) -> list[str]:
        """Sentences that name levels which no machine had in common, on the wall clock."""
        runs = [(run.run.levels, block_of(run.run.record)) for run in self.used]
        return confounded_levels(runs) if len(self.machines) > 1 else []

    @cached_property
    def silent(self) -> list[str]:
        """Sentences about measurements of which no run has a value, and factors whose levels change nothing."""
        said: list[str] = []
        seen = {one.measurement for one in self.means}
        said += self.incomplete
        for name in self.specification.measurements if self.used else ():
            if name not in seen:
                try:
                    self.used[0].value(self.shown(name, (), self.phases_of(name)[0]))
                    reason = "its traffic was not seen"
                except LookupError as error:
                    reason = str(error.args[0])
                said.append(f"No run has a value of {name}: {reason}.")
        repeated = (runs for levels in self.combinations if len(runs := self.runs_at(levels)) > 1)
        if nothing_varies(self.planned) and not all(map(counted_the_same, repeated)):
            said.append(_ONLY_TIES)
        for name in self.specification.factors:
            if self._is_idle(name):
                said.append(f"No run differs between the levels of {name}: what they change has no effect.")
            elif (most := self._most_apart(name)) < _NEXT_TO_NOTHING:
                by = f" by more than {most * 100:.2g} %" if most else ""
                said.append(
                    f"Between the levels of {name} nothing that is measured differs{by} in any repetition: "
                    "check that what they change lies on the way of the traffic."
                )
        return said

    def _is_idle(self, factor: str) -> bool:
        """True if runs on the virtual clock that differ in `factor` alone counted the same, every one."""
        if self.specification.clock != "virtual" or len(self.specification.levels_run()[factor]) < 2:
            return False
        alike: dict[tuple[object, ...], RunTables] = {}
        compared = 0
        for run in self.used:
            others = {name: level for name, level in run.run.levels.items() if name != factor}
            first = alike.setdefault((*sorted(others.items()), run.run.repetition), run)
            if first is not run:
                compared += 1
                if first.fingerprint != run.fingerprint:
                    return False
        return compared > 0

    def _most_apart(self, factor: str) -> float:
        """By how much a measured value differs at most between runs on the virtual clock that differ in `factor` and
        seed alone, relative to the greater one; infinite on other clocks, and where some of them have no value.

        Seeds break ties between frames that arrive at one moment, so such runs are rarely equal throughout."""
        levels = self.specification.levels_run()[factor]
        if self.specification.clock != "virtual" or len(levels) < 2:
            return math.inf
        alike: dict[tuple[object, ...], list[tuple[float, ...]]] = {}
        for one in self.means:
            others = tuple(sorted((name, level) for name, level in one.levels.items() if name != factor))
            alike.setdefault((one.measurement, one.label, one.phase, others), []).append(one.samples)
        most = 0.0 if alike else math.inf
        for samples in alike.values():
            ragged = len(samples) < len(levels) or len(set(map(len, samples))) > 1
            if ragged or not samples[0] or not np.isfinite(samples).all():
                return math.inf
            greatest = np.abs(samples).max(axis=0)
            most = max(most, float((np.ptp(samples, axis=0) / np.where(greatest > 0, greatest, 1.0)).max()))
        return most

    @cached_property
    def differences(self) -> list[Difference]:
        """Every pair of combinations of levels compared in every mean: p-values adjusted by Holm's method, intervals
        that hold together by Bonferroni's. Pairs whose repetitions do not differ are no samples, and not among them;
        nor are those of which some runs have no value: what is left of these is no sample."""
        pairs: list[tuple[PhaseMean, PhaseMean]] = []
        for first, second in itertools.combinations(self.means, 2):
            same = (first.measurement, first.label, first.phase) == (second.measurement, second.label, second.phase)
            whole = not first.missing and not second.missing
            if same and whole and len(first.samples) > 1 and len(second.samples) > 1:
                pairs.append((first, second))
        compared = together(
            [(first.samples, first.blocks, second.samples, second.blocks) for first, second in pairs],
            self.specification.confidence,
            [first.top for first, _ in pairs],
        )
        adjusted = iter(holm([test.p_value for _, test in compared if test is not None]))
        return [
            Difference(first, second, interval, test, next(adjusted), hedges_g(first.samples, second.samples))
            for (first, second), (interval, test) in zip(pairs, compared, strict=True)
            if test is not None
        ]

    @cached_property
    def statements(self) -> list[StatementResult]:
        """Every statement with its verdict; none where the study makes no claims at this size."""
        if self.makes_no_claims:
            return []
        checks = self.study.checks()
        confidence = self.specification.confidence
        return [judge(one, checks[one.id], self.used, confidence) for one in self.specification.statements]

    def unit_of(self, side: Side) -> str:
        """The unit of a sum of measured quantities: that of its first."""
        for term in side:
            if term.aggregate is not None:
                return term.aggregate.unit(self.specification.measurements[term.aggregate.measurement].unit)
        return "1"

    @cached_property
    def published(self) -> list[PublishedResult]:
        """Every published figure beside what was measured."""
        found: list[PublishedResult] = []
        if self.makes_no_claims:
            return found
        for one, sides in zip(self.study.published(), self.study.published_sides(), strict=True):
            unit = SHARE_UNIT if sides.over else self.unit_of(sides.measured)
            found.append(published_result(one, sides, unit, self.used, self.specification.confidence))
        return found


def _sharing(run: StoredRun, shared: dict[str, object]) -> StoredRun:
    """`run` with the specification in `shared` that equals its own: that of each combination of levels is kept once,
    and not with each of thousands of runs."""
    own = run.record.get("specification")
    same = shared.setdefault(json.dumps(own), own)
    return StoredRun(run.id, run.folder, {**run.record, "specification": same})


def _end_s(entry: Traffic) -> float | None:
    return None if entry.duration_ps is None else (entry.last_start_ps + entry.duration_ps) / _PS_PER_SECOND


def _last_end_s(run: StoredRun) -> float:
    ends = run.table("flows")["end_s"].drop_nulls().to_numpy()
    return float(ends.max()) if ends.size else 0.0


def analyse(store: ResultStore, with_invalid: bool = False) -> Analysis:
    """Read the results that `store` holds; raises `BadValue` when there is no study in it."""
    return Analysis(store.read_study(), store, with_invalid)
