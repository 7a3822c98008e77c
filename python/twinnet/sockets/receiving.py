"""Receives flows on real sockets of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinnet import apps
from twinnet.app_report import FlowReport
from twinnet.apps import App
from twinnet.errors import LabError
from twinnet.sockets.clocks import ClockComparison, clock_server
from twinnet.sockets.machine import HERE, Machine
from twinnet.units import duration_ps

__all__ = ["Received", "ReceivedFlow", "receive"]

_TURN_PS = 200_000_000_000


@dataclass(frozen=True)
class ReceivedFlow:
    """One flow as this machine saw it.

    Parameters
    ----------
    port
        Where it arrived.
    report
        What the sink measured; without one-way delay where the sender's clock is not known.
    clock
        How the sender's clock compares, where it told.
    """

    port: int
    report: FlowReport
    clock: ClockComparison | None

    @property
    def delay_known(self) -> bool:
        """Whether the one-way delay means something."""
        return self.clock is not None and (self.report.protocol == "udp" or self.clock.same_clock)


@dataclass(frozen=True)
class Received:
    """All flows of one call.

    Parameters
    ----------
    flows
        In the order in which they came, by port.
    errors
        What went wrong with no flow in particular, such as datagrams that this machine had no room for.
    """

    flows: Sequence[ReceivedFlow]
    errors: Sequence[str]


def receive(
    *,
    udp: Sequence[int] = (5003, 5006),
    tcp: Sequence[int] = (5002,),
    rtp: Sequence[int] = (5004,),
    clock_port: int | None = None,
    interval: str = "1 s",
    record_packets: int | None = None,
    duration: str | None = None,
    idle: str | None = None,
    ready: Any = None,
) -> Received:
    """Receive until `duration` is over, nothing has come for `idle` after the first arrival, or an interrupt.

    Parameters
    ----------
    udp, tcp, rtp
        Ports to listen on.
    clock_port
        Where to answer about this machine's clock; nowhere when it is ``None``.
    interval, record_packets
        As for :func:`twinnet.apps.udp_sink`.
    duration, idle
        When to end.
    ready
        Called without arguments when all ports are open.

    Raises
    ------
    LabError
        A port is in use.
    """
    sinks: list[tuple[int, App]] = [
        *((port, apps.udp_sink(HERE, port=port, interval=interval, record_packets=record_packets)) for port in udp),
        *((port, apps.tcp_sink(HERE, port=port, interval=interval)) for port in tcp),
        *((port, apps.rtp_sink(HERE, port=port, interval=interval, record_packets=record_packets)) for port in rtp),
    ]
    if clock_port is not None:
        sinks.append((clock_port, clock_server(clock_port)))
    with Machine() as machine:
        numbers = [machine.start(app) for _, app in sinks]
        _check_open(machine, sinks, numbers)
        if ready is not None:
            ready()
        with contextlib.suppress(KeyboardInterrupt):
            _wait(machine, numbers, duration, idle)
        for number in numbers:
            machine.stop(number)
        machine.wait(numbers)
        reports = machine.reports(numbers)
    clocks = _clocks(reports[-1].flows) if clock_port is not None else {}
    found: list[ReceivedFlow] = []
    errors: list[str] = []
    for (port, _), report in zip(sinks, reports, strict=True):
        for flow in report.flows:
            if flow.protocol == "clock":
                continue
            if flow.source is None:
                errors += [f"port {port}: {error}" for error in flow.errors]
                continue
            found.append(_judged(port, flow, clocks.get(_address(flow.source))))
    return Received(found, errors)


def _judged(port: int, flow: FlowReport, clock: ClockComparison | None) -> ReceivedFlow:
    """Leave out one-way delays that rest on two clocks which were not compared."""
    judged = ReceivedFlow(port, flow, clock)
    if judged.delay_known or flow.delay is None:
        return judged
    raw: dict[str, Any] = {name: value for name, value in flow.raw.items() if name != "delay_ps"}
    intervals: dict[str, Any] = raw.get("intervals") or {}
    times: dict[str, Any] = intervals.get("times_ps") or {}
    if times:
        known = {name: value for name, value in times.items() if not name.startswith("delay")}
        raw["intervals"] = {**intervals, "times_ps": known}
    return replace(judged, report=FlowReport.from_spec(raw))


def _check_open(machine: Machine, sinks: Sequence[tuple[int, App]], numbers: Sequence[int]) -> None:
    for (port, app), report in zip(sinks, machine.reports(numbers), strict=True):
        if report.finished:
            told = "; ".join(error for flow in report.flows for error in flow.errors)
            kind = app.kind.partition("_")[0].upper()
            raise LabError(
                f"{kind} port {port} cannot be used: {told}",
                f"end what uses it (ss -lnp sport = :{port}), or choose another port",
                "PortNotUsable",
            )


def _wait(machine: Machine, numbers: Sequence[int], duration: str | None, idle: str | None) -> None:
    end_ps = None if duration is None else machine.now_ps() + duration_ps(duration)
    idle_ps = None if idle is None else duration_ps(idle, "idle")
    while end_ps is None or machine.now_ps() < end_ps:
        turn_ps = machine.now_ps() + _TURN_PS
        machine.wait(numbers, turn_ps if end_ps is None else min(turn_ps, end_ps))
        if idle_ps is None:
            continue
        lasts = [
            flow.end_ps for report in machine.reports(numbers) for flow in report.flows if flow.protocol != "clock"
        ]
        last_ps = max((last for last in lasts if last is not None), default=None)
        if last_ps is not None and machine.now_ps() - last_ps >= idle_ps:
            return


def _clocks(rows: Sequence[FlowReport]) -> dict[str, ClockComparison]:
    found = {row.source: ClockComparison.from_report(row) for row in rows if row.source is not None}
    return {source: clock for source, clock in found.items() if clock is not None}


def _address(text: str) -> str:
    """The address of ``address:port``."""
    return text.rpartition(":")[0].strip("[]")
