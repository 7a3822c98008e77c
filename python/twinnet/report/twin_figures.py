"""The figures of a twin: all differences in one look, both clocks' series overlaid, quantiles against quantiles, and
fidelity over time. What says nothing is not drawn, and the caption says so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from twinnet.report.design import MOST_PANELS, is_wide
from twinnet.report.level_words import case_words, level_words
from twinnet.report.naming import label_names, measurement_title
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.wording import common_scale, value_with_interval, worded_phase
from twinnet.results.series import band
from twinnet.study.twin import Twin, TwinResult

__all__ = ["twin_figures"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_QUANTILES = np.linspace(0.0, 1.0, 41)
_LOOK_S = 0.25
_FEWEST = 10
"""Values of each clock that make a distribution."""
_MOST_ROWS = 40
_SIGNS = {"agrees": "✓", "differs": "✗", "cannot tell": "?"}
_FAR = 10.0
"""Differences of more than so many times what is allowed stand at the end of the axis."""


def twin_figures(twin: Twin) -> list[Figure]:
    """All figures of `twin`, each measurement's series before its quantiles."""
    found: list[Figure | None] = [_differences(twin)]
    for name, measurement in twin.study.specification.measurements.items():
        labels = dict.fromkeys([*twin.wall.labels(name), *twin.virtual.labels(name)])
        for label, filters in labels:
            if measurement.is_series:
                found.append(_series(twin, name, label, filters))
            found.append(_quantiles(twin, name, label))
    found.append(_fidelity(twin))
    return [figure for figure in found if figure is not None]


class _Words:
    """How the study calls its levels and what it measures."""

    def __init__(self, twin: Twin) -> None:
        self._specification = twin.study.specification
        self._levels = {name: level_words(factor) for name, factor in self._specification.factors.items()}
        self._factors = [name for name, levels in self._specification.levels_run().items() if len(levels) > 1]

    def of(self, levels: Mapping[str, str]) -> str:
        """The levels that differ within the study."""
        return case_words(levels, self._factors, self._levels)

    def measured(self, name: str, label: str) -> str:
        """What is measured, and of what."""
        measurement = self._specification.measurements[name]
        names = label_names(self._specification, measurement)
        return f"{measurement_title(name, measurement)}, {names.get(label, label)}"


def _that_say_something(panels: Sequence[Panel]) -> tuple[list[Panel], str]:
    """The panels that are not zero throughout, and what the caption says of the others."""
    says = [any(bool(np.nan_to_num(line.mean).any()) for line in one.lines) for one in panels]
    kept = [one for one, something in zip(panels, says, strict=True) if something]
    left = [one.title for one, something in zip(panels, says, strict=True) if not something]
    shown, note = _the_first(kept)
    return shown, f" Not drawn, for it is zero throughout: {'; '.join(left)}.{note}" if left and kept else note


def _the_first(panels: Sequence[Panel]) -> tuple[list[Panel], str]:
    note = f" Shown are {MOST_PANELS} of {len(panels)} panels." if len(panels) > MOST_PANELS else ""
    return list(panels[:MOST_PANELS]), note


def _least(values: Sequence[Vector], top: float) -> float:
    """Where a logarithmic axis begins."""
    above = [float(one[one > 0].min()) for one in values if (one > 0).any()]
    return max(min(above) / 1.5, top / 1e4)


