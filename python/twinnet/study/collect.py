"""From what apps and programs report to the tables of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from twinnet.bandwidth.truth import Capacity, sent_bytes, truth
from twinnet.errors import LabError
from twinnet.results.flow_columns import interval_columns, measured_columns, pacing_columns, toll_columns
from twinnet.results.flow_report import AppReport, FlowReport
from twinnet.results.flow_series import Intervals
from twinnet.results.packet_table import packet_frame
from twinnet.results.port_samples import PortSamples
from twinnet.results.tables import PORT_SAMPLES, TCP, table
from twinnet.study.lost_packets import with_all_losses
from twinnet.study.own_source import OWN_OF_TRAFFIC
from twinnet.study.probe_harm import harm_to_others
from twinnet.study.specification import Traffic
from twinnet.traffic.own_code import brought

__all__ = ["PathCounts", "PlannedFlow", "Tables", "check_own_code", "collect"]

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
        Its number in reports; `None` where the program gives none.
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
    """The counts of the fabric at the sending ports of a path, and the capacities of their links."""

    samples: PortSamples
    capacities: Mapping[str, Capacity]


@dataclass(frozen=True)
class Tables:
    """The tables of a run."""

    flows: pl.DataFrame
    intervals: pl.DataFrame
    port_samples: pl.DataFrame
    packets: pl.DataFrame
    tcp: pl.DataFrame


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
    seen = with_all_losses(_by_flow(reports, planned), planned)
    everybody = [report for _, report in seen]
    ended = _completed(seen)
    flows = [
        _flow_row(flow, report, zero_ps, processors or {})
        | _bandwidth(_with_probes(flow, report, path), path, everybody)
        | {"completed": ended.get((flow.entry.name, flow.source))}
        for flow, report in seen
    ]
    # Flow by flow: as a dictionary a row takes many times what it takes in a table, and there may be millions.
    counted = [
        (flow, report.role, rows)
        for flow, report in seen
        if not (rows := table("intervals", list(_interval_rows(flow, report, zero_ps)))).is_empty()
    ]
    received = {(flow.entry.name, flow.source) for flow, role, _ in counted if role in _RECEIVING_ROLES}
    # A flow of which nothing arrived has a throughput all the same: zero.
    nothing = [
        _empty_interval(flow, end_ps)
        for flow in planned
        if (flow.entry.name, flow.source) not in received and flow.entry.app not in ("ping", "bandwidth")
    ]
    packets = [packet_frame(flow.entry.name, flow.protocol, flow.source, report, zero_ps) for flow, report in seen]
    return Tables(
        table("flows", flows),
        pl.concat([*(rows for _, _, rows in counted), table("intervals", nothing)]),
        table("port_samples", _port_rows(samples, zero_ps)),
        pl.concat([table("packets", []), *(frame for frame in packets if frame is not None)]),
        pl.concat([table("tcp", []), *(_tcp_frame(flow, report, zero_ps) for flow, report in seen if report.tcp_info)]),
    )


def _by_flow(reports: Iterable[AppReport], planned: Sequence[PlannedFlow]) -> list[tuple[PlannedFlow, FlowReport]]:
    """What apps and programs reported, each with the flow that it is about."""
    of_apps = [
        (flow, replace(report, errors=(*report.errors, *_errors_apart(app))))
        for app in reports
        for report in app.flows
        if (flow := _owner(report, planned)) is not None
    ]
    return of_apps + [(flow, report) for flow in planned for report in flow.reports]


def check_own_code(reports: Iterable[AppReport], traffic: Sequence[Traffic]) -> None:
    """Raise `LabError` when Python of one's own in the hosts has failed: on the wall clock apps report it."""
    own = [brought(entry.sends.get(key)) for entry in traffic for key in OWN_OF_TRAFFIC]
    begins = tuple(f"{one.name} failed: " for one in own if one is not None)
    for flow in (flow for report in reports for flow in report.flows):
        gave_up = flow.bandwidth.gave_up if flow.bandwidth is not None else None
        for said in (*flow.errors, gave_up or ""):
            if begins and said.startswith(begins):
                raise LabError(said, "mend it", "OwnCodeFailed")


def _completed(seen: Sequence[tuple[PlannedFlow, FlowReport]]) -> dict[tuple[str, str], bool]:
    """Whether all that was to be transferred arrived, by traffic and source; nothing of traffic that a time ends."""
    found: dict[tuple[str, str], bool] = {}
    for flow, report in seen:
        size, count = flow.entry.transfer
        if size is None and count is None:
            continue
        key = (flow.entry.name, flow.source)
        arrived = report.role in _RECEIVING_ROLES and (
            (report.packets or 0) >= count if count is not None else (report.bytes or 0) >= (size or 0)
        )
        found[key] = found.get(key, False) or arrived
    return found


