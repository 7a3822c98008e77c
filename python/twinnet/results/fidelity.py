"""The record that a lab makes of itself: how well it kept its own schedule.

What follows from it for a measurement: `twinnet.results.fidelity_verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from twinnet.results.fabric_parts import FabricParts
from twinnet.results.fidelity_verdict import EXACT, Limit, Thresholds, Verdict, judge
from twinnet.results.shown import ShownInUnits

__all__ = [
    "EXACT",
    "AgentTiming",
    "BusyLine",
    "FabricParts",
    "FidelityRecord",
    "Lateness",
    "Limit",
    "LineLateness",
    "MachineTime",
    "Thresholds",
    "Verdict",
]


@dataclass(frozen=True)
class Lateness:
    """By how much frames were handed over late, in nanoseconds.

    Parameters
    ----------
    p50, p90, p99, p999, max, mean
        Quantiles, the largest and the mean.
    histogram
        Upper bound of each bin and its count.
    """

    p50: int = 0
    p90: int = 0
    p99: int = 0
    p999: int = 0
    max: int = 0
    mean: float = 0.0
    histogram: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Lateness:
        """Return it in the form of the lab protocol; zeros where nothing is told."""
        late = dict(spec or {})
        bins = tuple((int(upper), int(count)) for upper, count in late.pop("histogram", ()))
        names = ("p50", "p90", "p99", "p999", "max", "mean")
        return cls(**{name: late[name] for name in names if late.get(name) is not None}, histogram=bins)


def _pauses(given: Any) -> dict[str, int]:
    """Pauses in the form of the lab protocol; zeros where nothing is told."""
    told = cast("Mapping[str, Any]", given or {})
    return {name: int(told.get(f"{name}_ps", 0)) for name in _PAUSES}


_PAUSE_PS = 10**9
"""The shortest pause that counts, and the lateness of a frame that does."""
_SATURATED = 0.98
"""A line that is busy for a larger share of a second always has a queue."""
_PAUSES = ("total", "longest", "worst_second", "worst_second_beyond")


@dataclass(frozen=True)
class BusyLine:
    """The line that was busiest with other traffic than TCP in any second of a run, of those with a rate that did not
    always have a queue.

    Parameters
    ----------
    port
        The port that sends into the line; empty where no line has a rate, or the run was shorter than a second.
    share
        The share of that second for which such traffic kept it busy, at most 0.98: above that a line is held always to
        have a queue. Exact for a host's own line; elsewhere at most what all hosts together sent.
    """

    port: str = ""
    share: float = 0.0

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> BusyLine:
        """Return it in the form of the lab protocol."""
        told = spec or {}
        return cls(str(told.get("port", "")), float(told.get("share", 0.0)))


SHARED_SHARE = 0.01
"""A thread that waits for a processor for a larger share of the time than this shares it: as `twinnet send` has it."""


@dataclass(frozen=True)
class AgentTiming:
    """The timer lateness of the agent, the thread that runs the built-in apps of real hosts.

    Parameters
    ----------
    timers
        How many came due.
    lateness_ns
        How long after its time each was served, beyond the slack that its app allows.
    waited_s
        Time in seconds for which the thread could have run and another had its processor.
    overloaded_senders
        How many built-in senders gave up because the machine could not follow what they were asked to send.
    overflowed_datagrams
        Datagrams that arrived and that the sockets of built-in sinks had no room for.
    pauses_ps
        ``total``, ``longest``, ``worst_second`` and ``worst_second_beyond`` of the times of 1 ms and more for which a
        timer was due and none was served; the last counts of each only what is beyond 1 ms.
    """

    timers: int
    lateness_ns: Lateness
    waited_s: float
    overloaded_senders: int = 0
    overflowed_datagrams: int = 0
    pauses_ps: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> AgentTiming:
        """Return it in the form of the lab protocol."""
        return cls(
            int(spec["timers"]),
            Lateness.from_spec(spec["lateness_ns"]),
            float(spec["waited_s"]),
            int(spec.get("overloaded_senders", 0)),
            int(spec.get("overflowed_datagrams", 0)),
            _pauses(spec.get("pauses")),
        )


@dataclass(frozen=True)
class LineLateness:
    """The time that one line (one direction of a link) lost to lateness and made good.

    Parameters
    ----------
    port
        The port that sends into the line.
    lost_ps, regained_ps
        Time for which frames waited and the line gave it up because it was looked at too late, and how much of it the
        line made good since.
    missing_in_worst_second_ps
        The most that was lost and not regained in one second of the clock.
    latest_ps
        The latest that the line was looked at.
    handed_over
        Frames that it handed to a real host.
    lateness_ns
        How late those were.
    """

    port: str
    lost_ps: int = 0
    regained_ps: int = 0
    missing_in_worst_second_ps: int = 0
    latest_ps: int = 0
    handed_over: int = 0
    lateness_ns: Lateness = Lateness()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> LineLateness:
        """Return it in the form of the lab protocol."""
        names = ("lost_ps", "regained_ps", "missing_in_worst_second_ps", "latest_ps", "handed_over")
        counts = {name: int(spec.get(name, 0)) for name in names}
        return cls(str(spec["port"]), **counts, lateness_ns=Lateness.from_spec(spec.get("lateness_ns")))

    @property
    def missing_ps(self) -> int:
        """Time that is missing from the line's rate: what was lost and not regained."""
        return max(self.lost_ps - self.regained_ps, 0)


