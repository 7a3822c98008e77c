"""``twinnet twin``: the same runs on both clocks, compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.study_commands import ASK_ABOVE_S, INTERRUPTED, on_this_machine, study_options

if TYPE_CHECKING:
    from twinnet.study.forecast import Forecast
    from twinnet.study.runner import Executor, Outcome
    from twinnet.study.twin import Twin

__all__ = ["run_twin", "tell_twin", "twin"]


@click.command(short_help="Make the runs of a study on both clocks and compare them.")
@study_options
@click.option("--real", "with_real", is_flag=True, help="Make the runs on the physical machines of the network too.")
@click.option("--no-report", is_flag=True, help="Do not write the page and figures.")
@click.option("--yes", is_flag=True, help="Do not ask before a long study.")
@json_option
def twin(
    study: str,
    settings: dict[str, str],
    preset: str | None,
    repeat: int | None,
    out: Path,
    jobs: int,
    with_real: bool,
    no_report: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make the runs of STUDY on the virtual clock and on the wall clock, with the same seeds, and compare them.

    With --real they are made on the network's physical machines as well; their means are shown beside those of both
    clocks. Finished runs are kept, also those that `twinnet run` made. Tolerances are stated in the study's block
    `twin`. Exit status 1 when a run failed.
    """
    from twinnet.study.execute import LabExecutor
    from twinnet.study.forecast import forecast_here
    from twinnet.study.resolution import load_study
    from twinnet.study.store import ResultStore
    from twinnet.study.twin import Twin, study_on

    if repeat is not None:
        settings = {**settings, "repetitions": str(repeat)}
    loaded = on_this_machine(load_study(study, settings, preset))
    executor = LabExecutor()
    for clock in ("virtual", "wall", *(["real"] if with_real else [])):
        executor.check(study_on(loaded, clock).specification)
    found = Twin(loaded, ResultStore(out / loaded.name))
    forecast = forecast_here(loaded, found.wall.planned, found.store, jobs, lambda said: click.echo(said, err=True))
    return run_twin(found, executor, jobs, not no_report, yes, as_json, forecast, with_real)


def run_twin(
    found: Twin,
    executor: Executor,
    jobs: int = 1,
    with_report: bool = True,
    yes: bool = True,
    as_json: bool = False,
    forecast: Forecast | None = None,
    with_real: bool = False,
) -> int:
    """Make the runs that `found` lacks by `executor`, the virtual clock's first and those on physical machines last,
    and tell the comparison; store `forecast` with those on the wall clock; return the exit status."""
    from rich.console import Console

    from twinnet.report.progress import observer_on
    from twinnet.report.wording import worded_span
    from twinnet.study.runner import run_plan
    from twinnet.study.twin import Twin
    from twinnet.study.twin_table import twin_frame

    told = Console(stderr=True, highlight=False)
    # One clock after the other: a simulation beside an emulation would take the processor that it needs.
    plans = {"virtual": found.virtual.planned, "wall": found.wall.planned}
    if with_real:
        plans["real"] = found.real.planned
    expected_s = sum(executor.expected_s(one) for plan in plans.values() for one in plan) / jobs
    if not yes and expected_s > ASK_ABOVE_S and sys.stdin.isatty() and sys.stderr.isatty():
        count = sum(map(len, plans.values()))
        click.confirm(f"{count} runs, up to {worded_span(expected_s)}. Go on?", abort=True, err=True)
    found.store.write_study(found.study, twin=True)
    outcomes: list[Outcome] = []
    for clock, plan in plans.items():
        told.print(f"{clock} clock:")
        with observer_on(told) as observer:
            outcomes.append(
                run_plan(
                    plan,
                    found.store,
                    executor,
                    observer,
                    1 if clock == "real" else jobs,
                    forecast if clock == "wall" else None,
                )
            )
        if outcomes[-1].interrupted:
            told.print("interrupted: finished runs are kept; the same command goes on")
            return INTERRUPTED
    compared = Twin(found.study, found.store)
    page = None
    if compared.results and with_report:
        from twinnet.report.twin_report import write_twin_report

        page = write_twin_report(compared, found.store.folder / "report")
    elif compared.results:
        found.store.write_twin(twin_frame(compared))
    tell_twin(compared, page, as_json)
    failed = [run for outcome in outcomes for run in outcome.failed]
    for run in failed:
        told.print(f"The run {run.id} failed: {run.record['error']['message']}")
    return 1 if failed else 0


def tell_twin(compared: Twin, page: Path | None, as_json: bool) -> None:
    """Print the comparison."""
    from rich.console import Console

    from twinnet.report.twin_report import print_twin, twin_record

    if as_json:
        record: dict[str, Any] = {**twin_record(compared), "page": None if page is None else str(page)}
        print_json(record)
        return
    print_twin(compared, Console(highlight=False, width=None if sys.stdout.isatty() else 160))
    if page is not None:
        click.echo(f"\nReport: {page}")
