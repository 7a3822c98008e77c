"""Reports of flows as polars tables: a row for each flow, interval or packet, units in the columns' names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from twinnet.results.flow_columns import interval_columns, measured_columns, pacing_columns
from twinnet.results.flow_report import FlowReport
from twinnet.results.packet_table import packet_frame
from twinnet.results.tables import FLOWS, INTERVALS, PACKETS

__all__ = ["flow_table", "interval_table", "packet_table"]

_OF_A_FLOW = {
    "flow": pl.UInt32,
    "protocol": pl.String,
    "role": pl.String,
    "source": pl.String,
    "target": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "throughput_bps": pl.Float64,
}
_OF_A_STUDY = ("name", "tool", "from_host", "to_host", "port", "sender_processor")
_OF_A_PATH = ("ip_version", "path_mtu")
_PS_PER_SECOND = 1e12


def flow_table(reports: Iterable[FlowReport]) -> pl.DataFrame:
    """Return a row for each report: who, when, payload bits per second, and all that was counted and measured.

    The columns are those of the table `flows` of a study (docs/reference/results.md); times are on the lab's clock.
    """
    schema = _OF_A_FLOW | {name: kind for name, kind in FLOWS.items() if name not in {*_OF_A_FLOW, *_OF_A_STUDY}}
    rows = [
        {
            "flow": one.flow,
            "protocol": one.protocol,
            "role": one.role,
            "source": one.source,
            "target": one.target,
            "start_s": _seconds(one.start_ps),
            "end_s": _seconds(one.end_ps),
            "throughput_bps": one.throughput_bps,
            **measured_columns(one),
            **pacing_columns(one.pacing),
        }
        for one in reports
    ]
    return _frame(rows, schema)


def interval_table(reports: Iterable[FlowReport]) -> pl.DataFrame:
    """Return a row for each report and interval, with the columns of the table `intervals` of a study and the payload's
    rate; empty where nothing was counted by intervals."""
    first = {"flow": pl.UInt32, "protocol": pl.String, "role": pl.String, "source": pl.String}
    left_out = (*_OF_A_STUDY, *_OF_A_PATH, "last_arrival_s")
    counted = {name: kind for name, kind in INTERVALS.items() if name not in left_out}
    schema = first | counted | {"throughput_bps": pl.Float64}
    rows: list[dict[str, Any]] = []
    for one in reports:
        counts = one.intervals
        if counts is None:
            continue
        for place, (start_s, rate_bps) in enumerate(zip(counts.starts_s, counts.rates_bps, strict=True)):
            rows.append(
                {
                    "flow": one.flow,
                    "protocol": one.protocol,
                    "role": one.role,
                    "source": one.source,
                    "start_s": start_s,
                    "length_s": counts.interval_ps / _PS_PER_SECOND,
                    "payload_bytes": counts.bytes[place],
                    "packets": counts.packets[place] if place < len(counts.packets) else None,
                    "throughput_bps": rate_bps,
                    **interval_columns(counts, place),
                }
            )
    return _frame(rows, schema)


def packet_table(reports: Iterable[FlowReport]) -> pl.DataFrame:
    """Return a row for each packet of flows that were asked for `record_packets`, in the order of arrival, with the
    columns of the table `packets` of a study."""
    frames = [packet_frame("", one.protocol, one.source or "", one, 0) for one in reports]
    kept = [frame for frame in frames if frame is not None]
    whole = pl.concat(kept) if kept else pl.DataFrame(schema=PACKETS)
    return whole.drop("name").rename({"from_host": "source"})


def _seconds(moment_ps: int | None) -> float | None:
    return None if moment_ps is None else moment_ps / _PS_PER_SECOND


def _frame(rows: list[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema, orient="row")
