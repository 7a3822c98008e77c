"""Run a study, or load the results that are stored."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from twinnet.errors import BadValue, TwinnetError
from twinnet.report.console import text_console
from twinnet.report.progress import SilentObserver, observer_on
from twinnet.studies.results import StudyResults
from twinnet.study.analysis import analyse
from twinnet.study.campaign import Campaign
from twinnet.study.consent import asked_for, check_may_run
from twinnet.study.named_studies import named_studies
from twinnet.study.runner import Outcome
from twinnet.study.store import ResultStore

__all__ = ["StudyFailed", "load", "names", "run"]


class StudyFailed(TwinnetError):
    """No run of a study could be finished; the message is that of the first that failed."""


def names() -> list[str]:
    """Return the names of the built-in studies, and of those that other packages bring.

    Examples
    --------
    >>> "mtu-sweep" in names()
    True
    """
    return sorted(named_studies())


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
    fabric_threads: int | Literal["auto"] | None = None,
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
    fabric_threads
        How many threads move the network on the wall clock; ``"auto"``: as many as help here. Default: what the network
        says.
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
    console = text_console(sys.stderr, quiet=not progress)
    campaign = Campaign.read(
        study,
        out=Path(out),
        preset=preset,
        settings={name: str(value) for name, value in (settings or {}).items()},
        repetitions=repetitions,
        clock=clock,
        order=order,
        jobs=jobs,
        elsewhere=on is not None,
        interface=interface,
        fabric_threads=fabric_threads,
        tell=lambda said: console.print(said, soft_wrap=True),
    )
    with contextlib.ExitStack() as opened:
        places, again = None, None
        if on is not None:
            from twinnet.cluster.client import places_for
            from twinnet.cluster.made_twice import comparison_on

            folder = None if keys is None else Path(keys)
            places = opened.enter_context(
                places_for(on, folder, without_tls, campaign.study, campaign.store, interface, fabric_threads)
            )
            again = comparison_on(places, campaign.study)
        observer = opened.enter_context(observer_on(console)) if progress else SilentObserver()
        outcome = campaign.make(observer, places, again)
    if outcome.interrupted:
        raise KeyboardInterrupt
    _check(outcome)
    return StudyResults(campaign.analysis(with_invalid))


def _check(outcome: Outcome) -> None:
    if outcome.failed and not (outcome.finished or outcome.skipped):
        raise StudyFailed(str(outcome.failed[0].record["error"]["message"]))


def load(folder: str | os.PathLike[str], *, with_invalid: bool = False, run_code: bool = False) -> StudyResults:
    """Return the results that :func:`run` or ``twinnet run`` has stored.

    Parameters
    ----------
    folder
        Such as ``results/mtu-sweep``.
    with_invalid
        Whether runs that missed their schedule are used too.
    run_code
        Whether metrics of the study's own may run that you have never run: read them first.

    Raises
    ------
    BadValue
        The folder holds no study.
    """
    analysis = analyse(ResultStore(Path(folder)), with_invalid)
    if run_code:
        with asked_for():
            for metric in analysis.study.own_metrics().values():
                check_may_run(metric)
    return StudyResults(analysis)