def _differences(twin: Twin) -> Figure | None:
    """Every difference between the clocks over what is allowed: a row for each comparison."""
    results = [one for one in twin.results if math.isfinite(one.difference.estimate) and one.allowed > 0]
    far = sorted(results, key=lambda one: -abs(one.difference.estimate) / one.allowed)[:_MOST_ROWS]
    known = {id(one) for one in far}
    shown = [one for one in results if id(one) in known]
    if len(results) < 2 or not any(one.difference.estimate for one in shown):
        return None
    words = _Words(twin)
    groups: dict[str, list[TwinResult]] = {}
    for one in shown:
        groups.setdefault(words.measured(one.measurement, one.label), []).append(one)
    phased = len({one.phase for one in shown}) > 1
    cases: list[str] = []
    headings: list[int] = []
    differences: dict[int, str] = {}
    rows: dict[str, list[tuple[int, TwinResult]]] = {}
    for title, group in groups.items():
        headings.append(len(cases))
        cases.append(title)
        for one in group:
            differences[len(cases)] = f"{_SIGNS[one.verdict]} {value_with_interval(one.difference, one.unit)}"
            rows.setdefault(one.verdict, []).append((len(cases), one))
            when = worded_phase(one.phase) if phased else ""
            cases.append(", ".join(part for part in (words.of(one.levels), when) if part) or "all")
    lines: list[Line] = []
    for verdict, here in rows.items():
        mean, low, high = (
            np.clip(np.array([getattr(one.difference, end) / one.allowed for _, one in here]), -_FAR, _FAR)
            for end in ("estimate", "low", "high")
        )
        lines.append(Line(verdict, np.array([float(place) for place, _ in here]), mean, low, high, verdict))
    caption = (
        "The difference between the clocks, wall minus virtual, over what is allowed, with its confidence interval: "
        "between -1 and 1 they agree (✓), beyond they differ (✗). Where it reaches over an end, or the emulation did "
        "not keep its schedule, nothing can be told (?). Beside each row: the difference itself."
    )
    most = max(float(np.nanmax(np.abs([line.mean, line.low, line.high]))) for line in lines)
    if len(shown) < len(results):
        caption += f" Shown are the {len(shown)} that are furthest apart, of {len(results)}."
    if most >= _FAR:
        caption += f" What is beyond {_FAR:g} times stands at the end."
    end = max(1.2, 1.08 * most)
    return Figure(
        "twin-differences", "Differences between the clocks", caption, "difference / allowed", end, len(cases) - 0.5,
        (Panel("", tuple(lines), numbers=differences),), (), "", tuple(cases), -end, frozenset(headings),
    )  # fmt: skip


def _series(twin: Twin, name: str, label: str, filters: tuple[tuple[str, str], ...]) -> Figure | None:
    specification = twin.study.specification
    interval_s = (specification.measurements[name].interval_ps or 0) / _PS_PER_SECOND
    bands = {
        (place, clock): band(starts, rows, specification.confidence)
        for place, levels in enumerate(twin.wall.combinations)
        for clock in ("wall", "virtual")
        for starts, rows in [twin.series(name, filters, levels, clock)]
        if rows and starts.size
    }
    if not bands:
        return None
    divisor, unit = common_scale((float(one.mean.max(initial=0.0)) for one in bands.values()), "bit/s")
    words = _Words(twin)
    panels: list[Panel] = []
    for place, levels in enumerate(twin.wall.combinations):
        lines = [
            Line(clock, one.start_s + interval_s / 2, one.mean / divisor, one.low / divisor, one.high / divisor)
            for clock in ("wall", "virtual")
            if (one := bands.get((place, clock))) is not None
        ]
        if lines:
            panels.append(Panel(words.of(levels), tuple(lines)))
    title = words.measured(name, label)
    caption = (
        f"{title}, in intervals of {interval_s:g} s on both clocks. Lines: means over repetitions. Bands: "
        f"{specification.confidence * 100:g} % confidence interval of the mean."
    )
    kept, note = _that_say_something(panels)
    if not kept:
        return None
    tops = [1.08 * max(float(np.nanmax([line.mean, line.high])) for line in panel.lines) for panel in kept]
    if is_wide(tops):
        kept = [replace(panel, y_top=top) for panel, top in zip(kept, tops, strict=True)]
        note += " Each panel has its own axis."
    end_s = min(twin.wall.end_s, twin.virtual.end_s)
    return Figure(f"twin-{name}-{label}", title, caption + note, unit, max(tops), end_s, tuple(kept))


