"""The table of what was sent: one row for each flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.sockets.sending import Sent, SentFlow

__all__ = ["SENT_COLUMNS", "sent_rows"]

SENT_COLUMNS: Mapping[str, Any] = {
    "flow": int,
    "protocol": str,
    "from": str,
    "to": str,
    "duration_s": float,
    "packets": int,
    "payload_bytes": int,
    "requested_packets_per_second": float,
    "achieved_packets_per_second": float,
    "requested_rate_bps": float,
    "achieved_rate_bps": float,
    "gap_error_p50_us": float,
    "gap_error_p99_us": float,
    "gap_error_max_us": float,
    "lateness_p50_us": float,
    "lateness_p99_us": float,
    "lateness_max_us": float,
    "kept_up": bool,
    "processor": str,
    "processor_waited_s": float,
    "errors": str,
}
"""The columns and what they hold. `processor` is `own` or `shared`, of the thread that sent all flows."""
_PS_PER_US = 1e6


def sent_rows(sent: Sent) -> list[dict[str, Any]]:
    """Return the rows in the order of the flows; what has no meaning for a flow is ``None``."""
    return [_row(flow, sent) for flow in sent.flows]


def _row(flow: SentFlow, sent: Sent) -> dict[str, Any]:
    report, pacing = flow.report, flow.report.pacing
    row: dict[str, Any] = dict.fromkeys(SENT_COLUMNS)
    row |= {
        "flow": report.flow,
        "protocol": flow.protocol,
        "from": report.source,
        "to": report.target,
        "duration_s": report.duration_s,
        "packets": report.packets,
        "payload_bytes": report.bytes,
        "processor": "shared" if sent.processor.shared else "own",
        "processor_waited_s": sent.processor.waited_s,
        "errors": "; ".join(report.errors) or None,
    }
    if pacing is None:
        return row
    names = ("requested_packets_per_second", "achieved_packets_per_second", "requested_rate_bps", "achieved_rate_bps")
    row |= {name: getattr(pacing, name) for name in (*names, "kept_up")}
    for name, summary in {"gap_error": pacing.gap_error, "lateness": pacing.lateness}.items():
        if summary is not None:
            row |= {f"{name}_{part}_us": getattr(summary, part) / _PS_PER_US for part in ("p50", "p99", "max")}
    return row
