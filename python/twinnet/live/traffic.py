"""What runs in a lab, for the page's tables: the flows of apps, programs, and connections with controllers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.results.flow_report import AppReport, FlowReport

__all__ = ["controllers_now", "traffic_now"]


def traffic_now(lab: Lab) -> dict[str, Any]:
    """Return ``now_s``, the lab's time in seconds, ``flows``, one row for each end of a flow of an app, and
    ``programs``, one row for each program.

    The row of a flow has ``app``, its number, ``key``, ``host``, ``what``, ``ends`` (addresses), ``finished``,
    ``bytes`` of payload so far, ``lost`` packets, ``rtt_ms`` and ``window`` (in segments). The last two are those
    of the newest sample where the app keeps samples of its TCP, and the round trip is else the mean so far. What an
    end does not know is ``None``.

    Raises
    ------
    LabClosed
        The lab has ended.
    TimeoutError
        It does not answer.
    """
    now_s = lab.now()
    flows = [_flow_row(report, flow) for report in lab.reports() for flow in report.flows]
    programs = [
        {"host": job["host"], "what": shlex.join(job["argv"]), "state": job["state"], "job": job["job"]}
        for job in lab.jobs()
    ]
    return {"now_s": now_s, "flows": flows, "programs": programs}


def _flow_row(report: AppReport, flow: FlowReport) -> dict[str, Any]:
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
    }


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
