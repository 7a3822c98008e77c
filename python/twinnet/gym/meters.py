"""Measurements of a lab from one moment to the next, for observations and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.errors import BadValue
from twinnet.lab import Lab
from twinnet.lab.parts import AppHandle
from twinnet.results.distributions import Summary

__all__ = ["FlowMeter", "FlowReading", "LinkMeters", "LinkReading"]

_NOTHING_YET: Mapping[str, Any] = {}


@dataclass(frozen=True)
class LinkReading:
    """One direction of a link since the last reading.

    Attributes
    ----------
    seconds
        How long ago that was.
    rate_bps
        What was sent, Ethernet frames with preamble and gap, in bit/s.
    frames
        How many were sent.
    dropped
        Frames that the queue dropped, and that the link lost.
    backlog_bytes
        What waits in the queue now.
    """

    seconds: float
    rate_bps: float
    frames: int
    dropped: int
    backlog_bytes: int


class LinkMeters:
    """Reads directions of links; the first reading is of the time since the meters were made.

    Parameters
    ----------
    lab
        The lab.
    directions
        From which node to which: ``("s1", "s2")``.

    Raises
    ------
    UnknownNode
        When there is no such node.
    BadTopology
        When the two are not linked.
    """

    def __init__(self, lab: Lab, *directions: tuple[str, str]) -> None:
        self._lab = lab
        found = (lab.layout.link(a, b) for a, b in directions)
        self._places = [(index, "ba" if turned else "ab") for index, turned in found]
        self._at_ps, self._counters = self._now()

    def read(self) -> list[LinkReading]:
        """Return what happened since the last reading, in the order of the directions."""
        (before_ps, before), (now_ps, now) = (self._at_ps, self._counters), self._now()
        self._at_ps, self._counters = now_ps, now
        seconds = (now_ps - before_ps) / 1e12
        return [self._reading(seconds, then, here) for then, here in zip(before, now, strict=True)]

    def _now(self) -> tuple[int, list[Mapping[str, int]]]:
        now_ps, rows = self._lab.now_ps(), self._lab.links()
        return now_ps, [rows[index][way]["counters"] for index, way in self._places]

    @staticmethod
    def _reading(seconds: float, before: Mapping[str, int], now: Mapping[str, int]) -> LinkReading:
        bits = 8 * (now["wire_bytes"] - before["wire_bytes"])
        gone = [name for name in now if name.startswith("dropped_") or name == "lost"]
        return LinkReading(
            seconds=seconds,
            rate_bps=bits / seconds if seconds > 0 else 0.0,
            frames=now["frames"] - before["frames"],
            dropped=sum(now[name] - before[name] for name in gone),
            backlog_bytes=now["backlog_bytes"],
        )


@dataclass(frozen=True)
class FlowReading:
    """A flow since the last reading, as its receiver saw it.

    Attributes
    ----------
    seconds
        How long ago that was.
    rate_bps
        Payload that arrived, in bit/s.
    packets
        Datagrams that arrived; 0 for TCP, which has none.
    lost
        Datagrams found lost; negative when more came late than were lost. 0 for TCP.
    delay_s
        The mean of their one-way delays in seconds; ``None`` where none arrived.
    """

    seconds: float
    rate_bps: float
    packets: int
    lost: int
    delay_s: float | None


class FlowMeter:
    """Reads a flow that was started; the first reading is of the time since the meter was made.

    Parameters
    ----------
    lab
        The lab.
    flow
        What :meth:`twinnet.Lab.start` returned.

    Raises
    ------
    BadValue
        When the flow has no receiver that counts, as a ping.
    """

    def __init__(self, lab: Lab, flow: AppHandle) -> None:
        if flow.receiver is None or flow.flow is None:
            raise BadValue(f"{flow} has no receiver that counts", "measure a flow of TCP, UDP or RTP")
        self._lab, self._receiver, self._flow = lab, flow.receiver, flow.flow
        self._last = self._now()

    def read(self) -> FlowReading:
        """Return what happened since the last reading."""
        before, now = self._last, self._now()
        self._last = now
        seconds = (now.at_ps - before.at_ps) / 1e12
        arrived = now.delays - before.delays
        return FlowReading(
            seconds=seconds,
            rate_bps=8 * (now.bytes - before.bytes) / seconds if seconds > 0 else 0.0,
            packets=now.packets - before.packets,
            lost=now.lost - before.lost,
            delay_s=(now.delay_sum_ps - before.delay_sum_ps) / arrived / 1e12 if arrived > 0 else None,
        )

    def _now(self) -> _Counted:
        # As it came: an object of the whole report costs more than the answer.
        [row] = self._lab.connection.app_report(apps=[self._receiver])
        report: Mapping[str, Any] = row.get("report") or {}
        flows: list[Mapping[str, Any]] = report.get("flows") or []
        flow = next((one for one in flows if one.get("flow") == self._flow), _NOTHING_YET)
        delay = Summary.from_spec(flow.get("delay_ps"))
        return _Counted(
            at_ps=self._lab.now_ps(),
            bytes=flow.get("bytes") or 0,
            packets=flow.get("packets") or 0,
            lost=flow.get("lost") or 0,
            delays=delay.count if delay is not None else 0,
            delay_sum_ps=delay.count * delay.mean if delay is not None else 0.0,
        )


@dataclass(frozen=True)
class _Counted:
    """What had been counted at a moment."""

    at_ps: int
    bytes: int
    packets: int
    lost: int
    delays: int
    delay_sum_ps: float
