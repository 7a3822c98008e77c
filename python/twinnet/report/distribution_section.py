"""The distribution of a measurement's values: a table, and the values over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import common_scale, worded_levels, worded_value
from twinnet.study.analysis import Analysis
from twinnet.study.distributions import Described
from twinnet.study.specification import StudySpecification

__all__ = ["DISTRIBUTIONS_NOTE", "distribution_frame", "distribution_tables", "value_figures"]

_BINS = 125


DISTRIBUTIONS_NOTE = (
    "Statistics of the values within a run, each as its mean over the runs. Normality by the Anderson-Darling test at "
    "5 %, run by run; values that follow each other closely are not independent."
)


def distribution_tables(found: Sequence[Described], specification: StudySpecification) -> list[Table]:
    """A table for each measurement of which `found` tells."""
    tables: list[Table] = []
    for name, measurement in specification.measurements.items():
        rows = [one for one in found if one.measurement == name]
        if not rows:
            continue
        means = [one.statistics["mean"].estimate for one in rows if "mean" in one.statistics]
        divisor, unit = common_scale(means, rows[0].unit)
        names = label_names(specification, measurement)
        body: list[list[Cell]] = []
        for one in rows:
            cells = [
                f"{one.statistics[statistic].estimate / divisor:.4g}" if statistic in one.statistics else ""
                for statistic in ("mean", "min", "max", "std")
            ]
            variance = one.statistics.get("variance")
            cells.append("" if variance is None else f"{variance.estimate / divisor**2:.4g}")
            words = [worded_levels(one.levels), names.get(one.label, one.label), str(one.values), *cells, one.normality]
            body.append([Cell(word) for word in words])
        head = ["Levels", "Of", "Values", f"Mean ({unit})", "Least", "Greatest", "Deviation", f"Variance ({unit}²)"]
        tables.append(Table([*head, "Normal distribution"], body, 2, measurement_title(name, measurement)))
    return tables


def distribution_frame(found: Sequence[Described]) -> pl.DataFrame:
    """One row for each measurement and combination of levels, in the measurement's unit."""
    rows = [
        {"measurement": one.measurement, **{f"factor_{name}": level for name, level in one.levels.items()}}
        | {"label": one.label, "unit": one.unit, "runs": one.runs, "values": one.values}
        | {name: interval.estimate for name, interval in one.statistics.items()}
        | {"normality": one.normality}
        for one in found
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def value_figures(analysis: Analysis) -> list[Figure]:
    """The values of every packet over time, of each measurement that is to be described; throughputs have figures of
    their own."""
    figures: list[Figure] = []
    for name, measurement in analysis.specification.measurements.items():
        if not measurement.describe or measurement.is_series:
            continue
        unit = measurement.unit
        panels: list[Panel] = []
        for levels in analysis.combinations:
            lines = [
                line
                for label, filters in analysis.labels(name)
                if (line := _line(analysis, name, levels, label, filters)) is not None
            ]
            if lines:
                panels.append(Panel(worded_levels(levels), tuple(lines)))
        if not panels:
            continue
        top = max(float(np.nanmax(line.high)) for panel in panels for line in panel.lines)
        divisor, worded = common_scale([top], unit)
        scaled = tuple(
            Panel(
                panel.title,
                tuple(
                    Line(one.label, one.time_s, one.mean / divisor, one.low / divisor, one.high / divisor)
                    for one in panel.lines
                ),
            )
            for panel in panels
        )
        caption = (
            f"{measurement.text or name}, of every packet of the first run, over {analysis.end_s / _BINS:.3g} s each. "
            f"Lines: mean. Bands: least and greatest, which is at most {worded_value(top, unit)}."
        )
        title = f"{measurement_title(name, measurement)} over time"
        figures.append(
            Figure(
                f"values-{name}", title, caption, worded, top / divisor * 1.08, analysis.end_s, scaled, (), "time (s)"
            )
        )
    return figures


def _line(
    analysis: Analysis, name: str, levels: dict[str, str], label: str, filters: tuple[tuple[str, str], ...]
) -> Line | None:
    for run in analysis.runs_at(levels)[:1]:
        try:
            times, values = run.values(name, filters)
        except LookupError:
            return None
        place = np.clip((times / max(analysis.end_s, 1e-12) * _BINS).astype(np.int64), 0, _BINS - 1)
        filled, first = np.unique(place, return_index=True)
        order = np.argsort(place, kind="stable")
        sorted_values = values[order]
        first = np.searchsorted(place[order], filled)
        counts = np.diff(np.append(first, values.size))
        return Line(
            label,
            (filled + 0.5) * analysis.end_s / _BINS,
            np.add.reduceat(sorted_values, first) / counts,
            np.minimum.reduceat(sorted_values, first),
            np.maximum.reduceat(sorted_values, first),
        )
    return None
