"""The check of a pack by somebody who trusts none of it.

Hashes say that it is what was packed. What a pack has twice must agree, and runs that the reviewer's own seed draws are
made again: only these were looked into. What no one can see from a pack is said, too.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from twinnet.errors import NotAvailable, ProgramMissing, TwinnetError
from twinnet.report.pack import came_to, version
from twinnet.report.pack_manifest import CameTo, Manifest
from twinnet.report.recounted import contradictions
from twinnet.report.unpacked import hash_of, unpack
from twinnet.results.tables import TABLES
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.brought_code import brought_code
from twinnet.study.consent import may_run
from twinnet.study.machine import processors_apart
from twinnet.study.plan import PlannedRun
from twinnet.study.runner import Executor, Progress
from twinnet.study.store import ResultStore, StoredRun, StoreError

__all__ = ["CheckedPack", "Missed", "check_pack", "missed"]

_MOST_TOLD = 10
_RELATIVE = 1e-9
"""Of numbers that were evaluated again: sums may be added in another order elsewhere."""
_ODD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What hostile results may lead to that no check before has seen."""


@dataclass(frozen=True)
class Missed:
    """The probability that none of the runs that were changed is among those that were made again."""

    changed: int
    probability: float


@dataclass
class CheckedPack:
    """The outcome of checking a pack.

    Attributes
    ----------
    study
        The study's name.
    made_by
        The version of twinnet that made the pack.
    sha256
        The hash of the pack itself, to be compared with that which its author tells.
    files
        How many files have the hash that the manifest gives.
    runs
        How many finished runs are in it.
    seed
        What drew the runs that were made again.
    again
        The runs that were made again and came to the same, event by event.
    missed
        What the sample can miss; empty where all runs or none were made again.
    code
        What the pack would have run that nobody has asked for.
    wrong
        What is not as the pack says, in sentences.
    notes
        What could not be checked, in sentences.
    """

    study: str
    made_by: str
    sha256: str
    seed: int
    files: int = 0
    runs: int = 0
    again: list[str] = field(default_factory=list[str])
    missed: list[Missed] = field(default_factory=list[Missed])
    code: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def verdict(self) -> Literal["differs", "holds", "holds in part", "unchanged"]:
        """`differs`; `holds`, if every run does the same again; `holds in part`, if those that were drawn do; or
        `unchanged` since it was packed, which is all that hashes say."""
        if self.wrong:
            return "differs"
        if not self.again:
            return "unchanged"
        return "holds" if len(self.again) == self.runs and not self.code else "holds in part"


def check_pack(
    pack: Path, into: Path, sample: int, execute: Executor, seed: int | None = None, most_bytes: int | None = None
) -> CheckedPack:
    """Unpack `pack` into the empty folder `into` and check it: hashes, runs, tables that say the same, what the results
    come to, and `sample` runs, made again by `execute`, that must do the same event by event.

    Runs on the wall clock never do the same twice, so that none of them is made again. Python and programs that the
    study brings are run only where that is asked for (:func:`twinnet.study.consent.asked_for`).

    Parameters
    ----------
    seed
        Draws the runs that are made again; default: one of the machine's, which whoever made the pack cannot know.
    most_bytes
        The most that the pack may unpack to; default: 4 GiB.

    Raises
    ------
    BadValue
        It is no pack, one that this version cannot read, or larger.
    """
    manifest = unpack(pack, into, most_bytes)
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    checked = CheckedPack(manifest.study, manifest.twinnet, hash_of(pack), seed)
    for name, wanted in manifest.files.items():
        if hash_of(into / name) == wanted:
            checked.files += 1
        else:
            checked.wrong.append(f"{name} is not the file that was packed: its hash differs")
    if not checked.wrong:
        try:
            _check_results(manifest, into, sample, execute, checked)
        except StoreError as error:
            checked.wrong.append(error.message.replace(f"{into}/", ""))
        except (*_ODD, pl.exceptions.PolarsError) as error:
            if isinstance(error, TwinnetError):
                raise
            checked.wrong.append(f"its results cannot be evaluated ({type(error).__name__}: {error!s:.200})")
    return checked


