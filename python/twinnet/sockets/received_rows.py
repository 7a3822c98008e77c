"""The table of what was received per interval: one row for each flow and interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.results.flow_columns import interval_columns
from twinnet.sockets.receiving import Received, ReceivedFlow

__all__ = ["COLUMNS", "interval_rows"]

COLUMNS: Mapping[str, Any] = {
    "flow": int,
    "protocol": str,
    "from": str,
    "port": int,
    "start_s": float,
    "length_s": float,
    "payload_bytes": int,
    "packets": int,
    "throughput_bps": float,
    "packets_per_second": float,
    "delay_mean_ms": float,
    "delay_min_ms": float,
    "delay_max_ms": float,
    "jitter_rfc4689_mean_ms": float,
    "jitter_rfc3550_ms": float,
    "delay_variation_mean_ms": float,
    "delay_variation_min_ms": float,
    "delay_variation_max_ms": float,
    "lost_packets": int,
    "reordered_packets": int,
    "duplicate_packets": int,
}
"""The columns and what they hold. Times begin at the first arrival of all flows, on whole intervals.

`throughput_bps` is of payload: goodput."""
_DELAYS = ("delay_mean_ms", "delay_min_ms", "delay_max_ms")


def interval_rows(received: Received) -> list[dict[str, Any]]:
    """Return the rows, flow by flow in the order of time."""
    counted = [flow for flow in received.flows if flow.report.intervals is not None]
    firsts = [flow.report.intervals.first for flow in counted if flow.report.intervals is not None]
    zero = min(firsts, default=0)
    return [row for flow in counted for row in _rows(flow, zero)]


def _rows(flow: ReceivedFlow, zero: int) -> list[dict[str, Any]]:
    counts = flow.report.intervals
    if counts is None:
        return []
    length_s = counts.interval_ps / 1e12
    rows: list[dict[str, Any]] = []
    for place, size in enumerate(counts.bytes):
        packets = counts.packets[place] if place < len(counts.packets) else None
        row: dict[str, Any] = {
            "flow": flow.report.flow,
            "protocol": flow.report.protocol,
            "from": flow.report.source,
            "port": flow.port,
            "start_s": (counts.first - zero + place) * length_s,
            "length_s": length_s,
            "payload_bytes": size,
            "packets": packets,
            "throughput_bps": size * 8 / length_s,
            "packets_per_second": None if packets is None else packets / length_s,
        }
        measured = interval_columns(counts, place)
        if not flow.delay_known:
            # A constant offset of the clocks is in each delay, and in no difference of delays.
            measured = {name: value for name, value in measured.items() if name not in _DELAYS}
        row |= {name: measured.get(name) for name in COLUMNS if name not in row}
        rows.append(row)
    return rows
