"""``twinnet figure``: any figure of a report, as the reader wants it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE, FOLDER, run_code_option, with_invalid_option

__all__ = ["figure"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?) ?(mm|in)")
_MM_OF_AN_INCH = 25.4


@click.command(short_help="Draw a figure of results: axes, colours, levels, size.")
@click.argument("results", type=FOLDER)
@click.argument("name", required=False)
@click.option(
    "--out", type=FILE, metavar="FILE",
    help="The file: .pdf, .svg or .png; default: NAME.pdf.",
)  # fmt: skip
@click.option("--axis", metavar="FACTOR", help="The factor on the axis.")
@click.option("--colour", metavar="FACTOR", help="The factor that has colours; `label` for kinds of traffic; or none.")
@click.option("--panels", metavar="FACTOR[,FACTOR]", help="The factors that make panels.")
@click.option(
    "--where", multiple=True, metavar="FACTOR=LEVEL[,LEVEL]", help="Show these levels only. May be given several times."
)
@click.option("--log/--linear", default=None, help="A logarithmic axis of values, or not; default: as values differ.")
@click.option(
    "--order", type=click.Choice(["file", "value"]), default="file", show_default=True,
    help="The order of the levels on the axis: that of the study, or by what was measured.",
)  # fmt: skip
@click.option("--kind", type=click.Choice(["dots", "grid"]), help="Points, or a grid of numbers; default: by how many.")
@click.option("--size", metavar="WxH", help="Width and height, such as 88x60mm or 3.5x2.4in.")
@click.option("--columns", type=click.IntRange(1, 12), metavar="N", help="How many panels stand beside each other.")
@with_invalid_option
@run_code_option
@json_option
def figure(
    results: Path,
    name: str | None,
    out: Path | None,
    axis: str | None,
    colour: str | None,
    panels: str | None,
    where: Sequence[str],
    log: bool | None,
    order: Literal["file", "value"],
    kind: Literal["dots", "grid"] | None,
    size: str | None,
    columns: int | None,
    with_invalid: bool,
    as_json: bool,
) -> None:
    """Draw the figure NAME of RESULTS, a folder that `twinnet run` wrote. Without NAME, list the figures.

    What you leave out follows from the design of the study: the factor that its answer is about stands on the axis, the
    next has colours, the others make panels.
    """
    from twinnet.errors import BadValue
    from twinnet.report.chosen import chosen_figure, figure_titles
    from twinnet.report.design import Choice
    from twinnet.report.drawn import FORMATS, matplotlib_figure, save_figure
    from twinnet.report.text_table import table, terminal_columns
    from twinnet.study.analysis import analyse
    from twinnet.study.store import ResultStore

    analysis = analyse(ResultStore(results), with_invalid)
    if name is None:
        titles = figure_titles(analysis)
        if as_json:
            print_json(titles)
        else:
            click.echo(table(["figure", "shows"], [list(one) for one in titles.items()], terminal_columns()))
        return
    path = out if out is not None else Path(f"{name}.pdf")
    if path.suffix[1:] not in FORMATS:
        raise BadValue(f"figures are no {path.suffix or 'file without an ending'}", "write .pdf, .svg or .png")
    choice = Choice(axis, colour, _names(panels), _levels(where), log, order, kind)
    made = chosen_figure(analysis, name, choice)
    save_figure(matplotlib_figure(made, _inches(size), columns), path)
    if as_json:
        print_json({"figure": str(path), "title": made.title, "caption": made.caption})
    else:
        click.echo(f"{path}: {made.caption}")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(one.strip() for one in text.split(",") if one.strip())


def _levels(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    from twinnet.errors import BadValue

    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        factor, equals, levels = one.partition("=")
        if not equals or not levels:
            raise BadValue(f"--where {one} names no level", "write FACTOR=LEVEL, such as --where queue=codel,fifo")
        found[factor.strip()] = (*found.get(factor.strip(), ()), *(_names(levels) or ()))
    return found


def _inches(text: str | None) -> tuple[float, float] | None:
    from twinnet.errors import BadValue

    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadValue(f"{text!r} is no size of a figure", "write width x height: 88x60mm or 3.5x2.4in")
    unit = _MM_OF_AN_INCH if found[3] == "mm" else 1.0
    width, height = float(found[1]) / unit, float(found[2]) / unit
    if not (0.5 <= width <= 50 and 0.5 <= height <= 50):
        raise BadValue(f"a figure of {text} cannot be drawn", "take 13 to 1270 mm")
    return width, height
