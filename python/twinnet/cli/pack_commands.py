"""``twinnet pack`` and ``twinnet check``."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE, FOLDER, run_code_option

if TYPE_CHECKING:
    from twinnet.report.pack_check import CheckedPack

__all__ = ["check", "pack"]

_MOST_TOLD = 30
_VERDICTS = {
    "differs": "It does not hold.",
    "holds": "It holds: every run does the same again.",
    "holds in part": "It holds for the runs that were made again. The others are unchanged since it was packed.",
    "unchanged": "Unchanged since it was packed. No run was made again: what was changed before that is not found.",
}


@click.command(short_help="Pack results into one file that others can check.")
@click.argument("results", type=FOLDER)
@click.option("--out", type=FILE, metavar="FILE", help="The pack; default: STUDY.zip.")
@run_code_option
@json_option
def pack(results: Path, out: Path | None, as_json: bool) -> None:
    """Pack RESULTS, a folder that `twinnet run` wrote: the study with the files beside it, each run's record, seed and
    tables, versions, and the hash of each file. `twinnet check` checks it."""
    from twinnet.report.pack import write_pack
    from twinnet.report.unpacked import hash_of

    written = write_pack(results, out if out is not None else Path(f"{results.resolve().name}.zip"))
    if as_json:
        print_json({"pack": str(written), "bytes": written.stat().st_size, "sha256": hash_of(written)})
    else:
        click.echo(f"{written}: {written.stat().st_size / 1e6:.3g} MB. Check it: twinnet check {written}")
        click.echo(f"SHA-256, to be told beside it: {hash_of(written)}")


def _size(_: click.Context, __: click.Parameter, given: str | None) -> int | None:
    from twinnet.errors import BadQuantity
    from twinnet.units import size_bytes

    try:
        return None if given is None else size_bytes(given)
    except BadQuantity as error:
        raise click.BadParameter(str(error)) from None


@click.command(short_help="Check a pack of results, and make some of its runs again.")
@click.argument("pack_file", metavar="PACK", type=FILE)
@click.option(
    "--runs",
    type=click.IntRange(0, 100_000),
    default=3,
    show_default=True,
    metavar="N",
    help="How many runs on the virtual clock are made again, drawn at random.",
)
@click.option(
    "--seed", type=click.IntRange(0, (1 << 63) - 1), metavar="N", help="Draw the runs by this; default: by the machine."
)
@click.option(
    "--most", callback=_size, metavar="SIZE", help="What PACK may unpack to, such as '20 GB'; default: 4 GiB."
)
@click.option(
    "--into",
    type=FOLDER,
    metavar="DIR",
    help="Keep the results in this new folder; default: they are removed.",
)
@run_code_option
@json_option
def check(pack_file: Path, runs: int, seed: int | None, most: int | None, into: Path | None, as_json: bool) -> int:
    """Check PACK: the hash of each file, whether its runs are those of its study, whether tables that say the same
    agree, whether they come to what it says, and whether some of its runs, made again, do the same event by event.

    The status is 1 if anything differs. Python and programs that the study brings are run only with --run-code. Other
    runs than those that are made again may have been changed before they were packed: it is told how probable it is to
    miss that.
    """
    from twinnet.errors import BadValue
    from twinnet.report.pack_check import check_pack
    from twinnet.study.execute import LabExecutor

    if into is not None and into.exists():
        raise BadValue(f"{into} exists already", "name a new folder")
    with tempfile.TemporaryDirectory() as scratch:
        folder = into if into is not None else Path(scratch) / "pack"
        folder.mkdir(parents=True)
        found = check_pack(pack_file, folder, runs, LabExecutor(), seed, most)
    if as_json:
        record = dataclasses.asdict(found)
        print_json({"made_again": record.pop("again"), **record, "verdict": found.verdict})
    else:
        _tell(found)
    return 1 if found.wrong else 0


def _tell(found: CheckedPack) -> None:
    from twinnet.report.wording import counted

    click.echo(f"{found.study}: {found.files} files as they were packed, {counted(found.runs, 'run')}")
    click.echo(f"SHA-256 of the pack: {found.sha256}")
    for note in found.notes:
        click.echo(f"Note: {note}.")
    if found.again:
        click.echo(f"Made again, the same event by event (--seed {found.seed}): {', '.join(found.again)}")
    if found.missed:
        words = ", ".join(f"{one.changed} changed with {100 * one.probability:.2g} %" for one in found.missed)
        click.echo(
            f"{len(found.again)} of {found.runs} runs were made again. The probability to miss what was changed before "
            f"the pack was made: {words}. All of them: --runs {found.runs}"
        )
    for one in found.wrong[:_MOST_TOLD]:
        click.echo(f"Differs: {one}.", file=sys.stderr)
    if len(found.wrong) > _MOST_TOLD:
        click.echo(f"Differs: {len(found.wrong) - _MOST_TOLD} more; --json has all.", file=sys.stderr)
    click.echo(_VERDICTS[found.verdict])
