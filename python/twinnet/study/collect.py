"""From what apps and programs report to the tables of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from twinnet.bandwidth.truth import truth
from twinnet.results.flow_report import AppReport, FlowReport, Intervals, Lengths, Spread, Summary
from twinnet.results.port_samples import PortSamples
from twinnet.study.lost_packets import with_all_losses
from twinnet.study.packet_table import packet_frame
from twinnet.study.specification import Traffic
from twinnet.study.tables import PORT_SAMPLES, SENDER_QUANTILES, table

__all__ = ["PathCounts", "PlannedFlow", "Tables", "collect"]

_PS_PER_SECOND = 1e12
_PS_PER_MS = 1e9
_RECEIVING_ROLES = ("sink", "client")


@dataclass(frozen=True)
class PlannedFlow:
    """A flow that was started.

    Attributes
    ----------
    entry
        The traffic of the study that it belongs to.
    source
        The sending host (the client for HTTP).
    number
        Its number in reports; `None` where the program tells none.
    address
        The sending host's address.
    handle
        What ends it early; `None` for a program.
    reports
        What a program reported; apps report through the lab.
    path_mtu
        The least MTU on its way, in bytes; `None` when that is not known.
    """

    entry: Traffic
    source: str
    number: int | None
    address: str
    handle: Any = None
    reports: tuple[FlowReport, ...] = ()
    path_mtu: int | None = None

    @property
    def protocol(self) -> str:
        """The protocol, as tables name it."""
        return self.entry.protocol


@dataclass(frozen=True)
class PathCounts:
    """What the fabric counted at the sending ports of a path, and the capacities of their links in bit/s."""

    samples: PortSamples
    capacities: Mapping[str, float]


@dataclass(frozen=True)
class Tables:
    """The tables of a run."""

    flows: pl.DataFrame
    intervals: pl.DataFrame
    port_samples: pl.DataFrame
    packets: pl.DataFrame


def collect(
    reports: Iterable[AppReport],
    planned: Sequence[PlannedFlow],
    samples: PortSamples | None,
    zero_ps: int,
    end_ps: int,
    processors: Mapping[str, str] | None = None,
    path: PathCounts | None = None,
) -> Tables:
    """Put reports into tables, with times from the start of traffic, and with all that was sent and did not arrive as
    lost.

    Parameters
    ----------
    reports
        What the apps of the lab report.
    planned
        The flows that were started.
    samples
        What the lab's sampler counted at ports.
    zero_ps, end_ps
        When traffic began on the lab's clock, and how long traffic of known duration lasts.
    processors
        Of hosts whose apps sent in real time: ``own`` or ``shared``.
    path
        What the fabric counted on the path whose available bandwidth is estimated.
    """
    seen = [
        (flow, replace(report, errors=(*report.errors, *_errors_apart(app))))
        for app in reports
        for report in app.flows
        if (flow := _owner(report, planned)) is not None
    ]
    seen += [(flow, report) for flow in planned for report in flow.reports]
    seen = with_all_losses(seen, planned)
    flows = [_flow_row(flow, report, zero_ps, processors or {}) | _bandwidth(report, path) for flow, report in seen]
    intervals = [row for flow, report in seen for row in _interval_rows(flow, report, zero_ps)]
    received = {(row["name"], row["from_host"]) for row in intervals if row["role"] in _RECEIVING_ROLES}
    for flow in planned:
        if (flow.entry.name, flow.source) not in received and flow.entry.app not in ("ping", "bandwidth"):
            # A flow of which nothing arrived has a throughput all the same: zero.
            intervals.append(_empty_interval(flow, end_ps))
    packets = [packet_frame(flow.entry.name, flow.protocol, flow.source, report, zero_ps) for flow, report in seen]
    return Tables(
        table("flows", flows),
        table("intervals", intervals),
        table("port_samples", _port_rows(samples, zero_ps)),
        pl.concat([table("packets", []), *(frame for frame in packets if frame is not None)]),
    )


def _errors_apart(app: AppReport) -> list[str]:
    """What went wrong with no flow in particular, such as datagrams for which the host had no room: it may have
    befallen each of them."""
    return [error for report in app.flows if report.flow is None and report.source is None for error in report.errors]


def _owner(report: FlowReport, planned: Sequence[PlannedFlow]) -> PlannedFlow | None:
    """The planned flow that `report` is about: by its number, else by protocol and sender."""
    for flow in planned:
        if (
            not flow.reports
            and flow.number is not None
            and flow.number == report.flow
            and flow.protocol == report.protocol
        ):
            return flow
    for flow in planned:
        same = flow.protocol == report.protocol and report.source is not None
        if same and not flow.reports and not report.flow and _host_part(str(report.source)) == flow.address:
            return flow
    return None


def _host_part(address: str) -> str:
    """The address without a port: `10.0.0.1:4000` or `[fd00::1]:4000`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _flow_row(flow: PlannedFlow, report: FlowReport, zero_ps: int, processors: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "flow": report.flow or flow.number,
        "name": flow.entry.name,
        "tool": flow.entry.using,
        "protocol": flow.protocol,
        "role": report.role,
        "from_host": flow.source,
        "to_host": flow.entry.to,
        "port": flow.entry.port,
        "start_s": _since(report.start_ps, zero_ps),
        "end_s": _since(report.end_ps, zero_ps),
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
    return row | _sender(flow, report, processors)


def _bandwidth(report: FlowReport, path: PathCounts | None) -> dict[str, Any]:
    """An estimate of available bandwidth, and how far it is from what the fabric counted."""
    told = report.bandwidth
    if told is None:
        return {}
    row: dict[str, Any] = {
        "available_bandwidth_bps": told.estimate_bps,
        "available_bandwidth_low_bps": told.low_bps,
        "available_bandwidth_high_bps": told.high_bps,
        "probe_bytes": told.probe_bytes + told.control_bytes,
        "probe_window_s": told.window_s,
    }
    if path is not None and told.window_s > 0:
        row["available_bandwidth_true_bps"] = truth(path.samples, path.capacities, told).available_bps
    return row


def _sender(flow: PlannedFlow, report: FlowReport, processors: Mapping[str, str]) -> dict[str, Any]:
    """How well a source kept its schedule, and whose its processor was."""
    if flow.entry.using != "apps" or report.role not in ("source", "client"):
        return {}
    row: dict[str, Any] = {"sender_processor": processors.get(flow.source)}
    if report.pacing is None:
        return row
    row["kept_up"] = report.pacing.kept_up
    for name, summary in {"lateness": report.pacing.lateness, "gap_error": report.pacing.gap_error}.items():
        for part in SENDER_QUANTILES if summary is not None else ():
            row[f"send_{name}_{part}_ms"] = getattr(summary, part) / _PS_PER_MS
    return row


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
    told = {f"{name}_mean": lengths.mean, f"{name}_max": lengths.max} if lengths.count else {}
    return {f"{name}_count": lengths.count, **told}


def _since(moment_ps: int | None, zero_ps: int) -> float | None:
    return None if moment_ps is None else (moment_ps - zero_ps) / _PS_PER_SECOND


def _interval_rows(flow: PlannedFlow, report: FlowReport, zero_ps: int) -> Iterable[dict[str, Any]]:
    counts = report.intervals
    if counts is None:
        if report.bytes is not None and report.start_ps is not None and report.end_ps is not None:
            # A program that tells only its total: spread over the time that it took.
            row = _whole_interval(flow, report.role, report.bytes, report.start_ps - zero_ps, report.end_ps - zero_ps)
            yield row | _path(flow, report)
        return
    for place, size in enumerate(counts.bytes):
        start_ps = (counts.first + place) * counts.interval_ps - zero_ps
        yield {
            "flow": report.flow or flow.number,
            "name": flow.entry.name,
            "protocol": flow.protocol,
            "role": report.role,
            "from_host": flow.source,
            "start_s": start_ps / _PS_PER_SECOND,
            "length_s": counts.interval_ps / _PS_PER_SECOND,
            "payload_bytes": size,
            "packets": counts.packets[place] if place < len(counts.packets) else None,
            "last_arrival_s": _last_arrival_s(counts, place, zero_ps),
            **_interval_times(counts, place),
            **_counted(counts, place),
            **_path(flow, report),
        }


def _path(flow: PlannedFlow, report: FlowReport) -> dict[str, int | None]:
    """What the bytes of lower layers follow from, where they were not counted."""
    address = _host_part(str(report.source)) if report.source is not None else flow.address
    return {"ip_version": 6 if ":" in address else 4, "path_mtu": flow.path_mtu}


def _counted(counts: Intervals, place: int) -> dict[str, int]:
    """What carried the datagrams of one interval, and what their numbers tell, where the receiver counted that."""
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


def _last_arrival_s(counts: Intervals, place: int, zero_ps: int) -> float | None:
    last_ps = counts.last_ps[place] if place < len(counts.last_ps) else 0
    return (last_ps - zero_ps) / _PS_PER_SECOND if last_ps else None


def _empty_interval(flow: PlannedFlow, end_ps: int) -> dict[str, Any]:
    return _whole_interval(flow, "client" if flow.entry.app in ("http", "video") else "sink", 0, 0, end_ps)


def _whole_interval(flow: PlannedFlow, role: str, size: int, start_ps: int, end_ps: int) -> dict[str, Any]:
    return {
        "flow": flow.number,
        "name": flow.entry.name,
        "protocol": flow.protocol,
        "role": role,
        "from_host": flow.source,
        "start_s": start_ps / _PS_PER_SECOND,
        "length_s": max(1, end_ps - start_ps) / _PS_PER_SECOND,
        "payload_bytes": size,
        "packets": None,
    }


def _port_rows(samples: PortSamples | None, zero_ps: int) -> list[dict[str, Any]]:
    if samples is None:
        return []
    zero_s, interval_s = zero_ps / _PS_PER_SECOND, samples.interval_s
    rows: list[dict[str, Any]] = []
    for row in samples.rows():
        if row["start_s"] + interval_s > zero_s:
            start_ps = round(row["start_s"] * _PS_PER_SECOND) - zero_ps
            kept = {name: row[name] for name in PORT_SAMPLES if name in row}
            rows.append(kept | {"start_s": start_ps / _PS_PER_SECOND})
    return rows
