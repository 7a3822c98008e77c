"""``twinnet validate``: the simulation against theory."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from twinnet.cli.apart import need_apart
from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE

__all__ = ["validate"]


@click.command(short_help="Check the simulation against laws of queueing, of chance and of TCP.")
@click.option("--quick", is_flag=True, help="Fewer settings and samples: seconds instead of minutes.")
@click.option("--only", multiple=True, metavar="LAW", help="This law; may be given again. Default: all.")
@click.option(
    "--markdown",
    type=FILE,
    metavar="FILE",
    help="Write a page, and its figures into the folder images beside FILE's.",
)
@json_option
def validate(quick: bool, only: tuple[str, ...], markdown: Path | None, as_json: bool) -> int:
    """Run experiments on the virtual clock for which theory has an answer, and print what was expected and what was
    seen.

    Needs the package twinnet-conformance, and no privileges. Exit status 1 when anything lies outside of its tolerance.
    """
    need_apart("twinnet_validation")
    from twinnet_validation.laws import LAWS, measured
    from twinnet_validation.table import print_findings, records

    from twinnet.errors import did_you_mean

    known = {law.name: law for law in LAWS}
    for name in only:
        if name not in known:
            raise click.UsageError(f"there is no law {name!r}: {did_you_mean(name, known)}")
    if markdown is not None and only:
        raise click.UsageError("a page has all laws: leave out --only or --markdown")
    findings = measured([law for law in LAWS if not only or law.name in only], quick)
    if markdown is not None:
        from twinnet_validation.figures import draw_figures
        from twinnet_validation.page import page

        markdown.parent.mkdir(parents=True, exist_ok=True)
        images = markdown.parent.parent / "images"
        images.mkdir(parents=True, exist_ok=True)
        draw_figures(images, quick)
        markdown.write_text(page(findings, quick), encoding="utf-8")
    if as_json:
        print_json(records(findings))
    else:
        from twinnet.report.console import text_console

        print_findings(findings, text_console(width=None if sys.stdout.isatty() else 160))
    return 0 if all(row.passed for _, rows in findings for row in rows) else 1
