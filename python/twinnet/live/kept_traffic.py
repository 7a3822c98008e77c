"""The traffic of a recording and of a finished run: what each flow was, in totals and means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from twinnet.results.flow_report import AppReport, FlowReport
    from twinnet.study.store import StoredRun

__all__ = ["MOST_ROWS", "traffic_of_reports", "traffic_of_run"]

MOST_ROWS = 200
"""A row takes about two hundred bytes of a page."""
_FLOW = ["flow", "name", "from_host"]
_SENDS = ("source", "client")


def traffic_of_reports(reports: Iterable[AppReport]) -> dict[str, Any]:
    """Return ``count``, how many ends of flows the `reports` of apps have, and ``rows`` of the first ones: ``host``,
    ``what``, ``ends``, ``start_s``, ``end_s``, ``bytes`` and ``mean_bps`` of payload, ``lost`` packets, and the means
    ``rtt_ms`` and ``window``, in segments. What an end does not know is ``None``."""
    ends = [(report, flow) for report in reports for flow in report.flows]
    return {"count": len(ends), "rows": [_row_of_report(report, flow) for report, flow in ends[:MOST_ROWS]]}


def traffic_of_run(run: StoredRun) -> dict[str, Any]:
    """Return the same of a finished run; times count from the start of its traffic."""
    flows, samples = run.table("flows"), run.table("tcp")
    means = samples.group_by(_FLOW).agg(
        pl.col("congestion_window_packets").mean(),
        pl.col("smoothed_rtt_ms").filter(pl.col("smoothed_rtt_ms") > 0).mean(),
    )
    by_flow = {tuple(row[name] for name in _FLOW): row for row in means.iter_rows(named=True)}
    rows = islice(flows.iter_rows(named=True), MOST_ROWS)
    return {
        "count": flows.height,
        "rows": [_row_of_run(row, by_flow.get(tuple(row[name] for name in _FLOW), {})) for row in rows],
    }


def _row_of_report(report: AppReport, flow: FlowReport) -> dict[str, Any]:
    info = flow.tcp_info
    windows = info.congestion_windows if info is not None else ()
    rtts_ps = [one for one in info.smoothed_rtts_ps if one] if info is not None else []
    mean_ps = fmean(rtts_ps) if rtts_ps else flow.rtt.mean if flow.rtt is not None else None
    return {
        "host": report.host,
        "what": f"{flow.protocol} {flow.role}",
        "ends": " to ".join(one for one in (flow.source, flow.target) if one),
        "start_s": _rounded(flow.start_ps, 1e-12),
        "end_s": _rounded(flow.end_ps, 1e-12),
        "bytes": flow.bytes,
        "mean_bps": round(flow.throughput_bps),
        "lost": flow.lost,
        "rtt_ms": _rounded(mean_ps, 1e-9),
        "window": _rounded(fmean(windows) if windows else None),
    }


def _row_of_run(row: Mapping[str, Any], of_tcp: Mapping[str, Any]) -> dict[str, Any]:
    sends = row["role"] in _SENDS
    span_s = (row["end_s"] or 0) - (row["start_s"] or 0)
    of_tcp = of_tcp if sends else {}
    rtt_ms = row["rtt_mean_ms"]
    port = "" if row["port"] is None else f", port {row['port']}"
    return {
        "host": row["from_host"] if sends else row["to_host"],
        "what": f"{row['name']}: {row['protocol']} {row['role']}",
        "ends": f"{row['from_host']} to {row['to_host']}{port}",
        "start_s": _rounded(row["start_s"]),
        "end_s": _rounded(row["end_s"]),
        "bytes": row["payload_bytes"],
        "mean_bps": round((row["payload_bytes"] or 0) * 8 / span_s) if span_s > 0 else 0,
        "lost": row["lost_packets"],
        "rtt_ms": _rounded(of_tcp.get("smoothed_rtt_ms") if rtt_ms is None else rtt_ms),
        "window": _rounded(of_tcp.get("congestion_window_packets")),
    }


def _rounded(value: float | None, scale: float = 1) -> float | None:
    return None if value is None else round(value * scale, 3)
