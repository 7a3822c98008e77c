"""``twinnet gather``, and what ``twinnet run --shard`` does: one study made by several machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FOLDER

if TYPE_CHECKING:
    from twinnet.study.campaign import Campaign
    from twinnet.study.gather import Gathered
    from twinnet.study.resolution import Study
    from twinnet.study.shard import Deal, PartOfPlan

__all__ = ["chosen_part", "gather", "run_part", "shard_options"]

_MOST_NAMED = 5

_Command = Callable[..., Any]


def shard_options(command: _Command) -> _Command:
    """Give `command` the options ``--shard``, ``--deal`` and ``--twice``."""
    shard = click.option(
        "--shard", metavar="K/N", help="Make part K of N parts of the runs, for several machines; see `twinnet gather`."
    )
    deal = click.option(
        "--deal",
        type=click.Choice(["run", "repetition"]),
        help="Deal single runs to the shards in turn, or whole repetitions; default: repetitions on the wall "
        "clock, runs on the virtual clock.",
    )
    twice = click.option(
        "--twice",
        metavar="SHARE",
        help="Make this share of the next shard's runs too, such as 2 %, so that `twinnet gather` compares the trace "
        "hashes of two machines; virtual clock only.",
    )
    return shard(deal(twice(command)))


def chosen_part(
    study: Study, shard: str | None, deal: Deal | None, twice: str | None, with_invalid: bool
) -> PartOfPlan | None:
    """Return the part of the plan that ``--shard``, ``--deal`` and ``--twice`` select; `None` without a shard.

    Raises
    ------
    BadValue
        The shard or the share cannot be read, or an option is given that has a meaning only with or only without it.
    """
    from twinnet.errors import BadValue
    from twinnet.study.shard import part_of

    if shard is None:
        if deal is not None:
            raise BadValue("--deal is given without --shard", "it says how runs are dealt to shards: --shard 3/16")
        if twice is not None:
            raise BadValue("--twice is given without --shard", "one machine has no other to be compared with")
        return None
    if with_invalid:
        raise BadValue("--with-invalid is given with --shard, which writes no report", "give it to `twinnet report`")
    return part_of(study, shard, deal, twice)


def run_part(campaign: Campaign, part: PartOfPlan, as_json: bool) -> int:
    """Make the runs of the campaign's `part`, write no report, and return the exit status."""
    from twinnet.cli.study_commands import INTERRUPTED
    from twinnet.report.console import text_console
    from twinnet.report.progress import observer_on

    console = text_console(stderr=True)
    console.print(part.sentence(), soft_wrap=True)
    with observer_on(console) as observer:
        outcome = campaign.make(observer)
    finished = len(outcome.finished) + len(outcome.skipped)
    if as_json:
        print_json(
            {
                "shard": str(part.shard),
                "deal": part.deal,
                "runs": [run.id for run in part.plan],
                "twice": [run.id for run in part.again],
                "finished": finished,
                "failed": [run.id for run in outcome.failed],
                "interrupted": outcome.interrupted,
                "results": str(campaign.folder),
            }
        )
    else:
        for run in outcome.failed:
            click.echo(f"The run {run.id} failed: {run.record['error']['message']}", err=True)
        if outcome.interrupted:
            click.echo("interrupted: finished runs are kept; the same command goes on", err=True)
        click.echo(f"Shard {part.shard}: {finished} of its {len(part.plan)} runs are finished, in {campaign.folder}")
    if outcome.interrupted:
        return INTERRUPTED
    return 1 if outcome.failed else 0


@click.command(short_help="Join the results that several machines or shards made.")
@click.argument("folders", type=FOLDER, nargs=-1, required=True, metavar="RESULTS...")
@click.option(
    "--out",
    type=FOLDER,
    default=Path("results"),
    show_default=True,
    help="Joined results go to DIR/STUDY.",
    metavar="DIR",
)
@json_option
def gather(folders: Sequence[Path], out: Path, as_json: bool) -> int:
    """Join RESULTS, folders of one study that `twinnet run --shard` wrote, into one that `twinnet report` reads.

    Results of different studies, changes or versions are refused. Of equal runs one is kept; equal runs on the virtual
    clock whose trace hashes differ are an error. Runs that were gathered before are kept, so the same command adds
    those made since. Exit status 1 when runs are missing or have failed.
    """
    from twinnet.study.gather import gather as join

    found = join(list(folders), out)
    if as_json:
        print_json(
            {
                "results": str(found.store.folder),
                "runs": len(found.planned),
                "finished": len(found.finished),
                "failed": found.failed,
                "missing": found.missing,
                "copied": found.copied,
                "equal": found.equal,
                "same_traces": found.same_traces,
                "others": found.others,
                "machines": found.machines,
            }
        )
    else:
        _tell(found)
    return 1 if found.missing or found.failed else 0


def _tell(found: Gathered) -> None:
    from twinnet.report.wording import counted

    made_on = f", made on {', '.join(found.machines)}" if found.machines else ""
    click.echo(f"{len(found.finished)} of {counted(len(found.planned), 'run')} are finished{made_on}")
    if found.equal:
        click.echo(f"{counted(found.equal, 'run')} made more than once; one of each is kept")
    if found.same_traces:
        click.echo(f"{counted(found.same_traces, 'trace hash', 'trace hashes')} compared: the same each time")
    if found.others:
        click.echo(f"{counted(found.others, 'run')} of other settings stayed where they are")
    for worded, runs in (("failed", found.failed), ("missing", found.missing)):
        if runs:
            more = f" and {len(runs) - _MOST_NAMED} more" if len(runs) > _MOST_NAMED else ""
            click.echo(f"{counted(len(runs), 'run')} {worded}: {', '.join(runs[:_MOST_NAMED])}{more}")
    if found.failed or found.missing:
        click.echo("make them with the same --shard where they belong, or here with `twinnet run`; then gather again")
    click.echo(f"Results: {found.store.folder}")
