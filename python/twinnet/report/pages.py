"""Makes pages of templates: each carries its style, its script and its data, and opens without a network."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.report.colours import SHADES, rgb_of, shades_of
from twinnet.report.interactive import traces_of_panel
from twinnet.report.panels import Figure, Grid
from twinnet.shown_text import for_templates

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["FigureView", "figure_views", "render_page", "script_json"]

GridRow = tuple[str, list[tuple[str, str, str]]]
"""The words of a row, and of each cell its text, what is said of it, and its colour."""

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class FigureView:
    """A figure as a page shows it.

    Attributes
    ----------
    plots
        The id of each plot, its title, and its data and layout.
    grids
        The title of each grid, its columns, and its rows of cells: their text, what is said of it, and their colour.
    unit
        Of the numbers in grids.
    """

    title: str
    caption: str
    plots: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    grids: tuple[tuple[str, tuple[str, ...], list[GridRow]], ...] = ()
    unit: str = ""


def figure_views(figures: Iterable[Figure]) -> list[FigureView]:
    """Return the data that a page needs of `figures`."""
    return [_grids(figure) if figure.is_grid else _plots(figure) for figure in figures]


def _plots(figure: Figure) -> FigureView:
    plots = tuple(
        (f"{figure.name}-{place}", panel.title, traces_of_panel(figure, panel))
        for place, panel in enumerate(figure.panels)
    )
    return FigureView(figure.title, figure.caption, plots)


def _grids(figure: Figure) -> FigureView:
    grids = tuple(
        (panel.title, panel.grid.columns, _rows(panel.grid)) for panel in figure.panels if panel.grid is not None
    )
    return FigureView(figure.title, figure.caption, (), grids, figure.y_title)


def _rows(grid: Grid) -> list[GridRow]:
    rows: list[GridRow] = []
    for name, texts, titles, shades in zip(grid.rows, grid.texts, grid.titles, shades_of(grid.values), strict=True):
        colours = ["rgba({},{},{},{:.2f})".format(*rgb_of(SHADES[int(shade > 0)]), abs(shade)) for shade in shades]
        rows.append((name, list(zip(texts, titles, colours, strict=True))))
    return rows


def render_page(template: str, drawn: Sequence[FigureView], **context: Any) -> str:
    """Return the page that `template` makes of `context`.

    Parameters
    ----------
    template
        The name of a file of ``templates``.
    drawn
        All figures that the template shows: the page carries their data, and the script that draws them.
    """
    panels = {key: plot for figure in drawn for key, _, plot in figure.plots}
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page: str = _environment().get_template(template).render(
        **context,
        made=made,
        style=_read("page.css"),
        script=_read("page.js"),
        packet_script=_read("packets.js"),
        # Without figures there is nothing to draw, and no need for a megabyte of what draws.
        plotly=_read("plotly-basic.min.js").replace("</script", "<\\/script") if panels else "",
        panels=script_json(panels),
    )  # fmt: skip
    return page


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=for_templates,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def script_json(value: Any) -> str:
    """`value` as JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