def _quantiles(twin: Twin, name: str, label: str) -> Figure | None:
    """Quantiles of the wall clock over those of the virtual clock: equal distributions lie on the diagonal."""
    results = [one for one in twin.results if (one.measurement, one.label) == (name, label)]
    paired = [
        (levels, wall, virtual)
        for levels in twin.wall.combinations
        for wall, virtual in [_both_values(results, levels)]
        if min(wall.size, virtual.size) >= _FEWEST and np.ptp([*wall, *virtual]) > 0
    ]
    if not paired:
        return None
    divisor, unit = common_scale(
        (float(max(wall.max(), virtual.max())) for _, wall, virtual in paired), results[0].unit
    )
    words, title = _Words(twin), _Words(twin).measured(name, label)
    tops = [float(max(wall.max(), virtual.max())) / divisor * 1.08 for _, wall, virtual in paired]
    is_log, low, top = is_wide(tops), 0.0, max(tops)
    if is_log:
        low = _least([one / divisor for _, wall, virtual in paired for one in (wall, virtual)], top)
    diagonal = np.array([low, top])
    panels = [
        Panel(
            words.of(levels),
            (
                _plain(
                    "quantiles", np.quantile(virtual, _QUANTILES) / divisor, np.quantile(wall, _QUANTILES) / divisor
                ),
                _plain("equal", diagonal, diagonal),
            ),
        )
        for levels, wall, virtual in paired
    ]
    over = "intervals of all repetitions" if results[0].phase is not None else "packets that were kept"
    caption = f"{title}: quantiles over {over}. On the dotted line both clocks have the same distribution."
    kept, note = _the_first(panels)
    return Figure(
        f"twin-{name}-{label}-quantiles", f"{title}: wall quantiles", caption + note, f"wall, {unit}", top, top,
        tuple(kept), (), f"virtual quantiles ({unit})", (), low, frozenset(), is_log, low, is_log,
    )  # fmt: skip


def _both_values(results: list[TwinResult], levels: Mapping[str, str]) -> tuple[Vector, Vector]:
    """The values of all phases under `levels` on both clocks."""
    here = [one for one in results if one.levels == levels]
    nothing = [np.zeros(0)]
    return (
        np.concatenate([*nothing, *(one.wall_values for one in here)]),
        np.concatenate([*nothing, *(one.virtual_values for one in here)]),
    )


def _fidelity(twin: Twin) -> Figure | None:
    """The worst lateness, slip and stolen time of the wall clock's runs over time, in milliseconds."""
    panels: list[Panel] = []
    columns = {"late, 99 %": "lateness_p99_ms", "slipped": "slipped_ms", "stolen": "steal_ms"}
    words = _Words(twin)
    for levels in twin.wall.combinations:
        tables = [run.run.table("fidelity") for run in twin.wall_runs(levels)]
        tables = [rows for rows in tables if not rows.is_empty()]
        if not tables:
            continue
        # Looks of different runs are not at the same moments: each counts from its beginning to its end.
        count = max(1, int(max(twin.wall.end_s, _LOOK_S) / _LOOK_S))
        lines: list[Line] = []
        for label, column in columns.items():
            worst = np.zeros(count)
            for rows in tables:
                seen = rows.filter(rows[column].is_not_null())
                for start, length, value in zip(seen["start_s"], seen["length_s"], seen[column], strict=True):
                    first = max(0, int(start / _LOOK_S))
                    last = min(count, max(first + 1, round((start + length) / _LOOK_S)))
                    worst[first:last] = np.maximum(worst[first:last], value)
            lines.append(_plain(label, (np.arange(count, dtype=np.float64) + 0.5) * _LOOK_S, worst))
        panels.append(Panel(words.of(levels), tuple(lines)))
    ill = {line.label for panel in panels for line in panel.lines if line.mean.any()}
    panels = [replace(one, lines=tuple(line for line in one.lines if line.label in ill)) for one in panels]
    kept, note = _that_say_something(panels)
    if not kept:
        return None
    tops = [max(float(line.mean.max()) for line in panel.lines) * 1.08 for panel in kept]
    if is_wide(tops):
        kept = [replace(panel, y_top=top) for panel, top in zip(kept, tops, strict=True)]
        note += " Each panel has its own axis."
    caption = (
        "How well the emulation kept its schedule, in the run where it was worst at that moment: by how much one frame "
        "in a hundred was late, by how much the schedule slipped, and what the hypervisor took, between two looks."
    )
    return Figure(
        "twin-fidelity", "Fidelity of the wall clock", caption + note, "ms", max(tops), twin.wall.end_s, tuple(kept)
    )


def _plain(label: str, horizontal: Vector, vertical: Vector) -> Line:
    nothing = np.full(vertical.shape, np.nan)
    return Line(label, horizontal, vertical, nothing, nothing)
