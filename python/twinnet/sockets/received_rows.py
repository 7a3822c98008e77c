"""The table of what was received per interval: one row for each flow and interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
_PS_PER_MS = 1e9


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
    series = {
        "delay_mean_ms": counts.delays_ps if flow.delay_known else (),
        "delay_min_ms": counts.delays_min_ps if flow.delay_known else (),
        "delay_max_ms": counts.delays_max_ps if flow.delay_known else (),
        "jitter_rfc4689_mean_ms": counts.jitters_rfc4689_ps,
        "jitter_rfc3550_ms": counts.jitters_rfc3550_ps,
        # A constant offset of the clocks is in no difference of delays.
        "delay_variation_mean_ms": counts.delay_variations_ps,
        "delay_variation_min_ms": counts.delay_variations_min_ps,
        "delay_variation_max_ms": counts.delay_variations_max_ps,
    }
    orders = {
        "lost_packets": counts.lost,
        "reordered_packets": counts.reordered,
        "duplicate_packets": counts.duplicates,
    }
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
        for name, values in series.items():
            value = values[place] if place < len(values) else None
            row[name] = None if value is None else value / _PS_PER_MS
        row |= {name: values[place] if place < len(values) else None for name, values in orders.items()}
        rows.append(row)
    return rows
