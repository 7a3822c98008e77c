"""``twinnet twin``: the same runs on both clocks, compared."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import yes_option
from twinnet.cli.study_commands import INTERRUPTED, ask_before_long, study_options, tell_on_the_side

if TYPE_CHECKING:
    from rich.console import Console

    from twinnet.study.campaign import Campaign
    from twinnet.study.runner import Observer
    from twinnet.study.twin import Twin

__all__ = ["run_twin", "tell_twin", "twin"]


@click.command(short_help="Make the runs of a study on both clocks and compare them.")
@study_options
@click.option("--real", "with_real", is_flag=True, help="Make the runs on the physical machines of the network too.")
@click.option("--models", "with_models", is_flag=True, help="Programs make the traffic; model hosts stand beside them.")
@click.option("--no-report", is_flag=True, help="Do not write the page and figures.")
@yes_option
@json_option
def twin(
    study: str,
    settings: dict[str, str],
    preset: str | None,
    repeat: int | None,
    out: Path,
    jobs: int,
    with_real: bool,
    with_models: bool,
    no_report: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make the runs of STUDY on the virtual clock and on the wall clock, with the same seeds, and compare them.

    With --real they are made on the network's physical machines as well; their means are shown beside those of both
    clocks. With --models real programs make the traffic on both clocks, and model hosts are run on the virtual clock
    too: what differs between the clocks is the machine's then, and the rest the model's. What the virtual clock says of
    the study's question is printed before the runs in real time begin. Finished runs are kept, also those that `twinnet
    run` made. Tolerances are stated in the study's block `twin`. Exit status 1 when a run failed.
    """
    from twinnet.study.campaign import Campaign

    campaign = Campaign.read_twin(
        study,
        out=out,
        preset=preset,
        settings=settings,
        repetitions=repeat,
        jobs=jobs,
        with_real=with_real,
        with_models=with_models,
        tell=tell_on_the_side,
    )
    return run_twin(campaign, not no_report, yes, as_json, with_real)


def run_twin(
    campaign: Campaign,
    with_report: bool = True,
    yes: bool = True,
    as_json: bool = False,
    with_real: bool = False,
) -> int:
    """Make the runs that `campaign` lacks on both clocks, and on physical machines `with_real`; print the comparison
    and return the exit status."""
    from twinnet.report.console import text_console
    from twinnet.report.progress import observer_on
    from twinnet.report.summary import print_answer
    from twinnet.study.twin import Twin
    from twinnet.study.twin_table import twin_frame

    console = text_console(stderr=True)
    ask_before_long(*campaign.twin_expected_s(with_real), yes)

    def observing(clock: str) -> AbstractContextManager[Observer]:
        if clock == "wall" and not as_json:
            print_answer(campaign.on("virtual").analysis(), _console())
        console.print(f"{clock} clock:")
        return observer_on(console)

    outcomes = campaign.make_twin(observing, with_real)
    if outcomes[-1].interrupted:
        console.print("interrupted: finished runs are kept; the same command goes on")
        return INTERRUPTED
    compared = Twin(campaign.study, campaign.store)
    page = None
    if compared.results and with_report:
        from twinnet.report.twin_report import write_twin_report

        page = write_twin_report(compared, campaign.folder / "report")
    elif compared.results:
        campaign.store.write_twin(twin_frame(compared))
    tell_twin(compared, page, as_json)
    failed = [run for outcome in outcomes for run in outcome.failed]
    for run in failed:
        console.print(f"The run {run.id} failed: {run.record['error']['message']}")
    return 1 if failed else 0


def _console() -> Console:
    from twinnet.report.console import text_console

    return text_console(width=None if sys.stdout.isatty() else 160)


def tell_twin(compared: Twin, page: Path | None, as_json: bool) -> None:
    """Print the comparison."""
    from twinnet.report.twin_report import print_twin, twin_record

    if as_json:
        record: dict[str, Any] = {**twin_record(compared), "page": None if page is None else str(page)}
        print_json(record)
        return
    print_twin(compared, _console())
    if page is not None:
        click.echo(f"\nReport: {page}")
