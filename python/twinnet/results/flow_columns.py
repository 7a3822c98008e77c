"""One flow's report as columns with units: the same for a lab, for a study's tables and for ``twinnet recv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinnet.results.distributions import Lengths, Spread, Summary
from twinnet.results.flow_report import FlowReport, Pacing, Toll
from twinnet.results.flow_series import Intervals

__all__ = ["SENDER_QUANTILES", "interval_columns", "measured_columns", "pacing_columns", "toll_columns"]

_PS_PER_MS = 1e9
SENDER_QUANTILES = ("p50", "p99", "max")
"""The quantiles that are given of a source's own timing."""


def measured_columns(report: FlowReport) -> dict[str, Any]:
    """Return what `report` counted and measured over the whole time, by the names that the table `flows` has."""
    row: dict[str, Any] = {
        "packets": report.packets,
        "payload_bytes": report.bytes,
        "lost_packets": report.lost,
        "reordered_packets": report.reordered,
        "duplicate_packets": report.duplicates,
        "jitter_rfc3550_ms": None if report.jitter_rfc3550_ps is None else report.jitter_rfc3550_ps / _PS_PER_MS,
        "errors": "; ".join(report.errors) or None,
    }
    distributions = {
        "rtt": report.rtt,
        "delay": report.delay,
        "gap": report.gap,
        "jitter_rfc4689": report.jitter_rfc4689,
        "delay_variation": report.delay_variation_rfc3393,
        "rtp_jitter": report.rtp.jitter if report.rtp else None,
    }
    for name, summary in distributions.items():
        row |= _distribution(name, summary)
    for name, lengths in {"loss_burst": report.loss_bursts, "reordering_extent": report.reordering_extents}.items():
        row |= _lengths(name, lengths)
    if report.reordered is not None and report.packets:
        row["reordered_share"] = report.reordered / report.packets
    if report.rtp is not None:
        bandwidth = report.rtp.bandwidth
        if bandwidth is not None:
            row |= {f"rtp_bandwidth_{part}_bps": getattr(bandwidth, part) for part in ("mean", "min", "max", "std")}
            row["rtp_bandwidth_count"] = bandwidth.count
        row |= {f"frames_{fate}": getattr(report.rtp, f"frames_{fate}") for fate in ("complete", "damaged", "lost")}
    if report.video is not None:
        row |= {f"frames_{fate}": getattr(report.video, f"frames_{fate}") for fate in ("complete", "damaged", "lost")}
        row |= {"psnr_db": report.video.psnr_db, "ssim": report.video.ssim}
    if report.viewing is not None:
        seen = report.viewing
        row |= {"video_rate_bps": seen.rate_bps, "video_played_s": seen.played_s, "video_startup_s": seen.startup_s}
        row |= {"video_stalls": seen.stalls, "video_stalled_s": seen.stalled_s, "video_switches": seen.switches}
    if report.latency_percentiles_ms:
        row["latency_p95_ms"] = report.latency_percentiles_ms.get(95.0)
    return row


def pacing_columns(pacing: Pacing | None) -> dict[str, Any]:
    """Return how well a source kept its schedule."""
    if pacing is None:
        return {}
    row: dict[str, Any] = {
        "kept_up": pacing.kept_up,
        "requested_packets_per_second": pacing.requested_packets_per_second,
        "achieved_packets_per_second": pacing.achieved_packets_per_second,
    }
    for name, summary in {"lateness": pacing.lateness, "gap_error": pacing.gap_error}.items():
        for part in SENDER_QUANTILES if summary is not None else ():
            row[f"send_{name}_{part}_ms"] = getattr(summary, part) / _PS_PER_MS
    return row


def toll_columns(toll: Toll | None) -> dict[str, Any]:
    """Return what a generator cost."""
    if toll is None:
        return {}
    return {
        "send_processors": toll.processors,
        "send_switches_per_second": toll.switches_per_second,
        "send_involuntary_switches_per_second": toll.involuntary_per_second,
        "send_together_share": toll.together_share,
    }


def interval_columns(counts: Intervals, place: int) -> dict[str, Any]:
    """Return what was counted and measured in the interval at `place`; what packets do not tell is left out."""
    return _interval_times(counts, place) | _counted(counts, place)


def _distribution(name: str, summary: Summary | Spread | None) -> dict[str, Any]:
    if summary is None:
        return {}
    values = {part: getattr(summary, part, None) for part in ("mean", "min", "max", "std", "p50", "p90", "p99")}
    known = {f"{name}_{part}_ms": value / _PS_PER_MS for part, value in values.items() if value is not None}
    return {f"{name}_count": summary.count, **known}


def _lengths(name: str, lengths: Lengths | None) -> dict[str, Any]:
    """Losses in a row or extents of reordering; without any there is no mean and no greatest one."""
    if lengths is None:
        return {}
    values = {f"{name}_mean": lengths.mean, f"{name}_max": lengths.max} if lengths.count else {}
    return {f"{name}_count": lengths.count, **values}


def _counted(counts: Intervals, place: int) -> dict[str, int]:
    """Return the counts of one interval (frames, bytes, lost, reordered and duplicate packets) that the receiver
    made."""
    series = {"frames": counts.frames, "network_bytes": counts.network_bytes, "wire_bytes": counts.wire_bytes}
    series |= {"lost_packets": counts.lost, "reordered_packets": counts.reordered}
    series |= {"duplicate_packets": counts.duplicates}
    return {name: values[place] for name, values in series.items() if place < len(values)}


def _interval_times(counts: Intervals, place: int) -> dict[str, float]:
    """Delay, its variation and round trips in one interval, where packets tell."""
    series: dict[str, Sequence[float | None]] = {
        "delay_mean_ms": counts.delays_ps,
        "delay_min_ms": counts.delays_min_ps,
        "delay_max_ms": counts.delays_max_ps,
        "jitter_rfc4689_mean_ms": counts.jitters_rfc4689_ps,
        "jitter_rfc3550_ms": counts.jitters_rfc3550_ps,
        "delay_variation_mean_ms": counts.delay_variations_ps,
        "delay_variation_min_ms": counts.delay_variations_min_ps,
        "delay_variation_max_ms": counts.delay_variations_max_ps,
        "rtt_mean_ms": counts.rtts_ps,
        "rtt_min_ms": counts.rtts_min_ps,
        "rtt_max_ms": counts.rtts_max_ps,
    }
    found = {name: values[place] if place < len(values) else None for name, values in series.items()}
    return {name: value / _PS_PER_MS for name, value in found.items() if value is not None}
