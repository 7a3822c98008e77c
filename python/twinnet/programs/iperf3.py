"""iperf3: TCP and UDP traffic, reported as JSON by both ends."""

from __future__ import annotations

import json
from typing import Any, cast

from twinnet.errors import ProgramFailed, ReportUnreadable
from twinnet.programs.transfer import Output, Transfer, interval_index
from twinnet.results.distributions import Summary
from twinnet.results.flow_report import FlowReport
from twinnet.results.flow_series import Intervals
from twinnet.units import Duration, Rate, Size, duration_ps, rate_bps, size_bytes

__all__ = ["iperf3", "read_report"]


def iperf3(
    client: str,
    server: str,
    *,
    duration: Duration = "10 s",
    rate: Rate | None = None,
    udp: bool = False,
    payload: Size | None = None,
    port: int = 5201,
    interval: Duration = "1 s",
    flow: int = 0,
    congestion_control: str | None = None,
) -> Transfer:
    """Return a transfer by iperf3 from host `client` to host `server`; one server takes one client at a time. TCP uses
    the host's congestion control or the one that is named."""
    seconds, every = duration_ps(duration, "duration") / 1e12, duration_ps(interval, "interval") / 1e12
    options = ["-u"] if udp else []
    options += ["-b", str(rate_bps(rate, "rate"))] if rate is not None else []
    options += ["-l", str(size_bytes(payload, "payload"))] if payload is not None else []
    options += ["-C", congestion_control] if congestion_control is not None and not udp else []
    common = ("-p", str(port), "-i", f"{every:g}", "--json")
    return Transfer(
        "iperf3",
        client,
        server,
        ("iperf3", "-c", "{to}", "-t", f"{seconds:g}", *options, *common),
        _reports,
        server_argv=("iperf3", "-s", "-1", *common),
        # The control connection is TCP for both: that is what the server listens on.
        protocol="tcp",
        port=port,
        flow=flow,
        may_fail=True,
        server_ends=True,
    )


def read_report(text: str) -> dict[str, Any]:
    """Return the JSON report in `text`.

    Raises
    ------
    ProgramFailed
        When the report is an error.
    ReportUnreadable
        When it is not a report.
    """
    try:
        parsed: Any = json.loads(text)
    except ValueError:
        said = text.strip().splitlines()[-1:] or ["nothing"]
        raise ReportUnreadable(f"iperf3 wrote no JSON: {said[0][:120]!r}") from None
    report = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    if "end" not in report:
        raise ReportUnreadable("iperf3 wrote JSON of an unknown form", "this adapter knows versions 3.1 and later")
    if report.get("error"):
        raise ProgramFailed(f"iperf3: {report['error']}")
    return report


def _reports(transfer: Transfer, output: Output) -> list[FlowReport]:
    reports = [_report(transfer, read_report(output.client), "source", output.start_ps)]
    if output.server.strip():
        reports.append(_report(transfer, read_report(output.server), "sink", output.start_ps))
    return reports


def _report(transfer: Transfer, report: dict[str, Any], role: str, start_ps: int) -> FlowReport:
    try:
        setup, end = report["start"]["test_start"], report["end"]
        ends = report["start"]["connected"][0]
        is_udp = setup["protocol"] == "UDP"
        total = end["sum_received" if role == "sink" else "sum_sent"] if "sum_sent" in end else end["sum"]
        parts = [one["sum"] for one in report["intervals"]]
        length_ps = round(parts[0]["seconds"] * 1e3) * 10**9 if parts else 10**12
        own, peer = ends["local_host"], ends["remote_host"]
        lost = int(total["lost_packets"]) if is_udp and role == "sink" else None
        sent = int(total["packets"]) if is_udp else None
        return FlowReport(
            flow=transfer.flow,
            protocol="udp" if is_udp else "tcp",
            role=role,
            source=own if role == "source" else peer,
            target=peer if role == "source" else own,
            start_ps=start_ps,
            end_ps=start_ps + round(float(total["seconds"]) * 1e12),
            packets=sent - (lost or 0) if sent is not None else None,
            bytes=int(total["bytes"]),
            lost=lost,
            reordered=sum(one["udp"].get("out_of_order", 0) for one in end["streams"]) if lost is not None else None,
            rtt=_rtt(end["streams"]) if not is_udp and role == "source" else None,
            jitter_rfc3550_ps=float(total["jitter_ms"]) * 1e9 if lost is not None else None,
            intervals=Intervals(
                length_ps,
                interval_index(start_ps, length_ps),
                tuple(int(one["bytes"]) for one in parts),
                tuple(int(one.get("packets", 0)) for one in parts) if is_udp else (),
            ),
            raw=end,
        )
    except (KeyError, IndexError, TypeError) as error:
        said = f"iperf3's report lacks {error}"
        raise ReportUnreadable(said, "this adapter knows versions 3.1 and later") from None


def _rtt(streams: list[dict[str, Any]]) -> Summary | None:
    """Return the round-trip times that the sender's kernel saw; iperf3 gives only their mean and bounds, in
    microseconds."""
    sender: dict[str, Any] = streams[0].get("sender", {}) if streams else {}
    if not sender.get("mean_rtt"):
        return None
    return Summary(1, sender["mean_rtt"] * 1e6, sender["min_rtt"] * 1e6, sender["max_rtt"] * 1e6)
