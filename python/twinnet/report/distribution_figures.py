"""Figures of how the values within runs are distributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from twinnet.report.design import (
    MOST_LINES,
    MOST_PANELS,
    Choice,
    asked_factors,
    check_factors,
    is_wide,
    kept_combinations,
)
from twinnet.report.level_words import LABEL, case_words, level_words
from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Line, Panel, Vector
from twinnet.report.wording import common_scale, counted
from twinnet.study.analysis import Analysis

__all__ = ["distribution_figure", "distribution_figures"]

_BEFORE_LEAST = 1.5
"""How far before the least value above it zero stands on a logarithmic axis."""
_LINE_WIDTH = 0.01
"""Lines that are nowhere further apart, as a share of the axis, are seen as one."""


def distribution_figures(analysis: Analysis) -> list[Figure]:
    """The cumulative distribution of every measurement that has one within a run."""
    found = [distribution_figure(analysis, name, Choice()) for name in analysis.specification.measurements]
    return [figure for figure in found if figure is not None]


def distribution_figure(analysis: Analysis, name: str, choice: Choice) -> Figure | None:
    """Return the cumulative distribution of the measurement `name`, with a line for each level of a factor; `None` if
    it has none, or if all values are equal.

    The first factor that the question is about and that has at most eight levels has lines; the others, and kinds of
    traffic, have panels.

    Raises
    ------
    BadValue
        A factor or level has no such name.
    """
    specification = analysis.specification
    measurement = specification.measurements[name]
    if measurement.is_series:
        return None
    shown = kept_combinations(analysis, choice)
    asked = [one for one in asked_factors(analysis.study) if len({levels[one] for levels in shown}) > 1]
    few = [one for one in asked if len({levels[one] for levels in shown}) <= MOST_LINES]
    colour = choice.colour or next(iter([*few, *asked]), LABEL)
    check_factors([colour], asked_factors(analysis.study))
    words = {one: level_words(specification.factors[one]) for one in specification.factors}
    words[LABEL] = label_names(specification, measurement)
    labels = analysis.labels(name)
    titles = [*([LABEL] if len(labels) > 1 else []), *asked]
    kept = choice.where.get(LABEL)
    panels: dict[str, list[tuple[str, Vector, Vector]]] = {}
    without = 0
    for label, filters in labels:
        if kept is not None and label not in kept:
            continue
        for levels in shown:
            shares, values, missing = _distribution(analysis, name, filters, levels)
            if values.size:
                without += missing
                dimensions = {**levels, LABEL: label}
                title = case_words(dimensions, [one for one in titles if one != colour], words)
                panels.setdefault(title, []).append((dimensions.get(colour, "all"), shares, values))
    made = _figure(analysis, name, panels, words.get(colour, {}), choice)
    if made is None or not without:
        return made
    return replace(made, caption=f"{made.caption} {counted(without, 'run')} without values are not in it.")


def _figure(
    analysis: Analysis,
    name: str,
    panels: Mapping[str, Sequence[tuple[str, Vector, Vector]]],
    words: Mapping[str, str],
    choice: Choice,
) -> Figure | None:
    measurement = analysis.specification.measurements[name]
    drawn = dict(list(panels.items())[:MOST_PANELS])
    values = [values for lines in drawn.values() for _, _, values in lines[:MOST_LINES]]
    if not any(one.min() < one.max() and np.isfinite(one).sum() > 1 for one in values):
        return None
    known = np.concatenate([one[np.isfinite(one)] for one in values])
    largest = float(np.abs(known).max())
    divisor, unit = common_scale([largest], measurement.unit)
    title = measurement_title(name, measurement)
    caption = f"{(measurement.text or title).rstrip('.')}: the share of values up to the value below, over all runs."
    if measurement.quantity.column is not None and measurement.quantity.column.lost_counts:
        caption += " What was lost has none here."
    lines_left = max(len(lines) for lines in panels.values()) - MOST_LINES
    if len(panels) > MOST_PANELS or lines_left > 0:
        caption += f" Shown are the first {MOST_PANELS} panels and {MOST_LINES} lines; `twinnet figure` draws others."
    # One level that takes much longer would leave nothing to be seen of the others.
    is_log = choice.log if choice.log is not None else is_wide(float(np.median(one)) for one in values)
    above = known[known > 0]
    is_log = is_log and bool(above.size)
    has_zero = is_log and bool((known <= 0).any())
    low = float(above.min()) if is_log else min(0.0, float(known.min()))
    low = low / _BEFORE_LEAST if has_zero else low
    places = {
        panel: [(line, _places(seen, low, largest, is_log)) for line, _, seen in lines[:MOST_LINES]]
        for panel, lines in drawn.items()
    }
    names: dict[str, str] = {}
    for line, others in _as_one(places).items():
        names[line] = words.get(line, line)
        if others:
            caption += f" On the line of {names[line]} lie those of {'; '.join(words.get(one, one) for one in others)}."
            names[line] += f" and {len(others)} more"
    made: list[Panel] = []
    for panel, lines in drawn.items():
        nothing = np.full(lines[0][1].size, np.nan)
        made.append(
            Panel(
                panel,
                tuple(
                    Line(line, np.maximum(seen, low) / divisor, shares * 100, nothing, nothing, names[line])
                    for line, shares, seen in lines[:MOST_LINES]
                    if line in names
                ),
            )
        )
    return Figure(
        f"distribution-{name}", f"{title}: distribution", caption, "% of values", 103.0, largest / divisor * 1.03,
        tuple(made), (), f"{title[:1].lower()}{title[1:]} ({unit})", end_low=low / divisor,
        end_log=is_log, end_zero=has_zero,
    )  # fmt: skip


def _distribution(
    analysis: Analysis, name: str, filters: tuple[tuple[str, str], ...], levels: Mapping[str, str]
) -> tuple[Vector, Vector, int]:
    """Shares and values, each value the mean over runs, and how many runs have none, or none of the same shares."""
    shares = np.zeros(0)
    rows: list[Vector] = []
    runs = analysis.runs_at(levels)
    for run in runs:
        try:
            seen, values = run.quantiles(name, filters)
        except LookupError:
            continue
        if not rows or seen.size == shares.size:
            shares = seen
            rows.append(values)
    return shares, np.mean(rows, axis=0) if rows else np.zeros(0), len(runs) - len(rows)


def _places(values: Vector, low: float, high: float, is_log: bool) -> Vector:
    """Where values stand on the axis: 0 at its beginning, 1 at the greatest value."""
    shown = np.maximum(values, low)
    return np.log(shown / low) / np.log(high / low) if is_log else (shown - low) / (high - low)


def _as_one(panels: Mapping[str, Sequence[tuple[str, Vector]]]) -> dict[str, list[str]]:
    """The lines to draw, each with those that lie on it wherever either is."""
    seen: dict[str, dict[str, Vector]] = {}
    for panel, lines in panels.items():
        for line, places in lines:
            seen.setdefault(line, {})[panel] = places
    drawn: dict[str, list[str]] = {}
    for line, own in seen.items():
        alike = (first for first in drawn if _lie_on_one_another(seen[first], own))
        drawn.setdefault(next(alike, line), []).append(line)
    return {first: lines[1:] for first, lines in drawn.items()}


def _lie_on_one_another(some: Mapping[str, Vector], others: Mapping[str, Vector]) -> bool:
    return some.keys() == others.keys() and all(
        places.size == others[panel].size and np.allclose(places, others[panel], rtol=0, atol=_LINE_WIDTH)
        for panel, places in some.items()
    )
