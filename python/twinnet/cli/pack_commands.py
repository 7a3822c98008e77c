"""``twinnet pack`` and ``twinnet check``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE, FOLDER

__all__ = ["check", "pack"]


@click.command(short_help="Pack results into one file that others can check.")
@click.argument("results", type=FOLDER)
@click.option("--out", type=FILE, metavar="FILE", help="The pack; default: STUDY.zip.")
@json_option
def pack(results: Path, out: Path | None, as_json: bool) -> None:
    """Pack RESULTS, a folder that `twinnet run` wrote: the study with the files beside it, each run's record, seed and
    tables, versions, and the hash of each file. `twinnet check` checks it."""
    from twinnet.report.pack import write_pack

    written = write_pack(results, out if out is not None else Path(f"{results.resolve().name}.zip"))
    if as_json:
        print_json({"pack": str(written), "bytes": written.stat().st_size})
    else:
        click.echo(f"{written}: {written.stat().st_size / 1e6:.3g} MB. Check it: twinnet check {written}")


@click.command(short_help="Check a pack of results, and make some of its runs again.")
@click.argument("pack_file", metavar="PACK", type=FILE)
@click.option(
    "--runs",
    type=click.IntRange(0, 100_000),
    default=3,
    show_default=True,
    metavar="N",
    help="How many runs on the virtual clock are made again.",
)
@click.option(
    "--into",
    type=FOLDER,
    metavar="DIR",
    help="Keep the results in this new folder; default: they are removed.",
)
@json_option
def check(pack_file: Path, runs: int, into: Path | None, as_json: bool) -> int:
    """Check PACK: the hash of each file, whether its tables come to what it says, and whether some of its runs, made
    again, do the same event by event.

    The status is 1 if anything differs. The study's own Python files in the pack are run.
    """
    from twinnet.errors import BadValue
    from twinnet.report.pack import check_pack
    from twinnet.study.execute import LabExecutor

    if into is not None and into.exists():
        raise BadValue(f"{into} exists already", "name a new folder")
    with tempfile.TemporaryDirectory() as scratch:
        folder = into if into is not None else Path(scratch) / "pack"
        folder.mkdir(parents=True)
        found = check_pack(pack_file, folder, runs, LabExecutor())
    if as_json:
        print_json(
            {
                "study": found.study,
                "made_by": found.made_by,
                "files": found.files,
                "runs": found.runs,
                "made_again": found.again,
                "wrong": found.wrong,
                "notes": found.notes,
            }
        )
    else:
        click.echo(f"{found.study}: {found.files} files as they were packed, {found.runs} runs")
        for note in found.notes:
            click.echo(f"Note: {note}.")
        if found.again:
            click.echo(f"Made again, the same event by event: {', '.join(found.again)}")
        for one in found.wrong:
            click.echo(f"Differs: {one}.", file=sys.stderr)
        click.echo("It does not hold." if found.wrong else "It holds.")
    return 1 if found.wrong else 0