def missed(runs: int, again: int, changed: int) -> float:
    """Return the probability that none of `changed` runs of `runs` is among `again` that are drawn: C(N - k, n) /
    C(N, n), the hypergeometric distribution at 0.

    Examples
    --------
    >>> round(missed(30, 3, 13), 3)
    0.167
    """
    if changed > runs - again:
        return 0.0
    return math.comb(runs - changed, again) / math.comb(runs, again)


def _check_results(manifest: Manifest, into: Path, sample: int, execute: Executor, checked: CheckedPack) -> None:
    analysis = analyse(ResultStore(into))
    checked.runs = len(analysis.stored)
    if analysis.study.name != manifest.study:
        checked.wrong.append(f"its manifest is of the study {manifest.study!r}, its files of {analysis.study.name!r}")
    _check_runs(manifest, analysis, checked)
    for run in analysis.planned:
        if run.id in analysis.stored:
            _check_run(run, analysis.stored[run.id], checked)
    if manifest.twinnet != version():
        checked.notes.append(f"made by twinnet {manifest.twinnet}; this is {version()}, whose traces may differ")
    brought = brought_code(analysis.study, analysis.planned)
    checked.code = [one.told for one in brought if not may_run(one)]
    if checked.code:
        checked.notes.append(
            f"the study brings what was not run: {'; '.join(checked.code)}. Look at it (--into DIR keeps the files); "
            "then check with --run-code"
        )
    if any(one.measures and not may_run(one) for one in brought):
        checked.notes.append("so what the results come to was not evaluated again")
    else:
        _compare_outcome(manifest, came_to(analysis), checked)
    if analysis.specification.clock != "virtual":
        checked.notes.append(f"runs on the {analysis.specification.clock} clock differ each time; none was made again")
    elif not checked.code:
        _sample_again(analysis, sample, execute, checked)


def _check_runs(manifest: Manifest, analysis: Analysis, checked: CheckedPack) -> None:
    """Look whether the runs and files are those of the study: a pack has all of them, and no other."""
    missing = [run.id for run in analysis.planned if run.id not in analysis.stored]
    if missing:
        checked.wrong.append(f"of its {len(analysis.planned)} runs {len(missing)} are missing: {_listed(missing)}")
    planned = {run.id for run in analysis.planned}
    beside = {"study.yaml", "study.json", *analysis.study.beside}
    added = sorted({name.partition("/")[0] for name in manifest.files if name not in beside} - planned)
    if added:
        checked.wrong.append(f"it holds what the study does not plan: {_listed(added)}")
    tables = {f"{name}.parquet" for name in TABLES}
    odd = [
        name
        for name in manifest.files
        if name not in beside and (parts := name.split("/"))[0] in planned
        and not (len(parts) == 2 and (parts[1] == "run.json" or parts[1] in tables))
        and not (len(parts) == 3 and parts[1] == "captures")
    ]  # fmt: skip
    if odd:
        checked.wrong.append(f"runs have files that belong to none: {_listed(odd)}")


def _check_run(run: PlannedRun, stored: StoredRun, checked: CheckedPack) -> None:
    """Look whether a run's record is that of its place in the plan, and whether its tables agree."""
    planned = {"levels": dict(run.levels), "repetition": run.repetition, "seed": run.seed}
    planned |= {"clock": run.specification.clock, "run": run.id}
    for key, wanted in planned.items():
        if stored.record.get(key) != wanted:
            told = f"{stored.record.get(key)!r:.80}"
            checked.wrong.append(f"{run.id} says that its {key} is {told}, and the study gives it {wanted!r:.80}")
    with _panics_untold():
        for name in TABLES:
            if name != "twin":
                stored.table(name)
    checked.wrong += [f"{run.id} contradicts itself: {one}" for one in contradictions(stored)]


@contextmanager
def _panics_untold() -> Generator[None]:
    """Keep what the reader of Parquet prints of a file that it cannot read, with pages of its own code, from standard
    error: the reason is told in one sentence."""
    with Path(os.devnull).open("wb") as nowhere:
        try:
            before = os.dup(2)
        except OSError:
            # There is no standard error.
            yield
            return
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)


