"""A capture as one page: what passed, throughput over time, conversations, RTP, TCP, and the list of its packets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from twinnet.errors import BadFile
from twinnet.report.capture_tables import SHOWN, capture_parts
from twinnet.report.frame_rows import Column, shown_rows
from twinnet.report.packet_list import page_rows
from twinnet.report.pages import FigureView, figure_views, render_page, script_json
from twinnet.report.panels import Figure, Line, Panel
from twinnet.report.view import Cell, Table
from twinnet.report.wording import common_scale, counted, worded_value
from twinnet.results.captures import CaptureAnalysis, CaptureLayer

__all__ = ["capture_page", "write_capture_page"]

_POINTS = 2000
"""Longer series are drawn as means of neighbours."""


def write_capture_page(one: CaptureAnalysis, layer: CaptureLayer, path: Path) -> Path:
    """Write the page of `one` to `path` and return it; raises `BadFile` where it cannot be written."""
    try:
        path.write_text(capture_page(one, layer), encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror or error}", "choose another file") from error
    return path


def capture_page(one: CaptureAnalysis, layer: CaptureLayer) -> str:
    """The page of `one`, which stands alone and needs no network."""
    whole = one.capture.to_dicts()[0]
    rows = page_rows(one.packet_list)
    drawn = _figures(one, layer)
    seconds = (whole["duration_ns"] or 0) / 1e9
    return render_page(
        "capture.html.jinja",
        drawn,
        title=one.path.name,
        said=f"{counted(whole['packets'], 'packet')}, {whole['bytes']:,} bytes in {worded_value(seconds, 's')}.",
        notes=one.notes,
        figures=drawn,
        tables=[_table(title, frame, columns) for title, frame, columns in capture_parts(one) if not frame.is_empty()],
        packets=script_json(rows),
        listed=len(rows),
        packets_note=_list_note(len(rows), whole["packets"]),
        files=(),
    )


def _list_note(listed: int, whole: int) -> str:
    if listed >= whole:
        return "All packets."
    return f"The first {listed} of {whole} packets."


def _figures(one: CaptureAnalysis, layer: CaptureLayer) -> list[FigureView]:
    series = one.throughput(layer)
    if series.height < 2:
        # One interval has no course over time; its rate is in the table of conversations.
        return []
    time_s, rate = series["time_s"].to_numpy() + one.interval_s / 2, series["throughput_bps"].to_numpy()
    if time_s.size > _POINTS:
        groups = np.array_split(np.arange(time_s.size), _POINTS)
        time_s, rate = (np.array([values[group].mean() for group in groups]) for values in (time_s, rate))
    divisor, unit = common_scale(rate, "bit/s")
    none = np.full(rate.size, np.nan)
    line = Line("throughput", time_s, rate / divisor, none, none)
    top = float(line.mean.max(initial=0.0)) * 1.08 or 1.0
    end = float(time_s.max(initial=0.0)) + one.interval_s / 2
    interval = worded_value(one.interval_s, "s")
    caption = f"Throughput of all packets, both ways together, at the {layer} layer, in intervals of {interval}."
    figure = Figure("throughput", "Throughput over time", caption, unit, top, end, (Panel("", (line,)),), ())
    return figure_views([figure])


def _table(title: str, frame: pl.DataFrame, columns: Mapping[str, Column]) -> Table:
    rows = [[Cell(_shown(cell)) for cell in row] for row in shown_rows(frame, columns, SHOWN)]
    more = f"The largest {SHOWN} of {frame.height}." if frame.height > SHOWN else ""
    return Table(list(columns), rows, title=title, note=more)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
