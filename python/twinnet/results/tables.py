"""The tables of a run: their columns, types and units. docs/reference/results.md explains each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from twinnet.results.flow_columns import SENDER_QUANTILES
from twinnet.results.port_samples import DROP_REASONS

__all__ = [
    "FIDELITY",
    "FLOWS",
    "INTERVALS",
    "PACKETS",
    "PORT_SAMPLES",
    "TABLES",
    "TCP",
    "TWIN",
    "table",
    "unit_of_column",
]

_DISTRIBUTION = ("mean", "min", "max", "std", "p50", "p90", "p99")

FLOWS: dict[str, Any] = {
    "flow": pl.UInt32,
    "name": pl.String,
    "tool": pl.String,
    "protocol": pl.String,
    "role": pl.String,
    "from_host": pl.String,
    "to_host": pl.String,
    "port": pl.UInt16,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "packets": pl.Int64,
    "payload_bytes": pl.Int64,
    "lost_packets": pl.Int64,
    "reordered_packets": pl.Int64,
    "duplicate_packets": pl.Int64,
    "rtt_count": pl.Int64,
    **{f"rtt_{name}_ms": pl.Float64 for name in _DISTRIBUTION},
    "delay_count": pl.Int64,
    **{f"delay_{name}_ms": pl.Float64 for name in _DISTRIBUTION},
    "gap_count": pl.Int64,
    **{f"gap_{name}_ms": pl.Float64 for name in _DISTRIBUTION},
    "jitter_rfc4689_count": pl.Int64,
    **{f"jitter_rfc4689_{name}_ms": pl.Float64 for name in _DISTRIBUTION},
    "delay_variation_count": pl.Int64,
    **{f"delay_variation_{name}_ms": pl.Float64 for name in ("mean", "min", "max", "std")},
    "loss_burst_count": pl.Int64,
    "loss_burst_mean": pl.Float64,
    "loss_burst_max": pl.Int64,
    "reordering_extent_count": pl.Int64,
    "reordering_extent_mean": pl.Float64,
    "reordering_extent_max": pl.Int64,
    "reordered_share": pl.Float64,
    "rtp_jitter_count": pl.Int64,
    **{f"rtp_jitter_{name}_ms": pl.Float64 for name in ("mean", "min", "max", "std")},
    "rtp_bandwidth_count": pl.Int64,
    **{f"rtp_bandwidth_{name}_bps": pl.Float64 for name in ("mean", "min", "max", "std")},
    "frames_complete": pl.Int64,
    "frames_damaged": pl.Int64,
    "frames_lost": pl.Int64,
    "psnr_db": pl.Float64,
    "ssim": pl.Float64,
    "available_bandwidth_bps": pl.Float64,
    "available_bandwidth_low_bps": pl.Float64,
    "available_bandwidth_high_bps": pl.Float64,
    "available_bandwidth_true_bps": pl.Float64,
    "probe_bytes": pl.Int64,
    "probe_window_s": pl.Float64,
    "probe_added_delay_ms": pl.Float64,
    "probe_added_loss": pl.Float64,
    "probe_trains": pl.Int64,
    "probe_generated_share": pl.Float64,
    "probe_interruptions": pl.Int64,
    "probe_batched_trains": pl.Int64,
    "probe_gave_up": pl.String,
    "video_rate_bps": pl.Float64,
    "video_played_s": pl.Float64,
    "video_startup_s": pl.Float64,
    "video_stalls": pl.Int64,
    "video_stalled_s": pl.Float64,
    "video_switches": pl.Int64,
    "latency_p95_ms": pl.Float64,
    "jitter_rfc3550_ms": pl.Float64,
    **{f"send_lateness_{name}_ms": pl.Float64 for name in SENDER_QUANTILES},
    **{f"send_gap_error_{name}_ms": pl.Float64 for name in SENDER_QUANTILES},
    "requested_packets_per_second": pl.Float64,
    "achieved_packets_per_second": pl.Float64,
    "send_processors": pl.Float64,
    "send_switches_per_second": pl.Float64,
    "send_involuntary_switches_per_second": pl.Float64,
    "send_together_share": pl.Float64,
    "completed": pl.Boolean,
    "kept_up": pl.Boolean,
    "sender_processor": pl.String,
    "errors": pl.String,
}
"""One row for each flow and role: what one end of a flow saw in total."""

INTERVALS: dict[str, Any] = {
    "flow": pl.UInt32,
    "name": pl.String,
    "protocol": pl.String,
    "role": pl.String,
    "from_host": pl.String,
    "start_s": pl.Float64,
    "length_s": pl.Float64,
    "payload_bytes": pl.Int64,
    "packets": pl.Int64,
    **{f"delay_{name}_ms": pl.Float64 for name in ("mean", "min", "max")},
    "jitter_rfc4689_mean_ms": pl.Float64,
    "jitter_rfc3550_ms": pl.Float64,
    **{f"delay_variation_{name}_ms": pl.Float64 for name in ("mean", "min", "max")},
    "lost_packets": pl.Int64,
    "reordered_packets": pl.Int64,
    "duplicate_packets": pl.Int64,
    **{f"rtt_{name}_ms": pl.Float64 for name in ("mean", "min", "max")},
    "last_arrival_s": pl.Float64,
    "ip_version": pl.UInt8,
    "path_mtu": pl.UInt16,
    "frames": pl.Int64,
    "network_bytes": pl.Int64,
    "wire_bytes": pl.Int64,
}
"""One row for each flow, role and interval."""

PACKETS: dict[str, Any] = {
    "flow": pl.UInt32,
    "name": pl.String,
    "protocol": pl.String,
    "from_host": pl.String,
    "number": pl.Int64,
    "sent_s": pl.Float64,
    "arrived_s": pl.Float64,
    "payload_bytes": pl.Int64,
    "gap_ms": pl.Float64,
    "delay_ms": pl.Float64,
    "jitter_rfc4689_ms": pl.Float64,
    "rtp_jitter_ms": pl.Float64,
    "rtp_bandwidth_bps": pl.Float64,
}
"""One row for each packet that arrived, of traffic that asks for `record_packets`, in the order of arrival."""

TCP: dict[str, Any] = {
    "flow": pl.UInt32,
    "name": pl.String,
    "protocol": pl.String,
    "from_host": pl.String,
    "at_s": pl.Float64,
    "congestion_window_packets": pl.Int64,
    "slow_start_threshold_packets": pl.Int64,
    "smoothed_rtt_ms": pl.Float64,
    "retransmitted_packets": pl.Int64,
}
"""One row for each look at the state of a sender's TCP, where a study measures it; windows and counts in segments."""

