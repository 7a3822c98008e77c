"""Losses of flows of datagrams, counted from what their sources sent: receivers know of nothing after the last
arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from twinnet.results.flow_report import FlowReport
from twinnet.results.media_report import Rtp

if TYPE_CHECKING:
    from twinnet.study.collect import PlannedFlow

__all__ = ["with_all_losses"]

_PROTOCOLS = ("udp", "rtp")

_Seen = tuple["PlannedFlow", FlowReport]


def with_all_losses(seen: Sequence[_Seen], planned: Sequence[PlannedFlow]) -> list[_Seen]:
    """Return `seen` with the losses of built-in UDP and RTP flows counted as packets sent less packets received.

    A flow of which nothing arrived gets the report that its receiver could not write. Both ends must have reported
    when the traffic had ended and what was on its way had time to arrive: what had not arrived by then is lost.

    Parameters
    ----------
    seen
        What both ends of flows reported.
    planned
        The flows that were started.
    """
    found = list(seen)
    for flow in planned:
        if flow.entry.using != "apps" or flow.protocol not in _PROTOCOLS or flow.number is None:
            continue
        own = [
            (place, report) for place, (owner, report) in enumerate(found) if owner is flow and report.flow is not None
        ]
        source = next((report for _, report in own if report.role == "source"), None)
        if source is None or not source.packets:
            continue
        sinks = [(place, report) for place, report in own if report.role == "sink"]
        if not sinks:
            found.append((flow, _nothing_arrived(source, source.packets)))
            continue
        # Of several the one that names the sender as it names itself: another may be of a forged or damaged header.
        place, sink = next((one for one in sinks if one[1].source == source.source), sinks[0])
        # More than were sent arrived where a duplicate came too late to be known as one.
        lost = max(0, source.packets - (sink.packets or 0))
        found[place] = (flow, replace(sink, lost=lost, rtp=_with_all_frames(sink.rtp, source.frames_sent)))
    return found


def _with_all_frames(rtp: Rtp | None, sent: int | None) -> Rtp | None:
    """Count as lost the video frames of which no part arrived, those after the last arrival too."""
    if rtp is None or sent is None or rtp.frames_complete is None:
        return rtp
    return replace(rtp, frames_lost=max(0, sent - rtp.frames_complete - (rtp.frames_damaged or 0)))


def _nothing_arrived(source: FlowReport, sent: int) -> FlowReport:
    return FlowReport(
        flow=source.flow,
        protocol=source.protocol,
        role="sink",
        source=source.source,
        target=source.target,
        packets=0,
        bytes=0,
        lost=sent,
        reordered=0,
        duplicates=0,
        rtp=_no_frame_of(source.frames_sent),
        errors=("nothing of this flow arrived",),
    )


def _no_frame_of(sent: int | None) -> Rtp | None:
    """Return the video counts of a receiver that got no packet; it does not know the stream."""
    if sent is None:
        return None
    return Rtp(0, 0, 0, None, None, frames_complete=0, frames_damaged=0, frames_lost=sent)
