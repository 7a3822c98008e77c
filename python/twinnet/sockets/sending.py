"""Sends flows on real sockets of this machine and says how well that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinnet.results.flow_report import AppReport, FlowReport
from twinnet.sockets.clocks import ClockComparison, ToldFlow, compare_clocks, tell_flows
from twinnet.sockets.flow_plan import PlannedFlow
from twinnet.sockets.machine import Machine, Processor
from twinnet.traffic.app import App

__all__ = ["Sent", "SentFlow", "send"]

_LEAD_PS = 60_000_000_000
"""The first flow starts this long after all are known: in that time the thread learns whether it has its processor to
itself."""
_SETTLE_PS = 40_000_000_000
_STAMPED = ("udp", "rtp")
"""Protocols of which a receiver judges delay and loss."""


@dataclass(frozen=True)
class SentFlow:
    """One flow as its source saw it.

    Parameters
    ----------
    protocol
        ``udp``, ``tcp``, ``rtp`` or ``icmp``.
    report
        What the source measured.
    clock
        The comparison with the receiver's clock, if requested; ``None`` without an answer.
    unheard
        Whether nothing says that anybody receives the flow, although the receiver was asked: UDP has no answers.
    """

    protocol: str
    report: FlowReport
    clock: ClockComparison | None
    unheard: bool = False

    @property
    def failed(self) -> bool:
        """True if the flow sent nothing, did not send as requested, or met an error: datagrams that came back because
        nobody listens are one. Of echo requests one answer is enough.
        """
        pacing = self.report.pacing
        if pacing is not None and not pacing.kept_up:
            return True
        if self.protocol == "icmp":
            return (self.report.lost or 0) >= (self.report.packets or 0)
        return bool(self.report.errors) or not (self.report.bytes or self.report.packets)


@dataclass(frozen=True)
class Sent:
    """All flows of one call.

    Parameters
    ----------
    flows
        In the order of the plan.
    processor
        What the sending thread found about its processor.
    interrupted
        Whether the user ended it early.
    """

    flows: Sequence[SentFlow]
    processor: Processor
    interrupted: bool

    @property
    def failed(self) -> bool:
        """True if one of the flows failed."""
        return any(flow.failed for flow in self.flows)


def send(plan: Sequence[PlannedFlow], *, seed: int = 1, clock_port: int | None = None) -> Sent:
    """Send all flows of `plan` and return what their sources measured.

    Parameters
    ----------
    plan
        What to send.
    seed
        Seed of the randomness of all flows; each flow has its own stream.
    clock_port
        Where the receivers answer about their clocks; clocks are not compared when it is ``None``.
    """
    with Machine() as machine:
        clocks = _compare(machine, plan, clock_port)
        unanswered = {to for to, found in clocks.items() if found is None}
        begin_ps = machine.now_ps() + _LEAD_PS
        numbers = [
            machine.start(_on_clock(flow, clocks), at_ps=begin_ps + flow.start_ps, seed=_seed(seed, place))
            for place, flow in enumerate(plan)
        ]
        interrupted = False
        try:
            if clocks and not machine.wait(numbers, begin_ps + _SETTLE_PS):
                # Now, for a receiver that ends before the flows do; those that begin later are announced at the end.
                _tell(machine, plan, numbers, clocks, clock_port, ended=False)
            machine.wait(numbers)
        except KeyboardInterrupt:
            interrupted = True
            for number in numbers:
                machine.stop(number)
            machine.wait(numbers, machine.now_ps() + _SETTLE_PS)
        reports, processor = machine.reports(numbers), machine.processor()
        if clocks and not interrupted:
            # Again, so that the receiver knows what drifted meanwhile.
            clocks = _again(clocks, _compare(machine, plan, clock_port))
        _tell(machine, plan, numbers, clocks, clock_port, ended=True)
    flows = [
        SentFlow(flow.protocol, _only_row(report), clocks.get(to := _receiver(flow)), to in unanswered)
        for flow, report in zip(plan, reports, strict=True)
    ]
    return Sent(flows, processor, interrupted)


def _compare(machine: Machine, plan: Sequence[PlannedFlow], port: int | None) -> dict[str, ClockComparison | None]:
    if port is None:
        return {}
    stamped = [flow for flow in plan if flow.protocol in _STAMPED]
    return {to: compare_clocks(machine, to, port) for to in dict.fromkeys(_receiver(flow) for flow in stamped)}


def _tell(
    machine: Machine,
    plan: Sequence[PlannedFlow],
    numbers: Sequence[int],
    clocks: dict[str, ClockComparison | None],
    port: int | None,
    *,
    ended: bool,
) -> None:
    """Tell each receiver that answered about its clock of the flows that it gets, and how much was sent of those that
    have ended."""
    flows: dict[str, list[ToldFlow]] = {to: [] for to, found in clocks.items() if found is not None}
    for flow, report in zip(plan, machine.reports(numbers) if flows else (), strict=False):
        to = _receiver(flow)
        if flow.protocol not in _STAMPED or to not in flows:
            continue
        sent = ToldFlow.from_report(_only_row(report), int(flow.app.fields["port"]), ended)
        if sent is not None:
            flows[to].append(sent)
    for to, found in flows.items():
        if found and port is not None:
            tell_flows(machine, to, found, port)


def _again(
    before: dict[str, ClockComparison | None], after: dict[str, ClockComparison | None]
) -> dict[str, ClockComparison | None]:
    """Widen the bounds by what the clocks drifted; a clock that answers no more is not known."""
    found: dict[str, ClockComparison | None] = {}
    for to, first in before.items():
        last = after.get(to)
        if first is None or last is None:
            found[to] = None
            continue
        drift = abs(last.offset_ps - first.offset_ps)
        found[to] = replace(first, bound_ps=max(first.bound_ps, last.bound_ps) + drift)
    return found


def _on_clock(flow: PlannedFlow, clocks: dict[str, ClockComparison | None]) -> App:
    """Let datagrams carry the receiver's time, as well as it is known."""
    found = clocks.get(_receiver(flow))
    if flow.protocol != "udp" or found is None or found.same_clock:
        return flow.app
    return App(flow.app.host, flow.app.kind, {**flow.app.fields, "clock_offset_ps": found.offset_ps})


def _receiver(flow: PlannedFlow) -> str:
    return str(flow.app.fields["to"])


def _seed(seed: int, place: int) -> int:
    return (seed * 1_000_003 + place) % (1 << 63)


def _only_row(report: AppReport) -> FlowReport:
    return report.flows[0]
