"""Published figures beside what was measured, table by table as they were published: for the page, a CSV file and the
terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from twinnet.report.design import is_wide
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import common_scale, counted, percent_apart, value_with_interval, worded_value
from twinnet.study.analysis import Analysis
from twinnet.study.published_results import AS_PUBLISHED_SHARE, PublishedResult

__all__ = ["NOTE", "published_figures", "published_frame", "published_rows", "published_sentence", "published_tables"]

HEAD = ("Quantity", "Published (scaled to this study)", "Measured here", "Difference", "")
NOTE = (
    f"As published: the figures differ by at most {100 * AS_PUBLISHED_SHARE:g} %. Comparable: Welch's t test does not"
    " tell them apart at 5 %. Plus and minus: the published standard deviation."
)


def published_rows(results: Sequence[PublishedResult]) -> list[tuple[str, ...]]:
    """For each figure what it is, the published value, what was measured, the difference and what it says."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        scale = common_scale([one.value, one.measured.estimate if one.measured else 0.0], one.unit)
        theirs = worded_value(one.value, one.unit, scale)
        if one.deviation >= 0:
            theirs += f" ± {worded_value(one.deviation, one.unit, scale)}"
        seen = value_with_interval(one.measured, one.unit, scale) if one.measured else f"not measured: {one.why}"
        apart = "" if math.isnan(one.difference) else percent_apart(one.difference)
        rows.append((one.published.text, theirs, seen, apart, one.word))
    return rows


def _by_table(results: Sequence[PublishedResult]) -> Mapping[tuple[str, str], list[PublishedResult]]:
    """The figures by the published table and the source that they are of."""
    tables: dict[tuple[str, str], list[PublishedResult]] = {}
    for one in results:
        source = one.published.source
        tables.setdefault((one.published.table, source if one.published.table else ""), []).append(one)
    return tables


def published_tables(analysis: Analysis) -> list[Table]:
    """A table of the page for each published table, and one for figures that stand in none."""
    tables: list[Table] = []
    for (title, source), results in _by_table(analysis.published).items():
        rows = [[Cell(text) for text in row] for row in published_rows(results)]
        head: list[str] = [*HEAD]
        if not title:
            head.append("Source")
            for row, one in zip(rows, results, strict=True):
                row.append(Cell(one.published.source))
        note = " ".join(part for part in (f"{source}." if source else "", NOTE) if part)
        tables.append(Table(head, rows, title=title, note=note))
    return tables


def published_figures(analysis: Analysis) -> list[Figure]:
    """A figure for each published table of two quantities or more that are of one kind and not negative: as published
    and as measured here."""
    figures: list[Figure] = []
    for number, ((title, source), every) in enumerate(_by_table(analysis.published).items(), 1):
        results = [(one, one.measured) for one in every if one.measured is not None]
        units = {one.unit for one, _ in results}
        if not title or len(results) < 2 or len(units) > 1 or any(min(one.value, m.estimate) < 0 for one, m in results):
            continue
        divisor, unit = common_scale([top for one, m in results for top in (one.value, m.estimate)], units.pop())
        theirs = [(one.value, one.value - one.deviation, one.value + one.deviation) for one, _ in results]
        ours = [(m.estimate, m.low, m.high) for _, m in results]
        places = np.arange(len(results), dtype=np.float64)
        lines = tuple(
            Line(label, places, *(np.array(values) / divisor).T)
            for label, values in (("published", theirs), ("here", ours))
        )
        every = [end for line in lines for part in (line.mean, line.low, line.high) for end in part]
        ends = [end for end in every if math.isfinite(end)]
        log = is_wide(ends)
        spread = " with their standard deviations" if any(one.deviation >= 0 for one, _ in results) else ""
        figures.append(
            Figure(
                f"published-table-{number}",
                title,
                f"The published figures{spread} ({source}), and what was measured here with its interval.",
                unit,
                max(ends) * (1.5 if log else 1.08) or 1.0,
                len(results) - 0.5,
                (Panel("", lines),),
                cases=tuple(one.published.text for one, _ in results),
                y_low=min(end for end in ends if end > 0) / 1.5 if log else min([0.0, *ends]),
                log=log,
            )
        )
    return figures


def published_frame(analysis: Analysis) -> pl.DataFrame:
    """Return a row for each published figure, in the units of its measurement."""
    rows: list[Mapping[str, object]] = []
    for one in analysis.published:
        seen, test = one.measured, one.test
        figure = {"table": one.published.table, "quantity": one.published.text, "source": one.published.source}
        theirs = {"unit": one.unit, "published": one.value, "deviation": one.deviation, "n": one.published.n}
        ours = {"measured": seen and seen.estimate, "low": seen and seen.low, "high": seen and seen.high}
        apart = {"difference": one.difference, "p": test and test.p_value, "word": one.word}
        rows.append({**figure, **theirs, **ours, "runs": one.runs, **apart})
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None) if rows else pl.DataFrame()


def published_sentence(analysis: Analysis) -> str:
    """How many figures are as published; empty where the study has none."""
    if not analysis.published:
        return ""
    words = Counter(one.word.partition(" (")[0] or "not measured" for one in analysis.published)
    said = ", ".join(f"{count} {'differ' if word == 'differs' else word}" for word, count in words.items())
    return f"Of {counted(len(analysis.published), 'published figure')}: {said}."
