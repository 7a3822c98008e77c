"""The distribution of a measurement's values: a table, and the values over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from twinnet.report.design import is_wide
from twinnet.report.level_words import case_words, level_words
from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import common_scale, worded_levels, worded_value
from twinnet.study.analysis import Analysis
from twinnet.study.distributions import Described
from twinnet.study.run_quantities import RunTables
from twinnet.study.specification import StudySpecification

__all__ = ["DISTRIBUTIONS_NOTE", "distribution_frame", "distribution_tables", "value_figures"]

_BINS = 125
_MOST_PANELS = 12
_OF_INTERVALS = {
    "delay": ("delay_mean_ms", 1e-3),
    "jitter_rfc4689": ("jitter_rfc4689_mean_ms", 1e-3),
    "jitter_rfc3550": ("jitter_rfc3550_ms", 1e-3),
}
"""The columns of `intervals` that tell a measurement over time, and their unit in the measurement's."""


DISTRIBUTIONS_NOTE = (
    "Statistics of the values within a run, each as its mean over the runs. Normality by the Anderson-Darling test at "
    "5 %, run by run; values that follow each other closely are not independent."
)


def distribution_tables(found: Sequence[Described], specification: StudySpecification) -> list[Table]:
    """A table for each measurement that `found` has."""
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
            powers = {"mean": 1, "min": 1, "max": 1, "std": 1, "variance": 2}
            cells = [
                _number(one.statistics[statistic].estimate / divisor**power) if statistic in one.statistics else ""
                for statistic, power in powers.items()
            ]
            levels = worded_levels(one.levels)
            levels += f" ({one.runs} of {one.runs + one.missing} runs)" if one.missing else ""
            words = [levels, names.get(one.label, one.label), str(one.values), *cells, one.normality]
            body.append([Cell(word) for word in words])
        head = ["Levels", "Of", "Values", f"Mean ({unit})", "Least", "Greatest", "Deviation", f"Variance ({unit}²)"]
        tables.append(Table([*head, "Normal distribution"], body, 2, measurement_title(name, measurement)))
    return tables


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinite"


def distribution_frame(found: Sequence[Described]) -> pl.DataFrame:
    """One row for each measurement and combination of levels, in the measurement's unit."""
    rows = [
        {"measurement": one.measurement, **{f"factor_{name}": level for name, level in one.levels.items()}}
        | {"label": one.label, "unit": one.unit, "runs": one.runs, "missing": one.missing}
        | {"values": one.values}
        | {name: interval.estimate for name, interval in one.statistics.items()}
        | {"normality": one.normality}
        for one in found
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def value_figures(analysis: Analysis) -> list[Figure]:
    """The values over time of each measurement that is to be described: of every packet where packets were kept, and
    elsewhere the mean of each interval that receivers counted. Throughputs have figures of their own."""
    measurements = analysis.specification.measurements
    described = [name for name, one in measurements.items() if one.describe and not one.is_series]
    return [figure for name in described if (figure := _value_figure(analysis, name)) is not None]


def _value_figure(analysis: Analysis, name: str) -> Figure | None:
    measurement = analysis.specification.measurements[name]
    names = label_names(analysis.specification, measurement)
    drawn = _value_panels(analysis, name)
    moving = [panel for panel in drawn if not _is_still(panel, drawn)]
    if not moving:
        return None
    still, left_out, panels = len(drawn) - len(moving), len(moving) - _MOST_PANELS, moving[:_MOST_PANELS]
    tops = [max(float(np.nanmax([line.mean, line.high])) for line in panel.lines) for panel in panels]
    own_axes, top = is_wide(tops), max(tops)
    # Delays between two machines may be negative: their clocks differ.
    least = min([0.0, *(float(np.nanmin([line.mean, line.low])) for panel in panels for line in panel.lines)])
    divisor, worded = common_scale([top], measurement.unit)

    def scaled(one: Line) -> Line:
        mean, low, high = one.mean / divisor, one.low / divisor, one.high / divisor
        return Line(one.label, one.time_s, mean, low, high, names.get(one.label, one.label))

    said = (measurement.text or name).rstrip(".")
    caption = f"{said}: the mean of each interval of the first run, as its receiver counted."
    if any(line.has_band for panel in panels for line in panel.lines):
        caption = (
            f"{said}, of every packet of the first run, over {analysis.end_s / _BINS:.3g} s each. "
            f"Lines: mean. Bands: least and greatest, which is at most {worded_value(top, measurement.unit)}."
        )
    if still:
        zero = "combination of levels is" if still == 1 else "combinations of levels are"
        caption += f" {still} {zero} next to zero nearly throughout, and not drawn."
    caption += f" {left_out} more combinations of levels are not shown." if left_out > 0 else ""
    shown = tuple(
        Panel(panel.title, tuple(map(scaled, panel.lines)), (own / divisor * 1.08 or 1.0) if own_axes else None)
        for panel, own in zip(panels, tops, strict=True)
    )
    title = f"{measurement_title(name, measurement)} over time"
    y_top = max(top, 0.0) / divisor * 1.08
    return Figure(
        f"values-{name}", title, caption, worded, y_top, analysis.end_s, shown, (), "time (s)",
        y_low=least / divisor * 1.08,
    )  # fmt: skip


def _value_panels(analysis: Analysis, name: str) -> list[Panel]:
    """A panel for each combination of levels of which something is known."""
    words = {one: level_words(factor) for one, factor in analysis.specification.factors.items()}
    panels: list[Panel] = []
    for levels in analysis.combinations:
        found = [_line(analysis, name, levels, label, filters) for label, filters in analysis.labels(name)]
        if lines := tuple(line for line in found if line is not None):
            panels.append(Panel(case_words(levels, levels, words) or "all", lines))
    return panels


def _is_still(panel: Panel, panels: Sequence[Panel]) -> bool:
    """True if no value of `panel` reaches a thirtieth of the greatest of all, and half of them not even a thousandth:
    it would be drawn as zeros, or as a moment of its beginning."""
    greatest = max(float(np.nanmax(line.mean)) for one in panels for line in one.lines)
    return all(
        float(np.nanmax(line.mean)) < greatest / 30 and float(np.nanmedian(line.mean)) < greatest / 1000
        for line in panel.lines
    )


def _line(
    analysis: Analysis, name: str, levels: dict[str, str], label: str, filters: tuple[tuple[str, str], ...]
) -> Line | None:
    for run in analysis.runs_at(levels)[:1]:
        try:
            times, values = run.values(name, filters)
        except LookupError:
            return _line_of_intervals(run, name, label, filters)
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


def _line_of_intervals(run: RunTables, name: str, label: str, filters: tuple[tuple[str, str], ...]) -> Line | None:
    """The means of the intervals that receivers counted, where one flow gives them."""
    measurement = run.measurements[name]
    if measurement.of not in _OF_INTERVALS:
        return None
    column, size = _OF_INTERVALS[measurement.of]
    columns = {"protocol": "protocol", "flow": "name", "from": "from_host"}
    rows = run.intervals.filter(pl.col(column).is_not_null())
    rows = rows if measurement.only is None else rows.filter(pl.col("name").is_in(measurement.only))
    rows = rows.filter(*(pl.col(columns[key]) == value for key, value in filters)).sort("start_s")
    if rows.is_empty() or rows.select("flow", "from_host").unique().height > 1:
        return None
    middles = (rows["start_s"] + rows["length_s"] / 2).to_numpy()
    nothing = np.full(middles.size, np.nan)
    return Line(label, middles, rows[column].to_numpy() * size, nothing, nothing)
