"""Joins the results of one study that several machines or shards made into one store."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from twinnet.errors import BadValue, TwinnetError
from twinnet.study.machine import machine_of
from twinnet.study.plan import PlannedRun, plan_study
from twinnet.study.resolution import Study
from twinnet.study.store import ResultStore, StoreError
from twinnet.study.twin import study_on

__all__ = ["DifferentTraces", "Gathered", "gather"]

_MOST_NAMED = 3


class DifferentTraces(TwinnetError):
    """Equal runs on the virtual clock, made twice, did not do the same."""

    @classmethod
    def of(cls, different: Sequence[str], remedy: str) -> DifferentTraces:
        """Return the error that says of the first of these runs how they differ."""
        said = "; ".join(different[:_MOST_NAMED])
        said += f"; and {len(different) - _MOST_NAMED} more" if len(different) > _MOST_NAMED else ""
        return cls(f"equal runs on the virtual clock have different traces: {said}", remedy)


@dataclass
class Gathered:
    """The outcome of gathering the runs of the study.

    Attributes
    ----------
    store
        The joined results.
    study
        The study that they belong to.
    planned
        The ids of all its runs.
    finished, failed
        Ids of the runs that stand in `store` now.
    copied
        How many runs were copied into it.
    equal
        How many finished runs were made more than once; one of each is kept. Copies of one run are not counted.
    same_traces
        Of how many of these, on the virtual clock, the trace hashes were compared and are the same.
    others
        How many runs of other settings were left where they are.
    machines
        The machines that made the finished runs.
    """

    store: ResultStore
    study: Study
    planned: list[str]
    finished: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    copied: int = 0
    equal: int = 0
    same_traces: int = 0
    others: int = 0
    machines: list[str] = field(default_factory=list[str])

    @property
    def missing(self) -> list[str]:
        """The ids of planned runs that no folder holds."""
        have = {*self.finished, *self.failed}
        return [run for run in self.planned if run not in have]


def gather(folders: Sequence[Path], out: Path) -> Gathered:
    """Join the results in `folders` into `out` / the study's name.

    Of runs that stand in several folders one is kept: a finished one before a failed one, then one that is in the
    joined results already, then that of the folder that is named first. Nothing is written before all folders have been
    looked through, so that a refusal leaves the joined results as they were.

    Parameters
    ----------
    folders
        Folders that `twinnet run` or `twinnet twin` wrote, of the same study with the same changes.
    out
        The folder that holds, or will hold, the folder of the joined results.

    Raises
    ------
    BadValue
        A folder holds no results, is given twice or is the one to be written, or the folders hold different studies or
        runs of different versions.
    DifferentTraces
        Equal runs on the virtual clock have different trace hashes.
    StoreError
        A run cannot be read, or results cannot be written.
    """
    if not folders:
        raise BadValue("no folders of results are given", "name those that `twinnet run --shard` wrote")
    sources = [_source(folder) for folder in folders]
    study = sources[0].read_study()
    target = ResultStore(out / study.name)
    _check_apart([source.folder for source in sources], target.folder)
    studies = [(sources[0], study), *((source, source.read_study()) for source in sources[1:])]
    stores = list(sources)
    if target.folder.exists() and any(target.folder.iterdir()):
        # What was gathered before goes first: a second gathering changes no run that it holds.
        studies.append((target, target.read_study()))
        stores.insert(0, target)
    for store, other in studies[1:]:
        _check_same_study(sources[0], study, store, other)
    if len({source.holds_twin for source in sources}) > 1:
        raise BadValue(
            "some of the folders were written by `twinnet run` and some by `twinnet twin`",
            "gather those of one command at a time",
        )
    return _Joining(stores, target, study, sources[0].holds_twin).join()


def _source(folder: Path) -> ResultStore:
    if not folder.is_dir():
        raise BadValue(f"there is no folder {folder}", "name the folders that `twinnet run --shard` wrote")
    store = ResultStore(folder)
    if not (folder / "study.json").exists():
        inner = sorted(path.parent for path in folder.glob("*/study.json"))
        if inner:
            raise BadValue(f"{folder} holds no results itself", f"name the study's folder in it, such as {inner[0]}")
    return store


def _check_apart(sources: Sequence[Path], target: Path) -> None:
    places = [source.resolve() for source in sources]
    for (first, one), (second, other) in itertools.combinations(zip(sources, places, strict=True), 2):
        if one == other:
            raise BadValue(f"{first} and {second} are the same folder", "name each folder once")
        if one in other.parents or other in one.parents:
            raise BadValue(f"of {first} and {second} one is inside the other", "name folders that stand side by side")
    joined = target.resolve()
    for source, place in zip(sources, places, strict=True):
        if place == joined or place in joined.parents or joined in place.parents:
            raise BadValue(
                f"the results of {source} would be written to {target}, which is the same folder or overlaps with it",
                "give another place with --out; what was gathered there before counts without being named",
            )


def _check_same_study(first: ResultStore, study: Study, store: ResultStore, other: Study) -> None:
    between = f"{first.folder} and {store.folder} hold results of different studies"
    remedy = "give the same study, --set, --preset and other changes on each machine, and gather each study apart"
    if other.name != study.name:
        raise BadValue(f"{between}: {study.name} and {other.name}", remedy)
    for key in sorted({*study.changes, *other.changes}):
        if study.changes.get(key) != other.changes.get(key):
            values = [f"{one.changes[key]}" if key in one.changes else "not set" for one in (study, other)]
            raise BadValue(f"{between}: {key} is {values[0]} in the first and {values[1]} in the second", remedy)
    if other.text != study.text:
        lines = itertools.zip_longest(study.text.splitlines(), other.text.splitlines())
        number = next((number for number, (one, two) in enumerate(lines, 1) if one != two), 1)
        raise BadValue(f"{between}: their study.yaml differ, first in line {number}", remedy)
    for name in sorted({*study.beside, *other.beside}):
        if study.beside.get(name) != other.beside.get(name):
            raise BadValue(f"{between}: their files {name} differ", remedy)


@dataclass(frozen=True)
class _Seen:
    """The few facts that are kept of a stored run: records of thousands of runs would fill the memory."""

    run: PlannedRun
    store: ResultStore
    finished: bool
    version: str
    machine: str
    trace: str | None
    started: str

    @property
    def folder(self) -> Path:
        return self.store.folder / self.run.id


class _Joining:
    def __init__(self, stores: Sequence[ResultStore], target: ResultStore, study: Study, twin: bool) -> None:
        self.stores, self.target, self.study, self.twin = stores, target, study, twin
        on_clocks = [study_on(study, clock) for clock in ("virtual", "wall")] if twin else [study]
        self.plan: list[PlannedRun] = [run for one in on_clocks for run in plan_study(one)]

    def join(self) -> Gathered:
        found = {run.id: list(self._all_of(run)) for run in self.plan}
        _check_versions(itertools.chain.from_iterable(found.values()))
        _check_traces(found)
        result = Gathered(self.target, self.study, [run.id for run in self.plan])
        result.others = self._others()
        self.target.remove_leftovers()
        self.target.write_study(self.study, self.twin)
        machines: set[str] = set()
        for run_id, equal in found.items():
            if not equal:
                continue
            finished = [one for one in equal if one.finished]
            kept = (finished or equal)[0]
            if kept.store is not self.target:
                self._copy(kept)
                result.copied += 1
            # A run that was gathered before is the same one, and no second witness.
            if len({(one.machine, one.started) for one in finished}) > 1:
                result.equal += 1
                result.same_traces += finished[0].trace is not None
            (result.finished if finished else result.failed).append(run_id)
            machines |= {one.machine for one in finished[:1]}
        result.machines = sorted(machines)
        return result

    def _copy(self, kept: _Seen) -> None:
        stored = kept.store.read_strictly(kept.run)
        if stored is None:
            raise StoreError(f"{kept.folder} has gone while it was gathered", "gather again")
        self.target.copy_run(stored)

    def _all_of(self, run: PlannedRun) -> Iterable[_Seen]:
        for store in self.stores:
            stored = store.read_strictly(run)
            if stored is not None:
                record = stored.record
                trace = str(record.get("trace_hash")) if record.get("clock") == "virtual" else None
                finished = record["status"] == "finished"
                version = str(record["versions"].get("twinnet"))
                yield _Seen(run, store, finished, version, machine_of(record), trace, str(record.get("started")))

    def _others(self) -> int:
        planned = {run.id for run in self.plan}
        sources = [store for store in self.stores if store is not self.target]
        return sum(run.id not in planned for store in sources for run in store.all_runs())


def _check_versions(runs: Iterable[_Seen]) -> None:
    by_version: dict[str, _Seen] = {}
    for run in runs:
        if run.finished:
            by_version.setdefault(run.version, run)
    if len(by_version) > 1:
        named = "; ".join(f"twinnet {version} made {run.folder}" for version, run in sorted(by_version.items()))
        raise BadValue(
            f"the runs were made by different versions: {named}",
            "install one version on all machines, and make the runs of the others again in a new folder",
        )


def _check_traces(found: Mapping[str, Sequence[_Seen]]) -> None:
    different: list[str] = []
    for run_id, equal in found.items():
        hashes = {run.trace: run for run in reversed(equal) if run.finished and run.trace is not None}
        if len(hashes) > 1:
            seen = ", ".join(f"{trace} in {run.store.folder} (machine {run.machine})" for trace, run in hashes.items())
            different.append(f"{run_id} has the trace hash {seen}")
    if different:
        raise DifferentTraces.of(
            different,
            "nothing was gathered; make one of these runs again on each machine: one whose trace changes is faulty,"
            " or was made by another build of the same version",
        )
