"""The record that a lab makes of itself: how well it kept its own schedule.

What follows from it for a measurement: `twinnet.results.fidelity_verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.results.changes_by_hand import ChangeByHand, ChangesByHand
from twinnet.results.fabric_parts import FabricParts
from twinnet.results.fidelity_counts import (
    AgentTiming,
    BusyLine,
    HeldUpPrograms,
    Lateness,
    LateTurns,
    LineLateness,
    MachineTime,
    ProgramHold,
    ProgramWait,
    TrafficTime,
    by_name,
    cpu_by_kind,
    read_pauses,
)
from twinnet.results.fidelity_verdict import EXACT, PROMISES, Limit, Thresholds, Verdict, judge
from twinnet.results.read_fields import read_fields
from twinnet.results.shown import ShownInUnits

__all__ = [
    "EXACT",
    "PROMISES",
    "AgentTiming",
    "BusyLine",
    "ChangeByHand",
    "ChangesByHand",
    "FabricParts",
    "FidelityRecord",
    "HeldUpPrograms",
    "LateTurns",
    "Lateness",
    "Limit",
    "LineLateness",
    "MachineTime",
    "ProgramHold",
    "ProgramWait",
    "Thresholds",
    "TrafficTime",
    "Verdict",
]


_PAUSE_PS = 10**9
"""The shortest pause that counts, and the lateness of a frame that does."""
_SATURATED = 0.98
"""A line that is busy for a larger share counts as one that is busy for this: it makes up for next to nothing."""

_LEAST_TRAFFIC_PS = 10**11
"""Of a shorter time of traffic nothing is a share."""

SHARED_SHARE = 0.01
"""A thread that waits for a processor for a larger share of the time than this shares it: as `twinnet send` has it."""


@dataclass(frozen=True, repr=False)
class FidelityRecord(ShownInUnits):
    """The measurements that a lab made of itself, since its start or the last reset.

    Parameters
    ----------
    elapsed_ps
        The time that the record covers.
    handed_over
        Frames that the fabric handed over.
    lateness_ns
        How late they were.
    slipped_ps, slips, regained_ps
        Of the worst line: the time for which frames waited and it gave that up because it was looked at too late, how
        often it was, and how much of it the line made good since.
    longest_slip_ps
        The latest that any line was looked at.
    lines
        What the lines did with lateness, worst first; of a large network the 32 worst. For showing: the verdict looks
        at `worst_lines`.
    worst_lines
        Of all lines the worst by what is ``missing`` from its rate, in its ``worst_second``, by the ``latest`` look at
        it, and by how late its ``late_frames`` were.
    missing_in_worst_second_ps
        The most that a line lost and did not regain in one second of the clock, of all lines.
    traffic
        The time in which frames moved, and the share of it that pauses took.
    pauses_ps
        ``total``, ``longest`` and ``worst_second`` of the times for which the fabric looked at nothing, of those that
        lasted 1 ms and more; ``worst_second_beyond`` counts of each only what is beyond 1 ms.
    busiest_line
        The line whose queue remembers a pause longest.
    long_lines
        Lines with a delay of 1 ms and more on the longest way between two nodes.
    overload_drops, ingress_drops, interface_drops
        Frames lost because the machine was too slow: those that a host did not take from the fabric, and those that
        the fabric did not take from a host in time, on links without a rate and with one.
    interface_drops_by_port
        The last by port.
    machine
        Time that the machine took: ``fabric_waited``, ``agent_waited`` and ``programs_waited`` (could have run and had
        no processor; the worst second is that of the program that waited longest), ``processor_pressure`` and
        ``memory_pressure`` (of the whole machine), ``throttled`` (by a quota), ``steal``.
    program_wait
        The short window in which one program of a host waited longest for a processor.
    late_turns
        How long one thread of a host's program waited for turns at a processor that came late.
    held
        For how long a debugger, a frozen control group or a signal held programs.
    programs
        What held up hosts' programs beside that: full sockets, and signals that stopped those that the lab started.
    controllers_paused_ps
        The longest time for which a controller in the process of the lab's owner did not go on.
    sources
        Which counters the kernel and the hypervisor offer; ``None`` where the record does not say. Where one is
        missing, that nothing was counted says nothing.
    cpu_s
        CPU time in seconds by thread and kind.
    steal_s
        CPU time in seconds that the hypervisor took from this machine, over all cores.
    involuntary_switches
        How often the kernel took the CPU from a thread of the lab.
    realtime
        Whether the fabric ran with real-time priority.
    cores
        Cores of the machine.
    clock
        ``wall``, ``virtual`` or ``real``.
    events, trace_hash
        On the virtual clock how much happened, and a hash over all of it in its order.
    impossible_states
        How often the process met a state that cannot be: 0, or twinnet has a fault, which the verdict names.
    agent
        How well the built-in apps of real hosts kept their schedule; ``None`` where there are none.
    machines
        The record of each machine: on the real clock by its name in the network, of a network on several machines by
        where SSH finds it.
    late_links
        Of a network on several machines, for each link between two of them: the share of datagrams that the way took
        longer for than the link's delay.
    parts
        The threads that moved the network.
    by_hand
        What somebody has changed by hand since the lab began: a reset does not take it out.
    raw
        The record as the lab gave it.
    """

    elapsed_ps: int = 0
    handed_over: int = 0
    lateness_ns: Lateness = field(default_factory=Lateness)
    slipped_ps: int = 0
    slips: int = 0
    longest_slip_ps: int = 0
    overload_drops: int = 0
    ingress_drops: int = 0
    cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    steal_s: float = 0.0
    involuntary_switches: Mapping[str, int] = field(default_factory=dict[str, int])
    realtime: bool = False
    cores: int = 1
    regained_ps: int = 0
    lines: Sequence[LineLateness] = ()
    pauses_ps: Mapping[str, int] = field(default_factory=dict[str, int])
    busiest_line: BusyLine = field(default_factory=BusyLine)
    long_lines: int = 0
    interface_drops: int = 0
    interface_drops_by_port: Mapping[str, int] = field(default_factory=dict[str, int])
    machine: Mapping[str, MachineTime] = field(default_factory=dict[str, MachineTime])
    worst_lines: Mapping[str, LineLateness] = field(default_factory=dict[str, LineLateness])
    missing_in_worst_second_ps: int = 0
    traffic: TrafficTime = field(default_factory=TrafficTime)
    program_wait: ProgramWait = field(default_factory=ProgramWait)
    late_turns: LateTurns = field(default_factory=LateTurns)
    held: ProgramHold = field(default_factory=ProgramHold)
    programs: HeldUpPrograms = field(default_factory=HeldUpPrograms)
    controllers_paused_ps: int = 0
    sources: Mapping[str, bool] | None = None
    clock: str = "wall"
    events: int = 0
    trace_hash: str = ""
    impossible_states: int = 0
    agent: AgentTiming | None = None
    machines: Mapping[str, FidelityRecord] = field(default_factory=dict[str, "FidelityRecord"])
    late_links: Mapping[str, float] = field(default_factory=dict[str, float])
    parts: FabricParts = field(default_factory=FabricParts)
    by_hand: ChangesByHand = field(default_factory=ChangesByHand)
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> FidelityRecord:
        """Return the record that the lab protocol gives as `spec`."""
        agent, worst = spec.get("agent"), by_name(spec.get("worst_lines"))
        waited = by_name(spec.get("machine")).get("programs_waited", {})
        return read_fields(
            cls,
            spec,
            cpu_s=cpu_by_kind(spec.get("cpu_s")),
            pauses_ps=read_pauses(spec.get("pauses")),
            worst_lines={name: LineLateness.from_spec(line) for name, line in worst.items() if line},
            program_wait=ProgramWait.from_spec(waited.get("worst_window")),
            late_turns=LateTurns.from_spec(waited.get("late_turns")),
            held=ProgramHold.from_spec(by_name(spec.get("machine")).get("programs_held")),
            controllers_paused_ps=int(by_name(spec.get("controllers")).get("longest_pause_ps", 0)),
            agent=AgentTiming.from_spec(agent) if agent else None,
            late_links={str(one["link"]): float(one["late_share"]) for one in spec.get("underlay") or ()},
            raw=dict(spec),
        )

    @property
    def slipped_share(self) -> float:
        """The share of the time in which frames moved that the worst line lost and did not regain: by so much its rate
        is low."""
        missing_ps = max(self.slipped_ps - self.regained_ps, *(line.missing_ps for line in self.all_worst_lines), 0)
        return self.share_of_traffic(missing_ps)

    def share_of_traffic(self, time_ps: float) -> float:
        """The share that `time_ps` is of the time in which frames moved; of the record where that is not known."""
        whole_ps = self.elapsed_ps
        if self.traffic.moving_ps:
            whole_ps = min(whole_ps, max(self.traffic.moving_ps, _LEAST_TRAFFIC_PS))
        return min(time_ps / whole_ps, 1.0) if whole_ps else 0.0

    @property
    def least_elapsed_s(self) -> float:
        """The time in seconds that the record covers, or 0.1 s where it is shorter."""
        return max(self.elapsed_ps, _LEAST_TRAFFIC_PS) / 1e12

    @property
    def socket_drop_share(self) -> float:
        """The share of the datagrams that came to a host with programs and that its sockets had no room for, of the
        host where it is largest."""
        read = self.programs.read_datagrams
        # A record of before the datagrams that were read were counted has the frames of all hosts.
        known = (
            (dropped, read.get(host, self.handed_over)) for host, dropped in self.programs.dropped_datagrams.items()
        )
        return max((dropped / (dropped + others) for dropped, others in known if dropped), default=0.0)

    @property
    def all_worst_lines(self) -> Sequence[LineLateness]:
        """Each line of the record: the worst of all in each respect, and those that are listed."""
        return (*self.worst_lines.values(), *self.lines)

    @property
    def machine_losses(self) -> int:
        """Frames and datagrams that the machine lost, and no network."""
        if self.machines:
            return sum(one.machine_losses for one in self.machines.values())
        overflowed = self.agent.overflowed_datagrams if self.agent is not None else 0
        return self.overload_drops + self.ingress_drops + self.interface_drops + overflowed

    @property
    def overload_drop_share(self) -> float:
        """The share of all frames that the machine lost."""
        lost = self.machine_losses
        return lost / (self.handed_over + lost) if lost else 0.0

    @property
    def longest_pause_ps(self) -> int:
        """The longest time for which the fabric, or one of its lines that had something to do, was not looked at."""
        latest_ps = max((line.latest_ps for line in self.all_worst_lines), default=0)
        return max(self.longest_slip_ps, self.pauses_ps.get("longest", 0), latest_ps)

    @property
    def paused_share(self) -> float:
        """The share that the fabric stood still for, of the worst second or of the time in which frames moved."""
        return max(self.pauses_ps.get("worst_second", 0) / 1e12, self.traffic.paused_share)

    @property
    def queued_share(self) -> float:
        """The share of the worst second, or of the time in which frames moved, in which frames were late by more than
        1 ms in the queue of the busiest line, because what a pause had held up came at once; at most 1.

        After a pause *p* of the fabric, a line that is busy for the share *u* of its time needs *p* / (1 - *u*) until
        its queue is as it would have been, for its arrivals go on (TCP's do not: it waits for acknowledgements); each
        long line of a way has other frames that were to arrive meanwhile. After a pause of the built-in apps delays
        count from when a frame was sent. The burst of what they then send fills the queue with up to *p* *u*, and
        (*p* - 1 ms / *u*) / (1 - *u*) of the time's frames wait there for more than 1 ms.
        """
        share = min(self.busiest_line.share, _SATURATED)
        # A run can be shorter than a second, or its traffic can.
        beyond = max(self.pauses_ps.get("worst_second_beyond", 0) / 1e12, self.traffic.paused_beyond_share)
        burst = self._burst_ps(share) / 1e12
        if self.traffic.moving_ps:
            burst *= 1e12 / min(max(self.traffic.moving_ps, _LEAST_TRAFFIC_PS), 1e12)
        return min((beyond * max(self.long_lines, 1) + burst) / (1 - share), 1.0)

    def _burst_ps(self, share: float) -> float:
        """Of the pauses of the built-in apps in the worst second, that of which the burst waits for more than 1 ms on a
        line that is busy for this share of its time."""
        if self.agent is None or share <= 0:
            return 0.0
        harmless_ps = _PAUSE_PS / share
        # Of the sums that the record has, the one for the longest time that is not longer than that.
        sums = [of_ps for time_ps, of_ps in self.agent.over_ps if time_ps <= harmless_ps]
        of_second = sums[-1] if sums else self.agent.pauses_ps.get("worst_second_beyond", 0)
        return max(of_second, self.agent.pauses_ps.get("longest", 0) - harmless_ps, 0.0)

    def took(self, name: str) -> MachineTime:
        """Return the time that the machine took in the way `name` (see `machine`); none where it is not known."""
        return self.machine.get(name, MachineTime())

    @property
    def agent_processor(self) -> Literal["own", "shared"] | None:
        """``own`` if the agent had a processor to itself, otherwise ``shared``; ``None`` if there is no agent."""
        if self.agent is None:
            return None
        return "shared" if self.agent.waited_s > SHARED_SHARE * self.elapsed_ps / 1e12 else "own"

    @property
    def steal_share(self) -> float:
        """Stolen time over the elapsed time of all cores."""
        elapsed_s = self.elapsed_ps / 1e12 * max(self.cores, 1)
        return self.steal_s / elapsed_s if elapsed_s else 0.0

    def __str__(self) -> str:
        """Return the verdict, and on the wall clock how late frames were."""
        verdict = f"{self.verdict()}, {self.elapsed_ps / 1e12:.4g} s"
        if self.clock == "virtual":
            return verdict
        if self.clock == "real":
            return f"{verdict}, {len(self.machines)} machines, {self.handed_over} frames"
        late = self.lateness_ns
        return f"{verdict}, {self.handed_over} frames, late by {late.p50 / 1e3:.3g} us (99 % {late.p99 / 1e3:.3g}, " + (
            f"largest {late.max / 1e3:.3g})"
        )

    def verdict(self, thresholds: Thresholds | None = None) -> Verdict:
        """Return whether the run can be trusted by `thresholds` (default: the default thresholds)."""
        return judge(self, thresholds or Thresholds())
