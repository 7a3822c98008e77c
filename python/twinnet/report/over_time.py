"""The figures over time: every throughput, a panel for each combination of levels."""

from __future__ import annotations

from collections.abc import Sequence
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
from twinnet.report.naming import label_names, measurement_title, traffic_name
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.wording import common_scale, counted
from twinnet.results.series import Band
from twinnet.study.analysis import Analysis, SeriesBand

__all__ = ["figures_of", "over_time_figure"]

_PS_PER_SECOND = 1e12
_LETTERS_OF_A_PANEL = 40
_LAYERS = {"payload": "payload", "network": "network layer", "link": "link layer", "wire": "on the wire"}


def figures_of(analysis: Analysis) -> list[Figure]:
    """The figures of a study: every throughput over time."""
    names = [name for name, measurement in analysis.specification.measurements.items() if measurement.is_series]
    found = [over_time_figure(analysis, name, Choice()) for name in names]
    return [figure for figure in found if figure is not None]


def over_time_figure(analysis: Analysis, name: str, choice: Choice) -> Figure | None:
    """Return the throughput `name` over time, with a panel for each combination of levels; `None` if it is none, or if
    it was measured in one interval at most, which makes no line.

    Raises
    ------
    BadValue
        A factor or level has no such name.
    """
    specification = analysis.specification
    measurement = specification.measurements[name]
    labels, shown = choice.where.get(LABEL), kept_combinations(analysis, choice)
    series = [
        one
        for one in analysis.series
        if one.measurement == name and one.levels in shown and (labels is None or one.label in labels)
    ]
    if not measurement.is_series or all(one.band.mean.size < 2 for one in series):
        return None
    divisor, unit = common_scale((float(one.band.mean.max(initial=0.0)) for one in series), "bit/s")
    interval_s = (measurement.interval_ps or 0) / _PS_PER_SECOND
    words = {factor: level_words(specification.factors[factor]) for factor in specification.factors}
    words[LABEL] = label_names(specification, measurement)
    labels_seen = len({one.label for one in series})
    flows = counted(labels_seen, "port" if measurement.is_of_ports else "flow") if labels_seen > MOST_LINES else ""
    if flows:
        series = _of_all(series, flows)
    colour, factors = choice.colour or LABEL, asked_factors(analysis.study)
    check_factors([colour], factors)
    titles = [factor for factor in specification.factors if factor in factors]
    titles += [LABEL] if labels_seen > 1 and not flows else []
    by_panel: dict[str, list[Line]] = {}
    for one in series:
        levels = {**one.levels, LABEL: one.label}
        title = case_words(levels, [name for name in titles if name != colour], words)
        level = levels.get(colour, "all")
        word = words.get(colour, {}).get(level, level)
        by_panel.setdefault(title, []).append(_line(one.band, level, word, interval_s, divisor))
    counts = sorted({one.band.count for one in series})
    title = measurement_title(name, measurement)
    caption = f"{(measurement.text or title).rstrip('.')}, in intervals of {interval_s:g} s. {_of_repetitions(counts)}"
    if flows:
        caption += f" Line: mean of {flows}. Band: nine in ten of them."
    elif counts[-1] > 1:
        caption += f" Bands: {specification.confidence * 100:g} % confidence interval of the mean."
    most = max(map(len, by_panel.values()))
    panels = [Panel(title, tuple(lines[:MOST_LINES])) for title, lines in list(by_panel.items())[:MOST_PANELS]]
    if len(by_panel) > len(panels) or most > MOST_LINES:
        caption += f" Shown are {len(panels)} of {len(by_panel)} combinations of levels"
        caption += f", {MOST_LINES} lines of {most}" if most > MOST_LINES else ""
        caption += "; `twinnet figure` draws others."
    is_log = bool(choice.log)
    tops = [max(float(np.nanmax([line.mean, line.high])) for line in panel.lines) * 1.08 for panel in panels]
    if is_wide(tops) and not is_log:
        panels = [replace(panel, y_top=top) for panel, top in zip(panels, tops, strict=True)]
        caption += " Each panel has its own axis."
    return Figure(
        name, f"{title} over time", caption, f"{unit}, {_LAYERS[measurement.layer]}", max(tops, default=1.0) or 1.0,
        analysis.end_s, tuple(panels), _moments(analysis), y_low=_least(panels) if is_log else 0.0, log=is_log,
    )  # fmt: skip


def _line(band: Band, level: str, word: str, interval_s: float, divisor: float) -> Line:
    return Line(
        level, band.start_s + interval_s / 2, band.mean / divisor, band.low / divisor, band.high / divisor, word
    )


def _of_all(series: Sequence[SeriesBand], name: str) -> list[SeriesBand]:
    """Of many flows, the mean and the band of nine in ten, at each combination of levels."""
    groups: dict[tuple[tuple[str, str], ...], list[SeriesBand]] = {}
    for one in series:
        groups.setdefault(tuple(one.levels.items()), []).append(one)
    found: list[SeriesBand] = []
    for group in groups.values():
        size = min(one.band.mean.size for one in group)
        values = np.array([one.band.mean[:size] for one in group])
        low, high = np.percentile(values, [5, 95], axis=0)
        starts, count = group[0].band.start_s[:size], group[0].band.count
        found.append(
            SeriesBand(group[0].measurement, group[0].levels, name, Band(starts, values.mean(axis=0), low, high, count))
        )
    return found


def _least(panels: Sequence[Panel]) -> float:
    """The least value above zero, at which a logarithmic axis begins."""
    values = np.concatenate([line.mean for panel in panels for line in panel.lines])
    return float(values[values > 0].min(initial=1.0)) / 1.5


def _of_repetitions(counts: list[int]) -> str:
    """Say how many repetitions a line is the mean of."""
    if counts[-1] == 1:
        return "One repetition."
    times = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"Lines: mean of {times} repetitions."


def _moments(analysis: Analysis) -> tuple[tuple[float, str], ...]:
    ends: dict[float, list[str]] = {}
    for entry in analysis.specification.traffic:
        if entry.duration_ps is not None:
            end_s = (entry.last_start_ps + entry.duration_ps) / _PS_PER_SECOND
            if end_s < analysis.end_s:
                ends.setdefault(end_s, []).append(traffic_name(entry.name))
    ordered = sorted(ends.items())
    found: list[tuple[float, str]] = []
    for place, (end_s, names) in enumerate(ordered):
        words = f"{' and '.join(names)} {'ends' if len(names) == 1 else 'end'}"
        room_s = (ordered[place + 1][0] if place + 1 < len(ordered) else analysis.end_s) - end_s
        # Where there is no room for the words, the line stands alone.
        fits = len(words) <= _LETTERS_OF_A_PANEL * room_s / analysis.end_s
        found.append((end_s, words if fits else ""))
    return tuple(found)
