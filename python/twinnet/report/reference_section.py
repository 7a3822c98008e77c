"""Published figures beside the measured ones: on the page, in the terminal, as a file, as figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from twinnet.report.design import is_wide
from twinnet.report.level_words import level_words
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import percent_apart
from twinnet.study.closeness import ComparedFigure, ReferenceTable
from twinnet.study.published_figures import Figure as PublishedFigure
from twinnet.study.specification import Factor

__all__ = ["closeness_sentences", "reference_figures", "reference_frame", "reference_record", "reference_view"]

_WORDS = {"mean": "Mean", "min": "Least", "max": "Greatest", "variance": "Variance", "std": "Standard deviation"}
_MARKS = {"closer": "✓ closer", "not told apart": "= not told apart", "farther": "✗ farther", "not comparable": "-"}
_STYLES = {"closer": "supported", "not told apart": "undecided", "farther": "not-supported", "not comparable": "soft"}


def closeness_sentences(found: ReferenceTable) -> list[str]:
    """For how many figures each clock is closer to the truth than the rival was."""
    truth, rival = found.reference.truth, found.reference.rival
    sentences: list[str] = []
    for clock in found.clocks:
        counts = found.counts(clock)
        total = sum(counts.values()) - counts["not comparable"]
        sentences.append(
            f"{clock.capitalize()} clock: of {total} published figures, {counts['closer']} are closer to {truth} here "
            f"than {rival} was, {counts['farther']} farther, {counts['not told apart']} not told apart by the digits "
            "that were printed."
        )
        if found.changes:
            counts = found.counts(clock, found.changes)
            total = sum(counts.values()) - counts["not comparable"]
            base = ", ".join(found.reference.baseline.values())
            sentences.append(
                f"{clock.capitalize()} clock, what the network changed (each figure minus that of {base}, whatever was "
                f"sent): of {total}, {counts['closer']} are closer, {counts['farther']} farther, "
                f"{counts['not told apart']} not told apart."
            )
    missing = max((found.counts(clock)["not comparable"] for clock in found.clocks), default=0)
    if missing:
        sentences.append(f"{missing} figures cannot be compared: not printed as a number, or not measured in all runs.")
    return sentences


def _groups(found: ReferenceTable, rows: Sequence[ComparedFigure]) -> list[tuple[str, str, list[ComparedFigure]]]:
    """The rows by metric and statistic, in the order of the study and of the file."""
    groups: dict[tuple[str, str], list[ComparedFigure]] = {}
    for row in rows:
        groups.setdefault((row.figure.metric, row.figure.statistic), []).append(row)
    order = list(found.reference.metrics)
    ordered = sorted(groups.items(), key=lambda one: (order.index(one[0][0]), list(_WORDS).index(one[0][1])))
    return [(metric, statistic, rows) for (metric, statistic), rows in ordered]


def reference_view(found: ReferenceTable | None) -> dict[str, object] | None:
    """Return the contents of the page's section: counts, then a table for each metric and statistic with the physics
    behind it."""
    if found is None or not found.clocks:
        return None
    reference = found.reference
    base = ", ".join(reference.baseline.values())
    changes = [_count_table(found, found.changes), *_tables(found, found.changes)] if found.changes else []
    return {
        "source": f"{reference.source}. {reference.text}",
        "sentences": closeness_sentences(found),
        "counts": _count_table(found, found.rows),
        "tables": _tables(found, found.rows),
        "change_tables": changes,
        "changes_title": f"What the network changed: figures minus those of {base}",
    }


def _tables(found: ReferenceTable, shown: Sequence[ComparedFigure]) -> list[Table]:
    """A table for each metric and statistic; of changes, which may be next to nothing, without shares of them."""
    reference, shares = found.reference, shown is found.rows
    tables: list[Table] = []
    for metric, statistic, rows in _groups(found, shown):
        meant = reference.metrics[metric]
        unit = meant.unit + ("²" if statistic == "variance" else "")
        physics = {str(name): text for name, text in meant.physics.items()}.get(statistic, "")
        head = ["Case", reference.truth, reference.rival]
        for clock in found.clocks:
            head += [f"here, {clock}", *([f"from {reference.truth}"] if shares else []), f"than {reference.rival}"]
        title = f"{metric.capitalize()}: {_WORDS[statistic].lower()} ({unit})"
        tables.append(Table(head, [_cells(found, row, shares) for row in rows], 1, title, physics, 4))
    return tables


def _count_table(found: ReferenceTable, shown: Sequence[ComparedFigure]) -> Table:
    """Closer, not told apart and farther by metric (rows) and statistic (columns)."""
    groups = _groups(found, shown)
    statistics = [name for name in _WORDS if any(statistic == name for _, statistic, _ in groups)]
    rows: list[list[Cell]] = []
    for clock in found.clocks:
        for metric in found.reference.metrics:
            cells: list[Cell] = []
            for name in statistics:
                here = [row for group in groups if group[:2] == (metric, name) for row in group[2]]
                counts = found.counts(clock, here)
                cells.append(Cell(f"{counts['closer']} / {counts['not told apart']} / {counts['farther']}"))
            rows.append([Cell(f"{metric}, {clock} clock"), *cells])
    head = ["Closer / not told apart / farther", *(_WORDS[name] for name in statistics)]
    return Table(head, rows, 1)


def _cells(found: ReferenceTable, row: ComparedFigure, shares: bool) -> list[Cell]:
    figure = row.figure
    cells = [Cell(", ".join(figure.levels.values())), Cell(figure.truth.text), Cell(figure.rival.text)]
    for clock in found.clocks:
        measured = row.measured.get(clock)
        closeness = row.closeness[clock]
        cells.append(Cell("" if measured is None else _number(measured.estimate / figure.scale)))
        if shares:
            cells.append(Cell(_beside_truth(row, clock)))
        cells.append(Cell(_MARKS[closeness], kind=f"verdict {_STYLES[closeness]}"))
    return cells


def _beside_truth(row: ComparedFigure, clock: str) -> str:
    """By how much the figure differs from the published one, and what that says."""
    apart = row.difference(clock)
    return ", ".join(part for part in ("" if apart is None else percent_apart(apart), row.word(clock)) if part)


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4g}"


def _unit(found: ReferenceTable, figure: PublishedFigure, squared: str) -> str:
    return found.reference.metrics[figure.metric].unit + (squared if figure.statistic == "variance" else "")


def reference_frame(found: ReferenceTable) -> pl.DataFrame:
    """One row for each figure and clock, in the published unit."""
    rows = [
        {"metric": row.figure.metric, "statistic": row.figure.statistic}
        | {f"factor_{name}": level for name, level in row.figure.levels.items()}
        | {"unit": _unit(found, row.figure, "^2")}
        | {found.reference.truth: row.figure.truth.text, found.reference.rival: row.figure.rival.text}
        | {"clock": clock, "closeness": row.closeness[clock]}
        | {"difference": row.difference(clock), "word": row.word(clock)}
        | {
            part: getattr(row.measured[clock], source) / row.figure.scale if clock in row.measured else None
            for part, source in (("measured", "estimate"), ("low", "low"), ("high", "high"))
        }
        for row in found.rows
        for clock in found.clocks
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def reference_record(found: ReferenceTable | None) -> dict[str, object] | None:
    """The counts and rows as `--json` prints them."""
    if found is None:
        return None
    rows = [
        {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}
        for row in reference_frame(found).to_dicts()
    ]
    return {
        "source": found.reference.source,
        "truth": found.reference.truth,
        "rival": found.reference.rival,
        "counts": {clock: found.counts(clock) for clock in found.clocks},
        "counts_of_changes": {clock: found.counts(clock, found.changes) for clock in found.clocks},
        "figures": rows,
    }


def reference_figures(found: ReferenceTable | None, factors: Mapping[str, Factor]) -> list[Figure]:
    """For each metric a figure with a panel for each statistic: the cases below each other, in the words of the levels
    of `factors`."""
    if found is None or not found.clocks:
        return []
    figures: list[Figure] = []
    for metric, meant in found.reference.metrics.items():
        groups = [(statistic, rows) for group, statistic, rows in _groups(found, found.rows) if group == metric]
        if not groups:
            continue
        varied = _varied(groups[0][1])
        words = {one: level_words(factor) for one, factor in factors.items()}
        cases = [_case(row, varied, words) for row in groups[0][1]]
        drawn = [
            _panel(found, statistic, {_case(row, varied, words): row for row in rows}, cases)
            for statistic, rows in groups
            if statistic != "variance"
        ]
        values = [value for panel in drawn for line in panel.lines for value in line.mean if math.isfinite(value)]
        is_log = is_wide(values)
        figures.append(
            Figure(
                f"published-{metric}",
                f"{metric.capitalize()} beside published figures",
                f"Each case as published ({found.reference.source}) and as measured here, mean over repetitions."
                + (" Zeros stand at the left end." if is_log and 0 in values else ""),
                meant.unit,
                max(values, default=1.0) * 1.5,
                len(cases) - 0.5,
                tuple(_with_ends(panel, is_log) for panel in drawn),
                cases=tuple(cases),
                log=is_log,
            )
        )
    return figures


def _varied(rows: Sequence[ComparedFigure]) -> list[str]:
    """The factors whose levels differ between the cases."""
    factors = list(rows[0].figure.levels)
    return [name for name in factors if len({row.figure.levels[name] for row in rows}) > 1] or factors


def _case(row: ComparedFigure, factors: Sequence[str], words: Mapping[str, Mapping[str, str]]) -> str:
    return ", ".join(words[name].get(row.figure.levels[name], row.figure.levels[name]) for name in factors)


def _with_ends(panel: Panel, is_log: bool) -> Panel:
    """`panel` with an axis that ends where its own values do."""
    values = [value for line in panel.lines for value in line.mean if math.isfinite(value)]
    if is_log:
        above = [value for value in values if value > 0] or [1.0]
        return replace(panel, y_low=min(above) / 1.5, y_top=max(above) * 1.5)
    return replace(panel, y_low=min([0.0, *values]), y_top=max(values, default=0.0) * 1.08 or 1.0)


def _panel(found: ReferenceTable, statistic: str, by_case: Mapping[str, ComparedFigure], cases: Sequence[str]) -> Panel:
    ordered = [by_case[case] for case in cases if case in by_case]
    places = np.array([place for place, case in enumerate(cases) if case in by_case], dtype=np.float64)
    series = {
        found.reference.truth: [row.figure.truth.value for row in ordered],
        found.reference.rival: [row.figure.rival.value for row in ordered],
        **{
            f"here, {clock}": [row.measured[clock].estimate if clock in row.measured else None for row in ordered]
            for clock in found.clocks
        },
    }
    nothing = np.full(places.size, np.nan)
    lines = [
        Line(
            label,
            places,
            np.array(
                [
                    np.nan if value is None else value / row.figure.scale
                    for row, value in zip(ordered, values, strict=True)
                ]
            ),
            nothing,
            nothing,
        )
        for label, values in series.items()
    ]
    return Panel(_WORDS[statistic], tuple(lines))
