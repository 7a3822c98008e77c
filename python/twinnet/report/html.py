"""The parts that every page of a report is made of: the frame that carries style, script and data, tables, figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from twinnet.report.interactive import plotly_source, script_json, traces_of_panel
from twinnet.report.panels import Figure

__all__ = ["figure_sections", "footer", "table", "whole_page"]

_HERE = Path(__file__).parent


def whole_page(title: str, body: Iterable[str], panels: dict[str, Any]) -> str:
    """The page with the parts `body`, which are HTML already, and the data of its figures by the id of each plot."""
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f'\n</main>\n<script type="application/json" id="panels">{script_json(panels)}</script>\n'
        + f"<script>{plotly_source()}</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def figure_sections(figures: Iterable[Figure], panels: dict[str, Any], after_title: str = "") -> list[str]:
    """A section for each figure; the data of its plots is added to `panels`."""
    sections: list[str] = []
    for figure in figures:
        cells: list[str] = []
        for place, panel in enumerate(figure.panels):
            key = f"{figure.name}-{place}"
            panels[key] = traces_of_panel(figure, panel)
            label = f"{figure.title}, {panel.title}"
            cells.append(
                f"<div class='panel'><h3>{escape(panel.title)}</h3>"
                f"<div class='plot' id='{escape(key)}' role='img' aria-label='{escape(label)}'></div></div>"
            )
        sections.append(
            f"<section><h2>{escape(figure.title)}{after_title}</h2><figure><div class='panels'>{''.join(cells)}</div>"
            f"<figcaption>{escape(figure.caption)}</figcaption></figure></section>"
        )
    return sections


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right_from: int = 99) -> str:
    """A table; cells are HTML already. Columns from `right_from` on are aligned right."""

    def cell(tag: str, place: int, content: str) -> str:
        return f"<{tag} class='right'>{content}</{tag}>" if place >= right_from else f"<{tag}>{content}</{tag}>"

    top = "".join(cell("th", place, content) for place, content in enumerate(head))
    lines = ["".join(cell("td", place, content) for place, content in enumerate(row)) for row in rows]
    inner = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{inner}</tbody></table></div>"


def footer(files: Sequence[str]) -> str:
    """The end of a page; `files` are the names of figures and tables that stand beside it."""
    links = ", ".join(f"<a href='{escape(name)}'>{escape(name)}</a>" for name in files)
    beside = f"<p class='soft'>Figures and tables beside this page: {links}.</p>" if links else ""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<footer>{beside}<p class='soft'>Made by twinnet, {made}. The page needs no network.</p></footer>"
