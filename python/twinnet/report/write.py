"""Writes the whole report of a study: the page, figures and tables."""

from __future__ import annotations

from pathlib import Path

from twinnet.report.drawn import draw_figure
from twinnet.report.page import html_page, report_figures
from twinnet.report.tables import write_tables
from twinnet.study.analysis import Analysis
from twinnet.study.store import StoreError

__all__ = ["write_report"]


def write_report(analysis: Analysis, folder: Path) -> Path:
    """Write `report.html` and, beside it, figures (SVG, PDF, PNG) and tables (CSV, LaTeX); return the page's path.

    Raises
    ------
    StoreError
        There is nothing to report, or the folder cannot be written to.
    """
    if not analysis.stored:
        raise StoreError(
            f"{analysis.store.folder} holds no finished run of this study", "make them with `twinnet run` first"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [path for figure in report_figures(analysis) for path in draw_figure(figure, folder)]
        written += write_tables(analysis, folder)
        page = folder / "report.html"
        partial = folder / ".report.html.partial"
        partial.write_text(html_page(analysis, [path.name for path in written]), encoding="utf-8")
        partial.replace(page)
    except OSError as error:
        raise StoreError(
            f"the report cannot be written to {folder}: {error.strerror or error}", "choose --out"
        ) from error
    return page