def _tcp_frame(flow: PlannedFlow, report: FlowReport, zero_ps: int) -> pl.DataFrame:
    """The states of a sender's TCP."""
    info = report.tcp_info
    if info is None:
        return table("tcp", [])
    names = {"name": flow.entry.name, "protocol": flow.protocol, "from_host": flow.source}
    frame = pl.DataFrame(
        {
            "at_s": [(at - zero_ps) / _PS_PER_SECOND for at in info.at_ps],
            "congestion_window_packets": info.congestion_windows,
            "slow_start_threshold_packets": info.slow_start_thresholds,
            "smoothed_rtt_ms": [one / _PS_PER_MS if one else None for one in info.smoothed_rtts_ps],
            "retransmitted_packets": info.retransmits,
        }
    ).with_columns(
        pl.lit(report.flow or flow.number).alias("flow"), *(pl.lit(one).alias(key) for key, one in names.items())
    )
    return frame.select(pl.col(column).cast(kind) for column, kind in TCP.items())


def _errors_apart(app: AppReport) -> list[str]:
    """Return the errors of no flow in particular, such as datagrams for which the host had no room: they may concern
    each of them."""
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
        same = flow.protocol == report.protocol
        if same and not flow.reports and not report.flow and report.source_address == flow.address:
            return flow
    return None


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
        **measured_columns(report),
    }
    return row | _sender(flow, report, processors)


def _with_probes(flow: PlannedFlow, report: FlowReport, path: PathCounts | None) -> FlowReport:
    """`report` with the probes of a program that does not tell them: all that the path's first port sent meanwhile."""
    estimate = report.bandwidth
    if estimate is None or path is None or flow.entry.using != "programs" or estimate.window_s <= 0:
        return report
    start_ps, end_ps = estimate.window_start_ps or 0, estimate.window_end_ps or 0
    probes = round(sent_bytes(path.samples, next(iter(path.capacities)), start_ps, end_ps))
    return replace(report, bandwidth=replace(estimate, probe_bytes=probes))


def _bandwidth(report: FlowReport, path: PathCounts | None, everybody: Sequence[FlowReport]) -> dict[str, Any]:
    """An estimate of available bandwidth, how far it is from what the fabric counted, and what it did to others."""
    estimate = report.bandwidth
    if estimate is None:
        return {}
    harm = harm_to_others(estimate, everybody)
    row: dict[str, Any] = {
        "available_bandwidth_bps": estimate.estimate_bps,
        "available_bandwidth_low_bps": estimate.low_bps,
        "available_bandwidth_high_bps": estimate.high_bps,
        "probe_bytes": estimate.probe_bytes + estimate.control_bytes,
        "probe_window_s": estimate.window_s,
        "probe_added_delay_ms": harm.delay_ms,
        "probe_added_loss": harm.loss,
        "probe_trains": estimate.trains,
        "probe_generated_share": estimate.generated_share,
        "probe_interruptions": estimate.interruptions,
        "probe_batched_trains": estimate.batched_trains,
        "probe_gave_up": estimate.gave_up,
    }
    if path is not None and estimate.window_s > 0:
        row["available_bandwidth_true_bps"] = truth(path.samples, path.capacities, estimate).available_bps
    return row


def _sender(flow: PlannedFlow, report: FlowReport, processors: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns about the source's accuracy in keeping its schedule, and about its processor."""
    if report.role not in ("source", "client"):
        return {}
    own = {"sender_processor": processors.get(flow.source)} if flow.entry.using == "apps" else {}
    return own | pacing_columns(report.pacing) | toll_columns(report.toll)


def _since(moment_ps: int | None, zero_ps: int) -> float | None:
    return None if moment_ps is None else (moment_ps - zero_ps) / _PS_PER_SECOND


def _interval_rows(flow: PlannedFlow, report: FlowReport, zero_ps: int) -> Iterable[dict[str, Any]]:
    counts = report.intervals
    if counts is None:
        if report.bytes is not None and report.start_ps is not None and report.end_ps is not None:
            # A program that gives only its total: spread over the time that it took.
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
            **interval_columns(counts, place),
            **_path(flow, report),
        }


def _path(flow: PlannedFlow, report: FlowReport) -> dict[str, int | None]:
    """Return the IP version and path MTU, from which the bytes of lower layers follow where they were not counted."""
    address = report.source_address or flow.address
    return {"ip_version": 6 if ":" in address else 4, "path_mtu": flow.path_mtu}


def _last_arrival_s(counts: Intervals, place: int, zero_ps: int) -> float | None:
    last_ps = counts.last_ps[place] if place < len(counts.last_ps) else 0
    return (last_ps - zero_ps) / _PS_PER_SECOND if last_ps else None


def _empty_interval(flow: PlannedFlow, end_ps: int) -> dict[str, Any]:
    return _whole_interval(flow, "client" if flow.entry.protocol == "http" else "sink", 0, 0, end_ps)


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
