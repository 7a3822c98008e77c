"""What runs in a lab, for the page's tables: the flows of apps, programs, and connections with controllers."""

from __future__ import annotations

import shlex
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.results.flow_report import AppReport, FlowReport

__all__ = ["controllers_now", "flow_row", "traffic_now"]

_PACKETS = {"udp": "udp", "rtp": "udp", "bandwidth": "udp", "tcp": "tcp", "http": "tcp", "icmp": "icmp"}
"""The packets of each protocol of a flow, as `Lab.follow` names them."""


def traffic_now(lab: Lab) -> dict[str, Any]:
    """Return ``now_s``, the lab's time in seconds, ``flows``, one row for each end of a flow of an app, and
    ``programs``, one row for each program.

    The row of a flow has ``app``, its number, ``key``, ``host``, ``what``, ``ends`` (addresses), ``finished``,
    ``bytes`` of payload so far, ``lost`` packets, ``rtt_ms`` and ``window`` (in segments). The last two are those
    of the newest sample where the app keeps samples of its TCP, and the round trip is else the mean so far. What an
    end does not know is ``None``. Where the host sends packets of the flow, ``follow`` has what they are followed by:
    ``from``, ``to``, ``protocol``, ``port`` and ``source_port``, as texts.

    Raises
    ------
    LabClosed
        The lab has ended.
    TimeoutError
        It does not answer.
    """
    now_s = lab.now()
    flows = [flow_row(report, flow) for report in lab.reports() for flow in report.flows]
    programs = [
        {"host": job["host"], "what": shlex.join(job["argv"]), "state": job["state"], "job": job["job"]}
        for job in lab.jobs()
    ]
    return {"now_s": now_s, "flows": flows, "programs": programs}


def flow_row(report: AppReport, flow: FlowReport) -> dict[str, Any]:
    """Return the row of one end of a flow, as :func:`traffic_now` has it."""
    info = flow.tcp_info
    rtts_ps = [one for one in info.smoothed_rtts_ps[-1:] if one] if info is not None else []
    rtt_ps = rtts_ps[0] if rtts_ps else flow.rtt.mean if flow.rtt is not None else None
    return {
        "app": report.app,
        "key": f"{report.app} {flow.flow} {flow.source} {flow.target}",
        "host": report.host,
        "what": f"{flow.protocol} {flow.role}",
        "ends": " to ".join(one for one in (flow.source, flow.target) if one),
        "finished": report.finished,
        "bytes": flow.bytes,
        "lost": flow.lost,
        "rtt_ms": None if rtt_ps is None else rtt_ps / 1e9,
        "window": info.congestion_windows[-1] if info is not None and info.congestion_windows else None,
        "follow": _follow(report.host, flow),
    }


def _follow(host: str, flow: FlowReport) -> dict[str, str] | None:
    """How the page follows the packets of a flow that `host` sends: data, or of a receiver of TCP its acknowledgements.
    ``None`` where it sends none, or the other end is not known."""
    protocol = _PACKETS.get(flow.protocol)
    ends = [_address_and_port(flow.source), _address_and_port(flow.target)]
    if flow.role not in ("source", "client"):
        protocol = protocol if protocol == "tcp" else None
        ends.reverse()
    (_, source_port), (address, port) = ends
    if protocol is None or not address or ip_address(address).is_unspecified:
        return None
    found = {"from": host, "to": address, "protocol": protocol, "port": port, "source_port": source_port}
    return {name: text for name, text in found.items() if text}


def _address_and_port(text: str | None) -> tuple[str, str]:
    """The parts of ``10.0.0.1:80``, ``[fd00::1]:80`` or an address alone; empty where there is none."""
    text = text or ""
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        return address, port.removeprefix(":")
    address, _, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return address, port


def controllers_now(lab: Lab) -> list[dict[str, Any]]:
    """Return the rows of :attr:`~twinnet.lab.parts.LabSwitch.controller_state` of all switches, each with ``switch``.

    Raises
    ------
    LabClosed
        The lab has ended.
    TimeoutError
        It does not answer.
    """
    return [{"switch": switch.name} | row for switch in lab.switches for row in switch.controller_state]
