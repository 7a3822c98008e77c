"""Receives flows on real sockets of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinnet.errors import LabError
from twinnet.results.flow_report import AppReport, FlowReport
from twinnet.sockets.clocks import ClockComparison, clock_server
from twinnet.sockets.delays import without_delays
from twinnet.sockets.machine import HERE, Machine
from twinnet.traffic import apps
from twinnet.traffic.app import App
from twinnet.units import duration_ps

__all__ = ["Received", "ReceivedFlow", "receive"]

_TURN_PS = 200_000_000_000


@dataclass(frozen=True)
class ReceivedFlow:
    """One flow as this machine saw it.

    Parameters
    ----------
    port
        The port that it arrived at.
    report
        What the sink measured; without one-way delay if the sender's clock is not known.
    clock
        How the sender's clock compares, where it says so for this flow.
    sent
        How many packets the sender says that it sent; ``None`` where it does not, or before the flow's end: what was
        lost after the last arrival is not known then.
    """

    port: int
    report: FlowReport
    clock: ClockComparison | None
    sent: int | None = None

    @property
    def delay_known(self) -> bool:
        """True if the one-way delay has a meaning."""
        return self.clock is not None and (self.report.protocol == "udp" or self.clock.same_clock)


@dataclass(frozen=True)
class Received:
    """All flows of one call.

    Parameters
    ----------
    flows
        The flows in order of arrival, by port.
    errors
        Errors that belong to no single flow, such as datagrams that this machine had no room for.
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
    """Receive until `duration` is over, nothing has arrived for `idle` after the first arrival, or an interrupt.

    Parameters
    ----------
    udp, tcp, rtp
        Ports to listen on.
    clock_port
        The port that answers about this machine's clock; ``None``: do not answer.
    interval, record_packets
        As for :func:`twinnet.traffic.apps.udp_sink`.
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
    return _received(sinks, reports, clock_port is not None)


def _received(sinks: Sequence[tuple[int, App]], reports: Sequence[AppReport], with_clock: bool) -> Received:
    """Every flow of the sinks' `reports`, and those of which nothing arrived but word by the clock's port, the last."""
    rows = _announced(reports[-1].flows) if with_clock else {}
    found: list[ReceivedFlow] = []
    errors: list[str] = []
    for (port, _), report in zip(sinks, reports, strict=True):
        for flow in report.flows:
            if flow.protocol == "clock":
                continue
            if flow.source is None:
                errors += [f"port {port}: {error}" for error in flow.errors]
                continue
            found.append(_judged(port, flow, rows.pop((flow.source, flow.flow), None)))
    protocols = {port: app.kind.partition("_")[0] for port, app in sinks if app.kind in ("udp_sink", "rtp_sink")}
    found += [flow for row in rows.values() if (flow := _nothing_arrived(row, protocols)) is not None]
    return Received(found, errors)


def _judged(port: int, flow: FlowReport, sender: FlowReport | None) -> ReceivedFlow:
    """Count as lost all that the sender says that it sent and that did not arrive, and leave out one-way delays that
    rest on two clocks which were not compared for this flow."""
    sent = sender.packets if sender is not None and flow.lost is not None else None
    if sent is not None:
        flow = FlowReport.from_spec({**flow.raw, "lost": max(0, sent - (flow.packets or 0))})
    judged = ReceivedFlow(port, flow, ClockComparison.from_report(sender) if sender is not None else None, sent)
    if judged.delay_known or flow.delay is None:
        return judged
    return replace(judged, report=FlowReport.from_spec(without_delays(flow.raw)))


def _check_open(machine: Machine, sinks: Sequence[tuple[int, App]], numbers: Sequence[int]) -> None:
    for (port, app), report in zip(sinks, machine.reports(numbers), strict=True):
        if report.finished:
            errors = "; ".join(error for flow in report.flows for error in flow.errors)
            kind = app.kind.partition("_")[0].upper()
            raise LabError(
                f"{kind} port {port} cannot be used: {errors}",
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


def _announced(rows: Sequence[FlowReport]) -> dict[tuple[str, int | None], FlowReport]:
    """Return the senders' reports by the flow's sender and number. They include what the senders found of their
    clocks: a comparison holds only for the flows that it was made for, not for other traffic from that address."""
    return {(row.source, row.flow): row for row in rows if row.source is not None and row.flow is not None}


def _nothing_arrived(sender: FlowReport, protocols: Mapping[int, str]) -> ReceivedFlow | None:
    """A flow that was sent to one of our ports and of which nothing came."""
    port = int((sender.target or ":0").rpartition(":")[2])
    if not sender.packets or port not in protocols:
        return None
    spec = {"flow": sender.flow, "from": sender.source, "protocol": protocols[port], "role": "sink", "bytes": 0}
    spec |= {"packets": 0, "lost": sender.packets, "errors": ["nothing of this flow arrived"]}
    return ReceivedFlow(port, FlowReport.from_spec(spec), ClockComparison.from_report(sender), sender.packets)