@dataclass(frozen=True)
class MachineTime:
    """Time in seconds that the machine took from a run in one way: in all, and in the worst second.

    Of hosts' programs the worst second is that of the one that waited longest, and `program` is its name.
    """

    total_s: float = 0.0
    worst_second_s: float = 0.0
    program: str = ""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> MachineTime:
        """Return it in the form of the lab protocol; zeros where nothing is told."""
        told = spec or {}
        seconds = (float(told.get(name, 0.0)) for name in ("total_s", "worst_second_s"))
        return cls(*seconds, program=str(told.get("program", "")))


def _cpu_by_kind(given: Any) -> dict[str, float]:
    """CPU seconds by kind; the virtual clock tells one number, for there is one thread."""
    if isinstance(given, Mapping):
        return {str(kind): float(seconds) for kind, seconds in cast(Mapping[Any, Any], given).items()}
    return {"fabric": float(given)} if given else {}


def _told_of(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """What is told of each of several things; nothing where nothing is told."""
    return cast("Mapping[str, Mapping[str, Any]]", given or {})


def _machine_times(given: Any) -> dict[str, MachineTime]:
    return {name: MachineTime.from_spec(one) for name, one in _told_of(given).items()}


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
        What the lines did with lateness, worst first; of a large network the 32 worst.
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
        How often the process met a state that cannot be: 0, or twinnet has a fault, which the verdict tells.
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
    raw
        The record as the lab gave it.
    """

    elapsed_ps: int
    handed_over: int
    lateness_ns: Lateness
    slipped_ps: int
    slips: int
    longest_slip_ps: int
    overload_drops: int
    ingress_drops: int
    cpu_s: Mapping[str, float]
    steal_s: float
    involuntary_switches: Mapping[str, int]
    realtime: bool
    cores: int
    regained_ps: int = 0
    lines: Sequence[LineLateness] = ()
    pauses_ps: Mapping[str, int] = field(default_factory=dict[str, int])
    busiest_line: BusyLine = BusyLine()
    long_lines: int = 0
    interface_drops: int = 0
    interface_drops_by_port: Mapping[str, int] = field(default_factory=dict[str, int])
    machine: Mapping[str, MachineTime] = field(default_factory=dict[str, MachineTime])
    clock: str = "wall"
    events: int = 0
    trace_hash: str = ""
    impossible_states: int = 0
    agent: AgentTiming | None = None
    machines: Mapping[str, FidelityRecord] = field(default_factory=dict[str, "FidelityRecord"])
    late_links: Mapping[str, float] = field(default_factory=dict[str, float])
    parts: FabricParts = field(default_factory=FabricParts)
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> FidelityRecord:
        """Return the record that the lab protocol gives as `spec`."""
        told = spec.get("agent")
        agent = AgentTiming.from_spec(told) if told else None
        return cls(
            elapsed_ps=int(spec.get("elapsed_ps", 0)),
            handed_over=int(spec.get("handed_over", 0)),
            lateness_ns=Lateness.from_spec(spec.get("lateness_ns")),
            slipped_ps=int(spec.get("slipped_ps", 0)),
            slips=int(spec.get("slips", 0)),
            longest_slip_ps=int(spec.get("longest_slip_ps", 0)),
            overload_drops=int(spec.get("overload_drops", 0)),
            ingress_drops=int(spec.get("ingress_drops", 0)),
            cpu_s=_cpu_by_kind(spec.get("cpu_s")),
            steal_s=float(spec.get("steal_s", 0.0)),
            involuntary_switches=dict(spec.get("involuntary_switches") or {}),
            realtime=bool(spec.get("realtime", False)),
            cores=int(spec.get("cores", 1)),
            regained_ps=int(spec.get("regained_ps", 0)),
            lines=tuple(LineLateness.from_spec(line) for line in spec.get("lines", ())),
            pauses_ps=_pauses(spec.get("pauses")),
            busiest_line=BusyLine.from_spec(spec.get("busiest_line")),
            long_lines=int(spec.get("long_lines", 0)),
            interface_drops=int(spec.get("interface_drops", 0)),
            interface_drops_by_port=dict(spec.get("interface_drops_by_port") or {}),
            machine=_machine_times(spec.get("machine")),
            clock=str(spec.get("clock", "wall")),
            events=int(spec.get("events", 0)),
            trace_hash=str(spec.get("trace_hash", "")),
            impossible_states=int(spec.get("impossible_states", 0)),
            agent=agent,
            machines={name: cls.from_spec(one) for name, one in _told_of(spec.get("machines")).items()},
            late_links={str(one["link"]): float(one["late_share"]) for one in spec.get("underlay") or ()},
            parts=FabricParts.from_spec(spec.get("parts")),
            raw=dict(spec),
        )

    @property
    def slipped_share(self) -> float:
        """The share of its time that the worst line lost and did not regain: by so much its rate is low."""
        return max(self.slipped_ps - self.regained_ps, 0) / self.elapsed_ps if self.elapsed_ps else 0.0

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
        return max(self.longest_slip_ps, self.pauses_ps.get("longest", 0))

    @property
    def queued_share(self) -> float:
        """The share of the worst second in which frames were late by more than 1 ms in the queue of the busiest line,
        because what a pause had held up came at once; at most 1.

        After a pause *p* of the fabric, a line that is busy for the share *u* of its time needs *p* / (1 - *u*) until
        its queue is as it would have been, for its arrivals go on (TCP's do not: it waits for acknowledgements); each
        long line of a way has other frames that were to arrive meanwhile. After a pause of the built-in apps delays
        count from when a frame was sent. The burst of what they then send fills the queue with up to *p* *u*, and
        (*p* - 1 ms / *u*) / (1 - *u*) of the time's frames wait there for more than 1 ms.
        """
        share = min(self.busiest_line.share, _SATURATED)
        fabric = self.pauses_ps.get("worst_second_beyond", 0) * max(self.long_lines, 1)
        return min((fabric + self._burst_ps(share)) / 1e12 / (1 - share), 1.0)

    def _burst_ps(self, share: float) -> float:
        """Of the pauses of the built-in apps in the worst second, that of which the burst waits for more than 1 ms on a
        line that is busy for this share of its time."""
        pauses: Mapping[str, int] = self.agent.pauses_ps if self.agent is not None else {}
        if not pauses or share <= 0:
            return 0.0
        of_second = pauses.get("worst_second", 0)
        count = (of_second - pauses.get("worst_second_beyond", 0)) / _PAUSE_PS
        # Pauses that are too short for that count for less than nothing in the sum, so the longest is looked at alone.
        return max(of_second - count * _PAUSE_PS / share, pauses.get("longest", 0) - _PAUSE_PS / share, 0.0)

    def took(self, name: str) -> MachineTime:
        """Return the time that the machine took in the way `name` (see `machine`); none where it is not told."""
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
        told = f"{self.verdict()}, {self.elapsed_ps / 1e12:.4g} s"
        if self.clock == "virtual":
            return told
        if self.clock == "real":
            return f"{told}, {len(self.machines)} machines, {self.handed_over} frames"
        late = self.lateness_ns
        return f"{told}, {self.handed_over} frames, late by {late.p50 / 1e3:.3g} us (99 % {late.p99 / 1e3:.3g}, " + (
            f"largest {late.max / 1e3:.3g})"
        )

    def verdict(self, thresholds: Thresholds | None = None) -> Verdict:
        """Return whether the run can be trusted by `thresholds` (default: the default thresholds)."""
        return judge(self, thresholds or Thresholds())
