"""Run a study, or load the results that are stored."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from rich.console import Console

from twinnet.errors import BadValue, TwinnetError
from twinnet.report.progress import SilentObserver, observer_on
from twinnet.studies.results import StudyResults
from twinnet.study.analysis import analyse
from twinnet.study.execute import LabExecutor
from twinnet.study.forecast import forecast_here
from twinnet.study.levels_here import with_levels_here
from twinnet.study.plan import plan_study
from twinnet.study.resolution import built_in_studies, load_study
from twinnet.study.runner import Outcome, run_plan
from twinnet.study.store import ResultStore

__all__ = ["StudyFailed", "load", "names", "run"]


class StudyFailed(TwinnetError):
    """No run of a study could be finished; the message is that of the first that failed."""


def names() -> list[str]:
    """Return the names of the built-in studies.

    Examples
    --------
    >>> "mtu-sweep" in names()
    True
    """
    return sorted(built_in_studies())


def run(
    study: str | os.PathLike[str],
    *,
    preset: str | None = None,
    settings: Mapping[str, str | int | float] | None = None,
    repetitions: int | None = None,
    clock: Literal["wall", "virtual", "real"] | None = None,
    order: Literal["listed", "random"] | None = None,
    out: str | os.PathLike[str] = "results",
    jobs: int = 1,
    on: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    without_tls: bool = False,
    interface: Literal["auto", "tap", "veth"] = "auto",
    with_invalid: bool = False,
    progress: bool = True,
) -> StudyResults:
    """Make the runs of a study and return its results, as ``twinnet run`` does.

    Finished runs of the same specification are kept and not made again: the same call goes on with what was
    interrupted, and returns at once when all is there.

    Parameters
    ----------
    study
        A built-in name (:func:`names`), or the path of a ``study.yaml``.
    preset
        A size that the study names, such as ``tiny``.
    settings
        New values of parameters or of paths, such as ``{"link_rate": "100 Mbit", "traffic.udp.payload": "500 B"}``.
    repetitions
        How often each combination of levels is run.
    clock
        ``wall``: emulate with real hosts; ``virtual``: simulate with models; ``real``: physical machines. Default: what
        the study says.
    order
        Of the runs: ``listed`` or ``random``.
    out
        Results go to this folder, into one that is named after the study.
    jobs
        Runs side by side, 1 to 256.
    on
        The scheduler of a cluster whose workers make the runs, such as ``tls://lab1:8786``; default: this machine.
    keys
        The folder of the cluster's certificates; default: ``~/.config/twinnet/cluster``.
    without_tls
        Permit ``tcp://127.0.0.1:PORT``: on this machine, open to all its users.
    interface
        The hosts' interfaces on the wall clock.
    with_invalid
        Whether runs that missed their schedule are used too.
    progress
        Whether to tell on standard error what is done and how long it takes.

    Raises
    ------
    BadValue
        There is no such study, preset or setting; or a value is not allowed.
    NotAvailable
        This machine cannot run it, or nobody answers at `on`.
    StudyFailed
        No run could be finished.
    twinnet.study.gather.DifferentTraces
        With `on`: of the runs on the virtual clock two in a hundred are made again on another machine, if there are
        several, and one of them had another trace there.
    KeyboardInterrupt
        Ctrl-C; finished runs are kept.
    """
    if isinstance(jobs, bool) or not 1 <= jobs <= 256:
        raise BadValue(f"jobs is {jobs!r}; allowed are whole numbers from 1 to 256")
    if on is None and (keys is not None or without_tls):
        raise BadValue("keys and without_tls are for a cluster, which is not named", 'add on="tls://HOST:PORT"')
    if on is not None and jobs != 1:
        raise BadValue(f"jobs is {jobs} with on", "leave it out: the slots of the workers say what is made where")
    changes = {name: str(value) for name, value in (settings or {}).items()}
    for name, value in {"repetitions": repetitions, "order": order, "clock": clock}.items():
        if value is not None:
            changes[name] = str(value)
    loaded = load_study(os.fspath(study), changes, preset)
    if loaded.specification.clock == "real" and (on is not None or jobs != 1):
        raise BadValue(
            f"{'on' if on is not None else 'jobs'} is given with the real clock",
            "leave it out: the machines of the study make one run at a time",
        )
    executor = LabExecutor(interface)
    if loaded.specification.clock == "wall" and on is None:
        loaded, told = with_levels_here(loaded)
        if told and progress:
            print(told, file=sys.stderr)
    if on is None or loaded.specification.clock == "virtual":
        executor.check(loaded.specification)
    store = ResultStore(Path(out) / loaded.name)
    store.write_study(loaded)
    plan = plan_study(loaded)
    forecast = None
    if loaded.specification.clock == "wall" and on is None:
        console = Console(file=sys.stderr, highlight=False, quiet=not progress)
        forecast = forecast_here(loaded, plan, store, jobs, console.print)
    with contextlib.ExitStack() as opened:
        places = None
        if on is not None:
            from twinnet.cluster.client import places_for

            folder = None if keys is None else Path(keys)
            places = opened.enter_context(places_for(on, folder, without_tls, loaded, store, interface))
        console = Console(file=sys.stderr, highlight=False)
        observer = opened.enter_context(observer_on(console)) if progress else SilentObserver()
        outcome = run_plan(plan, store, executor, observer, jobs, forecast, places)
        if places is not None and loaded.specification.clock == "virtual" and not outcome.interrupted:
            from twinnet.cluster.made_twice import compare_machines

            compare_machines(places, plan, outcome.finished)
    if outcome.interrupted:
        raise KeyboardInterrupt
    _check(outcome)
    return StudyResults(analyse(store, with_invalid))


def _check(outcome: Outcome) -> None:
    if outcome.failed and not (outcome.finished or outcome.skipped):
        raise StudyFailed(str(outcome.failed[0].record["error"]["message"]))


def load(folder: str | os.PathLike[str], *, with_invalid: bool = False) -> StudyResults:
    """Return the results that :func:`run` or ``twinnet run`` has stored.

    Parameters
    ----------
    folder
        Such as ``results/mtu-sweep``.
    with_invalid
        Whether runs that missed their schedule are used too.

    Raises
    ------
    BadValue
        The folder holds no study.
    """
    return StudyResults(analyse(ResultStore(Path(folder)), with_invalid))