PORT_SAMPLES: dict[str, Any] = {
    "port": pl.String,
    "start_s": pl.Float64,
    "length_s": pl.Float64,
    "frames": pl.Int64,
    "link_bytes": pl.Int64,
    "wire_bytes": pl.Int64,
    "received_frames": pl.Int64,
    "received_bytes": pl.Int64,
    "drops": pl.Int64,
    **{f"dropped_{reason}": pl.Int64 for reason in DROP_REASONS},
    "marked": pl.Int64,
    "backlog_frames": pl.Int64,
    "backlog_bytes": pl.Int64,
}
"""One row for each sampled port and interval: what the port sent, received and dropped."""

FIDELITY: dict[str, Any] = {
    "start_s": pl.Float64,
    "length_s": pl.Float64,
    "handed_over": pl.Int64,
    "lateness_p99_ms": pl.Float64,
    "lateness_max_ms": pl.Float64,
    "slipped_ms": pl.Float64,
    "slips": pl.Int64,
    "lost_frames": pl.Int64,
    "steal_ms": pl.Float64,
    "cpu_ms": pl.Float64,
}
"""One row for each look at how well the lab kept its schedule; none on the virtual clock."""

TWIN: dict[str, Any] = {
    "measurement": pl.String,
    "label": pl.String,
    "levels": pl.String,
    "phase_start_s": pl.Float64,
    "phase_end_s": pl.Float64,
    "unit": pl.String,
    "verdict": pl.String,
    "why": pl.String,
    "wall_runs": pl.Int64,
    "wall_mean": pl.Float64,
    "virtual_runs": pl.Int64,
    "virtual_mean": pl.Float64,
    "real_runs": pl.Int64,
    "real_mean": pl.Float64,
    "models_runs": pl.Int64,
    "models_mean": pl.Float64,
    "model_difference": pl.Float64,
    "model_difference_low": pl.Float64,
    "model_difference_high": pl.Float64,
    "model_verdict": pl.String,
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "confidence": pl.Float64,
    "tolerance": pl.String,
    "tolerance_stated": pl.Boolean,
    "allowed_difference": pl.Float64,
    "ks_statistic": pl.Float64,
    "ks_p": pl.Float64,
    "emulation": pl.String,
    "apart_first_s": pl.Float64,
    "apart_worst_s": pl.Float64,
    "apart_worst_difference": pl.Float64,
    "apart_from_s": pl.Float64,
    "apart_for_s": pl.Float64,
    "apart_share": pl.Float64,
    "lateness_p99_ms": pl.Float64,
    "slipped_ms": pl.Float64,
    "lost_frames": pl.Int64,
    "steal_ms": pl.Float64,
}
"""One row for each metric, combination of levels and phase of a twin; of a study, not of a run."""

TABLES: dict[str, dict[str, Any]] = {
    "flows": FLOWS,
    "intervals": INTERVALS,
    "packets": PACKETS,
    "port_samples": PORT_SAMPLES,
    "tcp": TCP,
    "fidelity": FIDELITY,
    "twin": TWIN,
}


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A table of `rows` with the columns that the table `name` has; what a row leaves out is null.

    Raises
    ------
    ValueError
        A row has a column that the table does not have.
    """
    schema = TABLES[name]
    for row in rows:
        unknown = sorted(set(row) - set(schema))
        if unknown:
            raise ValueError(f"the table {name} has no column {unknown[0]!r}; it has {', '.join(schema)}")
    return pl.DataFrame([{column: row.get(column) for column in schema} for row in rows], schema=schema, orient="row")


_UNITS = {"s": "s", "ms": "ms", "bps": "bit/s", "bytes": "B", "db": "dB", "packets": "packets", "frames": "frames"}


def unit_of_column(name: str) -> str:
    """Return the unit that a column's name ends with, "" for a column without one.

    Examples
    --------
    >>> unit_of_column("delay_mean_ms")
    'ms'
    """
    return _UNITS.get(name.rpartition("_")[2], "")