def _compare_outcome(manifest: Manifest, found: Mapping[str, Any], checked: CheckedPack) -> None:
    """Compare what the manifest states with what the tables come to."""
    packed: dict[str, Any] = manifest.came_to.model_dump(mode="json")
    # Other versions tell more, or less.
    same = manifest.twinnet == version()
    for key in sorted(found.keys() | packed.keys() if same else found.keys() & packed.keys()):
        if key in ("statements", "means") or _alike(packed.get(key), found.get(key)):
            continue
        checked.wrong.append(
            f"{key}: the pack says {packed.get(key)!r:.300}, its tables come to {found.get(key)!r:.300}"
        )
    _compare_statements(manifest.came_to, found, checked)
    if not _alike(packed["means"], found["means"]):
        checked.wrong.append("the means that the pack states are not those of its tables")


def _compare_statements(packed: CameTo, found: Mapping[str, Any], checked: CheckedPack) -> None:
    now: dict[str, Any] = {one["id"]: one for one in found["statements"]}
    stated = {one.id: (one.verdict, one.numbers) for one in packed.statements}
    for name in [*stated, *(name for name in now if name not in stated)]:
        nothing: list[str] = []
        says = stated.get(name, ("nothing", nothing))
        here: tuple[str, list[str]] = ("missing", nothing)
        if name in now:
            here = now[name]["verdict"], now[name]["numbers"]
        if says != here:
            checked.wrong.append(
                f"statement {name}: the pack says {says[0]} ({'; '.join(says[1]):.300}), its tables come to {here[0]} "
                f"({'; '.join(here[1]):.300})"
            )


def _alike(one: object, other: object) -> bool:
    """Whether two values of JSON are the same, numbers within rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_RELATIVE)
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, object]", one), cast("dict[str, object]", other)
        return first.keys() == second.keys() and all(_alike(first[key], second[key]) for key in first)
    if isinstance(one, list) and isinstance(other, list):
        both = cast("list[object]", one), cast("list[object]", other)
        return len(both[0]) == len(both[1]) and all(map(_alike, *both))
    return one == other


def _sample_again(analysis: Analysis, sample: int, execute: Executor, checked: CheckedPack) -> None:
    """Make runs again that the seed draws, each of them with the same probability."""
    finished = [one for one in analysis.planned if one.id in analysis.stored]
    finished.sort(key=lambda run: run.id)
    drawn = random.Random(checked.seed).sample(finished, min(sample, len(finished)))
    for run in drawn:
        _make_again(run, analysis.stored[run.id], execute, checked)
    runs, again = len(finished), len(checked.again)
    if 0 < again < runs:
        some = sorted({1, max(2, runs // 10), max(2, runs // 2)})
        checked.missed = [Missed(changed, missed(runs, again, changed)) for changed in some if changed <= runs]


def _make_again(run: PlannedRun, stored: StoredRun, execute: Executor, checked: CheckedPack) -> None:
    try:
        made = execute(run, Progress(threading.Event()))
    except (NotAvailable, ProgramMissing) as error:
        checked.notes.append(f"{run.id} cannot be made on this machine: {error}")
        return
    except TwinnetError as error:
        checked.wrong.append(f"{run.id} could not be made again: {error}")
        return
    trace = made.fidelity.record.get("trace_hash")
    if trace != stored.record.get("trace_hash"):
        packed = f"{stored.record.get('trace_hash')!s:.80}"
        apart = processors_apart(stored.record["notes"], made.notes)
        checked.wrong.append(f"{run.id} made again has the trace {trace}, and {packed} packed{apart}")
        return
    frames = {"flows": made.flows, "intervals": made.intervals, "port_samples": made.port_samples}
    frames |= {"packets": made.packets, "tcp": made.tcp, "fidelity": made.fidelity_samples}
    for name, frame in frames.items():
        if not frame.equals(stored.table(name)):
            checked.wrong.append(f"{run.id} made again has another table {name}")
            return
    checked.again.append(run.id)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(names[:_MOST_TOLD]) + more
