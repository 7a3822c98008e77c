"""A study and the way in which its runs are made: what every door to a study does, done once.

The command ``twinnet run`` with its shards, clusters and dry runs, ``twinnet twin`` and :func:`twinnet.studies.run` all
read a study here, fit it to this machine, forecast, and make its runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from twinnet.errors import BadValue
from twinnet.study.analysis import Analysis
from twinnet.study.bodies import of_models, with_programs
from twinnet.study.brought_code import brought_code
from twinnet.study.congestion_control import for_this_machine
from twinnet.study.consent import asked_for, check_may_run
from twinnet.study.execute import LabExecutor
from twinnet.study.filled_ports import StudyLoads
from twinnet.study.fitting import fitting_size, trial_by
from twinnet.study.forecast import forecast_here
from twinnet.study.levels_here import with_levels_here
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.policy_layout import write_policy_layouts
from twinnet.study.progress_file import told_in
from twinnet.study.queues_in_words import queues_set_in_vain, sets_queues
from twinnet.study.resolution import Study, load_study
from twinnet.study.runner import Executor, Observer, Outcome, Places, run_plan
from twinnet.study.shard import PartOfPlan
from twinnet.study.store import ResultStore, StoredRun
from twinnet.study.twin import study_on
from twinnet.study.virtual_hosts import has_programs

__all__ = ["Campaign", "Clock", "CompareAgain", "Tell"]

Clock = Literal["wall", "virtual", "real"]
Tell = Callable[[str], None]
"""Takes a sentence for the user."""
CompareAgain = Callable[[Sequence[PlannedRun], Sequence[StoredRun]], int]
"""Makes some of the finished runs of a plan again elsewhere, compares their traces, and returns how many."""


def _silent(_: str) -> None:
    return None


@dataclass(frozen=True)
class Campaign:
    """A study and the way in which its runs are made.

    Parameters
    ----------
    study
        As its runs are made: read, with all changes, and fitted to this machine.
    executor
        Makes a run in this process.
    folder
        Where results go.
    jobs
        Runs side by side.
    elsewhere
        Whether the runs are made on other machines.
    tell
        Gets what the user is to know before runs begin.
    part
        The shard of the plan that is made; default: all of it.
    models
        Of a twin with programs: the study with model hosts, which is made on the virtual clock too.
    """

    study: Study
    executor: Executor
    folder: Path
    jobs: int = 1
    elsewhere: bool = False
    tell: Tell = _silent
    part: PartOfPlan | None = None
    models: Study | None = None

    @classmethod
    def read(
        cls,
        name: str | os.PathLike[str],
        *,
        out: Path,
        preset: str | None = None,
        settings: Mapping[str, str] | None = None,
        repetitions: int | None = None,
        clock: str | None = None,
        order: str | None = None,
        jobs: int = 1,
        elsewhere: bool = False,
        interface: str = "auto",
        fabric_threads: int | Literal["auto"] | None = None,
        tell: Tell = _silent,
        trial: bool = True,
        traces: Path | None = None,
    ) -> Campaign:
        """Read the study `name` with changes, and fit it to this machine where its runs are made here.

        On the wall clock, a study that has sizes for this clock takes the largest that this machine carries, unless
        `preset` names one; with `trial` it is tried by one run. Levels that need what this machine lacks are left out.

        Raises
        ------
        BadValue
            There is no such study, preset or setting; a value is not allowed; or two of these exclude each other.
        NotAvailable
            This machine cannot run it.
        """
        asked = {"repetitions": repetitions, "order": order, "clock": clock}
        changes = {**(settings or {}), **{key: str(value) for key, value in asked.items() if value is not None}}
        # Who asks for runs asks for the Python that makes them.
        with asked_for() if trial else nullcontext():
            study = load_study(os.fspath(name), changes, preset)
        if study.specification.clock == "real" and (elsewhere or jobs != 1):
            raise BadValue(
                f"{'a cluster is' if elsewhere else 'more than one job is'} asked for with the real clock",
                "leave it out: the machines of the study make one run at a time",
            )
        executor = LabExecutor(interface, fabric_threads, traces)
        if study.specification.clock == "wall" and not elsewhere:
            if preset is None and study.specification.wall_presets:
                tried = trial_by(executor) if trial else None
                study = fitting_size(os.fspath(name), study, changes, jobs, tell, tried)
            study = _on_this_machine(study, tell)
        elif study.specification.clock == "virtual" and not elsewhere and has_programs(study.specification):
            study, sentence = with_levels_here(study)
            if sentence:
                tell(sentence)
        if not elsewhere or study.specification.clock == "virtual":
            executor.check(study.specification)
        return cls(study, executor, out / study.name, jobs, elsewhere, tell)

    @classmethod
    def read_twin(
        cls,
        name: str | os.PathLike[str],
        *,
        out: Path,
        preset: str | None = None,
        settings: Mapping[str, str] | None = None,
        repetitions: int | None = None,
        jobs: int = 1,
        with_real: bool = False,
        with_models: bool = False,
        tell: Tell = _silent,
    ) -> Campaign:
        """Read the study `name` for both clocks, each of which is given what real hosts have here; `with_models` with
        programs for its traffic, and for a third time with model hosts.

        Raises
        ------
        BadValue, NotAvailable
            As :meth:`read` says.
        """
        changes = {**(settings or {}), **({} if repetitions is None else {"repetitions": str(repetitions)})}
        with asked_for():
            loaded = load_study(os.fspath(name), changes, preset)
        study = _on_this_machine(with_programs(loaded) if with_models else loaded, tell)
        executor = LabExecutor()
        for clock in _twin_clocks(with_real):
            executor.check(study_on(study, clock).specification)
        models = of_models(study) if with_models else None
        if with_models and models is None:
            raise BadValue(
                f"the study {study.name} has traffic by programs that no parameter changes to apps",
                "leave --models away",
            )
        return cls(study, executor, out / study.name, jobs, tell=tell, models=models)

    @cached_property
    def whole(self) -> list[PlannedRun]:
        """All runs of the study."""
        return plan_study(self.study)

    @cached_property
    def loads(self) -> StudyLoads:
        """What the traffic of all runs asks of the ports."""
        return StudyLoads.of(self.whole)

    @property
    def plan(self) -> list[PlannedRun]:
        """The runs that this campaign makes: all, or those of its part."""
        return self.whole if self.part is None else self.part.plan

    @cached_property
    def store(self) -> ResultStore:
        """Where results are kept."""
        return ResultStore(self.folder)

    def expected_s(self, places: int | None = None) -> float:
        """About how long it takes, in seconds, to make its runs, `places` side by side; default: its jobs."""
        side_by_side = max(1, min(places if places is not None else self.jobs, len(self.plan)))
        return sum(self.executor.expected_s(run) for run in self.plan) / side_by_side

    def make(self, observer: Observer, places: Places | None = None, again: CompareAgain | None = None) -> Outcome:
        """Make the runs that the store lacks, here or at `places`; `again` then makes some of them a second time.

        Raises
        ------
        StoreError
            Results cannot be written; finished runs are kept.
        """
        self.store.write_study(self.study)
        with self._with_its_code():
            if self.part is None:
                write_policy_layouts(self.study, self.folder / "layout")
            self._warn()
            outcome = self._make(observer, places)
        if again is not None and not outcome.interrupted:
            outcome.made_again = again(self.plan, outcome.finished)
        return outcome

    def make_twin(
        self, observing: Callable[[str], AbstractContextManager[Observer]], with_real: bool = False
    ) -> list[Outcome]:
        """Make the runs on each clock that the store lacks, and return what came of each; `observing` a clock gives who
        sees its runs. An interrupt ends it: the last outcome says so.

        One clock comes after the other: a simulation beside an emulation would take the processor that it needs.
        """
        with self._with_its_code():
            return self._make_twin(observing, with_real)

    def _make_twin(
        self, observing: Callable[[str], AbstractContextManager[Observer]], with_real: bool
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        self.store.write_study(study_on(self.study, "wall"), twin=True)
        self._warn()
        if self.models is not None:
            with observing("virtual") as observer:
                outcomes.append(replace(self, study=self.models)._make(observer, None))
            if outcomes[-1].interrupted:
                return outcomes
        for clock in _twin_clocks(with_real):
            with observing(clock) as observer:
                outcomes.append(self.on(clock)._make(observer, None))
            if outcomes[-1].interrupted:
                break
        return outcomes

    def on(self, clock: Clock) -> Campaign:
        """The same on another clock, with the same seeds."""
        jobs = 1 if clock == "real" else self.jobs
        return replace(self, study=study_on(self.study, clock), jobs=jobs)

    def twin_expected_s(self, with_real: bool = False) -> tuple[int, float]:
        """The number of runs on all clocks of a twin, and about how long they take, in seconds."""
        each = [self.on(clock) for clock in _twin_clocks(with_real)]
        each += [] if self.models is None else [replace(self, study=self.models)]
        return sum(len(one.plan) for one in each), sum(one.expected_s() for one in each)

    def analysis(self, with_invalid: bool = False) -> Analysis:
        """What the runs in the store come to."""
        return Analysis(self.study, self.store, with_invalid)

    @contextmanager
    def _with_its_code(self) -> Generator[None]:
        """Let what the study brings run, also its metrics afterwards: runs were asked for."""
        with asked_for():
            for one in brought_code(self.study, self.plan):
                check_may_run(one)
            yield

    def _warn(self) -> None:
        if sets_queues(self.study):
            for warning in queues_set_in_vain(self.study, self.loads):
                self.tell(warning)

    def _make(self, observer: Observer, places: Places | None) -> Outcome:
        forecast = None
        if self.study.specification.clock == "wall" and not self.elsewhere:
            forecast = forecast_here(self.study, self.plan, self.store, self.jobs, self.tell)
        with told_in(self.folder, observer) as telling:
            return run_plan(self.plan, self.store, self.executor, telling, self.jobs, forecast, places)


def _twin_clocks(with_real: bool) -> tuple[Clock, ...]:
    return ("virtual", "wall", "real") if with_real else ("virtual", "wall")


def _on_this_machine(study: Study, tell: Tell) -> Study:
    """`study` as real hosts can run it here; says when that changes it."""
    for adapt in (for_this_machine, with_levels_here):
        study, sentence = adapt(study)
        if sentence:
            tell(sentence)
    return study
