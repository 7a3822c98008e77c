"""From the packets that a receiver kept to rows of the table `packets`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.results.flow_report import FlowReport
from twinnet.results.tables import PACKETS

__all__ = ["packet_frame"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_PS_PER_MS = 1e9


def packet_frame(name: str, protocol: str, source: str, report: FlowReport, zero_ps: int) -> pl.DataFrame | None:
    """The packets of one flow; `None` when none were kept. A duplicate has a time and no other value."""
    samples = report.samples
    if samples is None or not samples.arrived_ps:
        return None
    count = len(samples.arrived_ps)
    arrived_ps = np.array(samples.arrived_ps, dtype=np.int64)
    numbers = np.array(samples.sequence, dtype=np.int64)
    first = np.zeros(count, dtype=bool)
    first[np.unique(numbers, return_index=True)[1]] = True
    known = np.array([sent is not None for sent in samples.sent_ps], dtype=bool)
    sent_ps = np.array([sent or 0 for sent in samples.sent_ps], dtype=np.int64)
    delay = np.where(known, (arrived_ps - sent_ps).astype(np.float64), np.nan)
    columns: dict[str, Vector] = {
        "sent_s": np.where(known, (sent_ps - zero_ps) / _PS_PER_SECOND, np.nan),
        "arrived_s": (arrived_ps - zero_ps) / _PS_PER_SECOND,
        "gap_ms": _steps((arrived_ps - zero_ps).astype(np.float64), first) / _PS_PER_MS,
        "delay_ms": np.where(first, delay, np.nan) / _PS_PER_MS,
        "jitter_rfc4689_ms": np.abs(_steps(delay, first)) / _PS_PER_MS,
        "rtp_jitter_ms": _column(samples.jitter_ps, count) / _PS_PER_MS,
        "rtp_bandwidth_bps": _column(samples.bandwidth_bps, count),
    }
    sizes = samples.bytes or [None] * count
    frame = pl.DataFrame({"number": numbers, "payload_bytes": sizes, **columns}).with_columns(
        pl.lit(report.flow, dtype=pl.UInt32).alias("flow"),
        pl.lit(name).alias("name"),
        pl.lit(protocol).alias("protocol"),
        pl.lit(source).alias("from_host"),
        *(pl.col(column).fill_nan(None) for column in columns),
    )
    return frame.select(pl.col(column).cast(kind) for column, kind in PACKETS.items())


def _steps(values: Vector, counted: npt.NDArray[np.bool_]) -> Vector:
    """From each counted value to the next one; NaN at the first and at those that are not counted."""
    steps = np.full(values.size, np.nan)
    places = np.flatnonzero(counted)
    steps[places[1:]] = np.diff(values[places])
    return steps


def _column(values: Sequence[float | None], count: int) -> Vector:
    found = np.full(count, np.nan)
    found[: len(values)] = [np.nan if value is None else value for value in values]
    return found
