"""The contents of a figure before it is drawn: one panel for each combination of levels, lines with bands, moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinnet.report.naming import label_names, measurement_title, traffic_name
from twinnet.report.wording import common_scale, worded_levels
from twinnet.study.analysis import Analysis

__all__ = ["Figure", "Line", "Panel", "figures_of"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12


@dataclass(frozen=True)
class Line:
    """One line: at the middle of each interval the mean, and its band where there is one; in the figure's unit.

    Attributes
    ----------
    label
        What it is of, by which its colour is chosen.
    name
        What the legend calls it; the label when left out.
    """

    label: str
    time_s: Vector
    mean: Vector
    low: Vector
    high: Vector
    name: str = ""

    @property
    def shown(self) -> str:
        """The name in the legend."""
        return self.name or self.label

    @property
    def has_band(self) -> bool:
        """True if there is a confidence band, which takes more than one repetition."""
        return bool(np.isfinite(self.low).any())


@dataclass(frozen=True)
class Panel:
    """The lines under one combination of levels; `y_top` is where the vertical axis ends, if not the figure's."""

    title: str
    lines: tuple[Line, ...]
    y_top: float | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of one measurement; all panels share both axes.

    Attributes
    ----------
    end_s
        Where the horizontal axis ends; it is a time unless `x_title` says otherwise.
    moments
        Times in seconds at which traffic of known duration ends, with a few words.
    cases
        Words at 0, 1, 2, ... of the horizontal axis, which then is no time.
    points
        Whether values stand alone, each with its interval, rather than on lines.
    """

    name: str
    title: str
    caption: str
    y_title: str
    y_top: float
    end_s: float
    panels: tuple[Panel, ...]
    moments: tuple[tuple[float, str], ...]
    x_title: str = "time (s)"
    cases: tuple[str, ...] = ()
    points: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all lines, in their order."""
        return tuple(dict.fromkeys(line.label for panel in self.panels for line in panel.lines))


def figures_of(analysis: Analysis) -> list[Figure]:
    """The figures of a study: every throughput over time."""
    found: list[Figure] = []
    for name, measurement in analysis.specification.measurements.items():
        series = [one for one in analysis.series if one.measurement == name]
        if not measurement.is_series or not series:
            continue
        divisor, unit = common_scale((float(one.band.mean.max(initial=0.0)) for one in series), "bit/s")
        interval_s = (measurement.interval_ps or 0) / _PS_PER_SECOND
        panels: list[Panel] = []
        names = label_names(analysis.specification, measurement)
        for levels in analysis.combinations:
            lines = [
                Line(
                    one.label,
                    one.band.start_s + interval_s / 2,
                    one.band.mean / divisor,
                    one.band.low / divisor,
                    one.band.high / divisor,
                    names.get(one.label, one.label),
                )
                for one in series
                if one.levels == levels
            ]
            if lines:
                panels.append(Panel(worded_levels(levels), tuple(lines)))
        tops = [float(np.nanmax([line.mean, line.high])) for panel in panels for line in panel.lines if line.mean.size]
        layer = {"payload": "payload", "network": "network layer", "link": "link layer", "wire": "on the wire"}[
            measurement.layer
        ]
        counts = sorted({one.band.count for one in series})
        title = measurement_title(name, measurement)
        caption = (
            f"{(measurement.text or title).rstrip('.')}, in intervals of {interval_s:g} s. {_of_repetitions(counts)}"
        )
        if counts[-1] > 1:
            caption += f" Bands: {analysis.specification.confidence * 100:g} % confidence interval of the mean."
        found.append(
            Figure(
                name,
                f"{title} over time",
                caption,
                f"{unit}, {layer}",
                max(tops, default=1.0) * 1.08,
                analysis.end_s,
                tuple(panels),
                _moments(analysis),
            )
        )
    return found


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
    return tuple(
        (end_s, f"{' and '.join(names)} {'ends' if len(names) == 1 else 'end'}")
        for end_s, names in sorted(ends.items())
    )
