"""Figures over the levels of factors: each mean with its interval, and how values are distributed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.wording import common_scale, worded_levels, worded_phase
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.window import is_span

__all__ = ["distribution_figures", "level_figures"]

_MOST_PANELS = 4
_MOST_LINES = 8


def level_figures(analysis: Analysis) -> list[Figure]:
    """A figure of each measurement that differs between levels: means with their intervals, ordered as the factors are.

    The factor with the fewest levels makes the panels where there are two factors or more, the rest stand side by side.
    """
    if len(analysis.combinations) < 2:
        return []
    found: list[Figure] = []
    for name, measurement in analysis.specification.measurements.items():
        means = [one for one in analysis.means if one.measurement == name]
        phases = analysis.phases_of(name)
        if len(phases) > 1:
            # Of a throughput with several phases, the first is the one in which all of its traffic runs.
            means = [one for one in means if one.phase == phases[0]]
        if not means:
            continue
        divisor, unit = common_scale((one.interval.estimate for one in means), means[0].unit)
        by_panel, cases = _arranged(analysis)
        names = label_names(analysis.specification, measurement)
        panels = tuple(
            Panel(title, _lines(means, places, divisor, names)) for title, places in by_panel.items()
        )  # fmt: skip
        ends = [end for one in means for end in (one.interval.estimate, one.interval.high) if math.isfinite(end)]
        title = measurement_title(name, measurement)
        told = len(phases) > 1 or is_span(measurement.window)
        during = f" from {worded_phase(means[0].phase)}" if told else ""
        caption = f"{(measurement.text or title).rstrip('.')}{during}: mean over repetitions"
        caption += (
            f" with its {analysis.specification.confidence * 100:g} % confidence interval." if _spread(means) else "."
        )
        found.append(
            Figure(
                f"levels-{name}", title, caption, unit, max([0.0, *ends]) / divisor * 1.1 or 1.0, len(cases) - 0.5,
                panels, (), "", tuple(cases), points=True,
            )
        )  # fmt: skip
    return found


def _spread(means: Sequence[PhaseMean]) -> bool:
    return any(math.isfinite(one.interval.low) for one in means)


def _arranged(analysis: Analysis) -> tuple[dict[str, list[tuple[int, Mapping[str, str]]]], list[str]]:
    """For each panel the places and levels in it, and the words at the places."""
    factors = {name: list(factor.levels) for name, factor in analysis.specification.factors.items()}
    few = min(factors, key=lambda name: len(factors[name]))
    split = few if len(factors) > 1 and len(factors[few]) <= _MOST_PANELS else None
    cases: list[str] = []
    panels: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
    for levels in analysis.combinations:
        case = ", ".join(level for name, level in levels.items() if name != split)
        if case not in cases:
            cases.append(case)
        title = f"{split}: {levels[split]}" if split is not None else ""
        panels.setdefault(title, []).append((cases.index(case), levels))
    return panels, cases


def _lines(
    means: Sequence[PhaseMean],
    places: Sequence[tuple[int, Mapping[str, str]]],
    divisor: float,
    names: Mapping[str, str],
) -> tuple[Line, ...]:
    lines: list[Line] = []
    for label in dict.fromkeys(one.label for one in means):
        here = [
            (place, one.interval)
            for place, levels in places
            for one in means
            if one.label == label and one.levels == levels
        ]
        at = np.array([float(place) for place, _ in here])
        # What is infinite is in the tables.
        mean = np.array(
            [interval.estimate / divisor if math.isfinite(interval.estimate) else math.nan for _, interval in here]
        )
        low = np.array([interval.low / divisor for _, interval in here])
        high = np.array([interval.high / divisor for _, interval in here])
        lines.append(Line(label, at, mean, low, high, names.get(label, label)))
    return tuple(lines)


def distribution_figures(analysis: Analysis) -> list[Figure]:
    """The cumulative distribution of every measurement that has one within a run: a panel for each kind of traffic, a
    line for each combination of levels, at most eight."""
    found: list[Figure] = []
    for name, measurement in analysis.specification.measurements.items():
        if measurement.is_series:
            continue
        names = label_names(analysis.specification, measurement)
        panels: list[Panel] = []
        largest = 0.0
        for label, filters in analysis.labels(name):
            lines: list[Line] = []
            for levels in analysis.combinations[:_MOST_LINES]:
                shares, values = _distribution(analysis, name, filters, levels)
                if values.size:
                    largest = max(largest, float(np.abs(values).max()))
                    nothing = np.full(values.size, np.nan)
                    lines.append(Line(worded_levels(levels), values, shares * 100, nothing, nothing))
            if lines:
                panels.append(Panel(names.get(label, label), tuple(lines)))
        if not panels or largest == 0:
            continue
        divisor, unit = common_scale([largest], measurement.unit)
        scaled = tuple(
            Panel(
                panel.title,
                tuple(Line(one.label, one.time_s / divisor, one.mean, one.low, one.high) for one in panel.lines),
            )
            for panel in panels
        )
        title = measurement_title(name, measurement)
        caption = (
            f"{(measurement.text or title).rstrip('.')}: the share of values up to the value below, over all runs."
        )
        left_out = len(analysis.combinations) - _MOST_LINES
        caption += f" Shown are the first {_MOST_LINES} combinations of levels." if left_out > 0 else ""
        found.append(
            Figure(
                f"distribution-{name}", f"{title}: distribution", caption, "% of values", 103.0,
                largest / divisor * 1.03, scaled, (), f"{title[:1].lower()}{title[1:]} ({unit})",
            )
        )  # fmt: skip
    return found


def _distribution(
    analysis: Analysis, name: str, filters: tuple[tuple[str, str], ...], levels: Mapping[str, str]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Shares and values, each value the mean over runs."""
    shares = np.zeros(0)
    rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for run in analysis.runs_at(levels):
        try:
            seen, values = run.quantiles(name, filters)
        except LookupError:
            continue
        if not rows or seen.size == shares.size:
            shares = seen
            rows.append(values)
    return (shares, np.mean(rows, axis=0)) if rows else (shares, np.zeros(0))
