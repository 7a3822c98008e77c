"""The figures of a twin: both clocks' series overlaid, quantiles against quantiles, and fidelity over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.wording import common_scale, worded_levels
from twinnet.results.series import band
from twinnet.study.twin import Twin, TwinResult

__all__ = ["twin_figures"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_QUANTILES = np.linspace(0.0, 1.0, 41)
_LOOK_S = 0.25


def twin_figures(twin: Twin) -> list[Figure]:
    """All figures of `twin`, each measurement's series before its quantiles."""
    found: list[Figure | None] = []
    for name, measurement in twin.study.specification.measurements.items():
        labels = dict.fromkeys([*twin.wall.labels(name), *twin.virtual.labels(name)])
        for label, filters in labels:
            if measurement.is_series:
                found.append(_series(twin, name, label, filters))
            found.append(_quantiles(twin, name, label))
    found.append(_fidelity(twin))
    return [figure for figure in found if figure is not None]


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
    panels: list[Panel] = []
    for place, levels in enumerate(twin.wall.combinations):
        lines = [
            Line(clock, one.start_s + interval_s / 2, one.mean / divisor, one.low / divisor, one.high / divisor)
            for clock in ("wall", "virtual")
            if (one := bands.get((place, clock))) is not None
        ]
        if lines:
            panels.append(Panel(worded_levels(levels), tuple(lines)))
    top = max(float(np.nanmax([line.mean, line.high])) for panel in panels for line in panel.lines)
    caption = (
        f"{name}, {label}, in intervals of {interval_s:g} s on both clocks. Lines: means over repetitions. Bands: "
        f"{specification.confidence * 100:g} % confidence interval of the mean."
    )
    end_s = min(twin.wall.end_s, twin.virtual.end_s)
    return Figure(
        f"twin-{name}-{label}", f"{_title(name)}, {label}", caption, unit, top * 1.08 or 1.0, end_s, tuple(panels), ()
    )


def _quantiles(twin: Twin, name: str, label: str) -> Figure | None:
    """Quantiles of the wall clock over those of the virtual clock: equal distributions lie on the diagonal."""
    results = [one for one in twin.results if (one.measurement, one.label) == (name, label)]
    paired = [
        (levels, wall, virtual)
        for levels in twin.wall.combinations
        for wall, virtual in [_both_values(results, levels)]
        if wall.size > 1 and virtual.size > 1
    ]
    if not paired:
        return None
    divisor, unit = common_scale(
        (float(max(wall.max(), virtual.max())) for _, wall, virtual in paired), results[0].unit
    )
    top = max(float(max(wall.max(), virtual.max())) for _, wall, virtual in paired) / divisor * 1.08 or 1.0
    diagonal = np.array([0.0, top])
    panels = tuple(
        Panel(
            worded_levels(levels),
            (
                _plain(
                    "quantiles", np.quantile(virtual, _QUANTILES) / divisor, np.quantile(wall, _QUANTILES) / divisor
                ),
                _plain("equal", diagonal, diagonal),
            ),
        )
        for levels, wall, virtual in paired
    )
    over = "intervals of all repetitions" if results[0].phase is not None else "packets that were kept"
    caption = f"{name}, {label}: quantiles over {over}. On the dotted line both clocks have the same distribution."
    return Figure(
        f"twin-{name}-{label}-quantiles",
        f"{_title(name)}, {label}: wall quantiles",
        caption,
        f"wall, {unit}",
        top,
        top,
        panels,
        (),
        f"virtual quantiles ({unit})",
    )


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
        panels.append(Panel(worded_levels(levels), tuple(lines)))
    if not panels:
        return None
    top = max(float(line.mean.max()) for panel in panels for line in panel.lines) * 1.08 or 1.0
    caption = (
        "How well the emulation kept its schedule, in the run where it was worst at that moment: by how much one frame "
        "in a hundred was late, by how much the schedule slipped, and what the hypervisor took, between two looks."
    )
    return Figure("twin-fidelity", "Fidelity of the wall clock", caption, "ms", top, twin.wall.end_s, tuple(panels), ())


def _plain(label: str, horizontal: Vector, vertical: Vector) -> Line:
    nothing = np.full(vertical.shape, np.nan)
    return Line(label, horizontal, vertical, nothing, nothing)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
