"""Published figures beside what was measured, table by table as they were published: for the page, a CSV file and the
terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from twinnet.report.design import is_wide
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import (
    common_scale,
    counted,
    percent_apart,
    value_with_interval,
    worded_value,
)
from twinnet.study.analysis import Analysis
from twinnet.study.published_results import ABOUT_SHARE, AS_PUBLISHED_SHARE, DIFFERS, WORDS, PublishedResult

__all__ = [
    "NOTE",
    "NOT_MEASURED",
    "count_words",
    "published_figures",
    "published_frame",
    "published_rows",
    "published_sentence",
    "published_tables",
]

HEAD = ("Quantity", "Published (scaled to this study)", "Measured here", "Difference", "")
NOTE = (
    f"As published: the figures differ by at most {100 * AS_PUBLISHED_SHARE:g} %, of one that is about so much"
    f" {100 * ABOUT_SHARE:g} %. Comparable: Welch's t test does not tell them apart at 5 %. Cannot be told: the"
    " interval holds the published figure or reaches out of what is allowed, or the runs give no interval that would"
    " show a difference. Plus and minus: the standard deviation, of what was measured here that of the values within a"
    " run, the mean over runs."
)
NOT_MEASURED = "not measured"
_LEAST_BESIDE = 0.1
"""A smaller number in the unit of the one beside it has a unit of its own, for the digits of its interval."""
_SENSES = {"exact": "", "about": "about ", "below": "below ", "above": "above "}
_SENSE_OF_CASE = {"exact": "{}", "about": "{} (about)", "below": "{} (below)", "above": "{} (above)"}


def published_rows(results: Sequence[PublishedResult]) -> list[tuple[str, ...]]:
    """For each figure what it is, the published value, what was measured, the difference and what it says."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        known = [one.value, *([one.measured.estimate] if one.measured else [])]
        # One unit for both, unless one of them would be too small a number in it.
        both = common_scale(known, one.unit)
        alike = all(value == 0 or abs(value) >= _LEAST_BESIDE * both[0] for value in known)
        scale = both if alike else common_scale(known[:1], one.unit)
        theirs = _SENSES[one.published.sense] + worded_value(one.value, one.unit, scale)
        if one.is_range:
            theirs = f"{theirs.removesuffix(f' {scale[1]}')} to {worded_value(one.top, one.unit, scale)}"
        if one.deviation >= 0:
            theirs += f" ± {worded_value(one.deviation, one.unit, scale)}"
        seen = f"{NOT_MEASURED}: {one.why}"
        if one.shown is not None:
            seen = value_with_interval(one.shown, one.unit, both if alike else None)
            if one.spread >= 0:
                seen += f" ± {worded_value(one.spread, one.unit, both if alike else None)}"
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
    """A figure for each published table of two quantities or more that are of one kind: as published and as measured
    here."""
    figures: list[Figure] = []
    for number, ((title, source), every) in enumerate(_by_table(analysis.published).items(), 1):
        results = [(one, one.shown) for one in every if one.shown is not None]
        units = {one.unit for one, _ in results}
        if not title or len(results) < 2 or len(units) > 1:
            continue
        divisor, unit = common_scale([top for one, m in results for top in (one.value, m.estimate)], units.pop())
        theirs = [_as_drawn(one) for one, _ in results]
        ours = [(m.estimate, m.low, m.high) for _, m in results]
        ratios = [1 + value for part in (*theirs, *ours) for value in part[:1]]
        if is_wide(ratios) and all(one.published.over for one, _ in results):
            # Minus 20 % and plus 6000 % are 0.8 and 61 on a logarithmic axis, and next to nothing on one of shares.
            divisor, unit = 1.0, "ratio"
            theirs, ours = ([(1 + mean, 1 + low, 1 + high) for mean, low, high in part] for part in (theirs, ours))
        places = np.arange(len(results), dtype=np.float64)
        lines = tuple(
            Line(label, places, *(np.array(values) / divisor).T)
            for label, values in (("published", theirs), ("here", ours))
        )
        every = [end for line in lines for part in (line.mean, line.low, line.high) for end in part]
        ends = [end for end in every if math.isfinite(end)]
        log = is_wide(ends)
        spread = " with their standard deviations" if any(one.deviation >= 0 for one, _ in results) else ""
        low = min([0.0, *ends])
        figures.append(
            Figure(
                f"published-table-{number}",
                title,
                f"The published figures{spread} ({source}), and what was measured here with its interval.",
                unit,
                max([0.0, *ends]) * (1.5 if log else 1.08) or (-0.08 * low or 1.0),
                len(results) - 0.5,
                (Panel("", lines),),
                cases=tuple(_SENSE_OF_CASE[one.published.sense].format(one.published.text) for one, _ in results),
                y_low=min(end for end in ends if end > 0) / 1.5 if log else 1.08 * low,
                log=log,
            )
        )
    return figures


def _as_drawn(one: PublishedResult) -> tuple[float, float, float]:
    """The point of a published figure, and the ends of its bar: of a deviation, a range, or what a bound permits."""
    if one.is_range:
        return (one.value + one.top) / 2, one.value, one.top
    if one.published.sense == "below":
        return one.value, one.ends[0] if math.isfinite(one.ends[0]) else one.value, one.value
    if one.published.sense == "above":
        return one.value, one.value, one.ends[1] if math.isfinite(one.ends[1]) else one.value
    return one.value, one.value - one.deviation, one.value + one.deviation


def published_frame(analysis: Analysis) -> pl.DataFrame:
    """Return a row for each published figure, in the units of its measurement."""
    rows: list[Mapping[str, object]] = []
    for one in analysis.published:
        seen, test = one.shown, one.test
        figure = {"table": one.published.table, "quantity": one.published.text, "source": one.published.source}
        theirs = {"unit": one.unit, "sense": one.published.sense, "published": one.value, "to": one.top}
        theirs |= {"deviation": one.deviation, "n": one.published.n}
        ours = {"measured": seen and seen.estimate, "low": seen and seen.low, "high": seen and seen.high}
        ours |= {"measured_deviation": one.spread}
        apart = {"difference": one.difference, "p": test and test.p_value, "word": one.word}
        rows.append({**figure, **theirs, **ours, "runs": one.runs, **apart})
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None) if rows else pl.DataFrame()


def count_words(results: Iterable[PublishedResult]) -> dict[str, int]:
    """The numbers of figures of which each of `WORDS` is said, and of those that were not measured; without those that
    are none."""
    found = Counter(one.word.partition(" (")[0] or NOT_MEASURED for one in results)
    return {word: found[word] for word in (*WORDS, NOT_MEASURED) if found[word]}


def published_sentence(analysis: Analysis) -> str:
    """How many figures are as published; empty where the study has none."""
    if not analysis.published:
        return ""
    words = count_words(analysis.published)
    said = ", ".join(f"{count} {'differ' if word == DIFFERS else word}" for word, count in words.items())
    return f"Of {counted(len(analysis.published), 'published figure')}: {said}."
