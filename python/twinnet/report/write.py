"""Writes the whole report of a study: the page, figures and tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from twinnet.report.drawn import draw_figure
from twinnet.report.page import html_page, report_figures
from twinnet.report.panels import Figure
from twinnet.report.tables import write_tables
from twinnet.study.analysis import Analysis
from twinnet.study.store import StoreError

__all__ = ["expected_report_s", "write_report"]

_DRAWN = 3
"""Of the figures, so many are drawn to learn how long one takes; the first loads what draws them, too."""
_BESIDE_PANELS = 1.2
"""What drawing takes beside the panels, as if it were panels: 38 figures of three studies took 0.55 s, and 0.45 s more
for each panel, on a busy machine."""


def write_report(analysis: Analysis, folder: Path, recordings: Mapping[str, str] | None = None) -> Path:
    """Write `report.html` and, beside it, figures (SVG, PDF, PNG) and tables (CSV, LaTeX); return the page's path.

    Parameters
    ----------
    analysis
        The study with its runs.
    folder
        Where all is written.
    recordings
        Pages of single runs in `folder`, by the names of these; the report leads to them.

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
        partial.write_text(html_page(analysis, [path.name for path in written], recordings), encoding="utf-8")
        partial.replace(page)
    except OSError as error:
        raise StoreError(
            f"the report cannot be written to {folder}: {error.strerror or error}", "choose --out"
        ) from error
    return page


def expected_report_s(analysis: Analysis, runs: int) -> float:
    """Return about how much processor time it takes to answer and to write the report of so many runs, in seconds, by
    those that `analysis` has: some of their figures are drawn, and nothing is kept."""
    moments = [time.process_time()]
    figures = sorted(report_figures(analysis), key=_size)
    moments.append(time.process_time())
    html_page(analysis)
    moments.append(time.process_time())
    with TemporaryDirectory(prefix="twinnet-") as folder:
        for figure in figures[:_DRAWN]:
            draw_figure(figure, Path(folder))
            moments.append(time.process_time())
    read_s, page_s, *drawn_s = [after - before for before, after in pairwise(moments)]
    pace_s = sum(drawn_s[1:]) / sum(map(_size, figures[1:_DRAWN])) if len(drawn_s) > 1 else 0.0
    left_s = pace_s * sum(map(_size, figures[_DRAWN:]))
    # Reading and comparing takes as long as there are runs.
    return read_s * runs / len(analysis.stored) + page_s + sum(drawn_s) + left_s


def _size(figure: Figure) -> float:
    return _BESIDE_PANELS + len(figure.panels)
