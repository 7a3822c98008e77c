"""How well a lab kept its own schedule, and what follows for the measurement.

The defaults, and why:

- *Lateness, 99.9th percentile*: 1 ms is doubtful - one frame in a thousand moved by more than a local network's
round trip;
  10 ms is invalid - it reaches the queueing delays that queue studies measure.
- *Slipped share* (time by which the fabric moved its schedule because it could not follow, over elapsed time): rates
and
  throughput err by that share. 0.1 % is the accuracy that links promise; above 1 % differences between policies drown.
- *Longest slip*: 10 ms is a visible pause; 100 ms is half of Linux' least retransmission timeout (200 ms), so that a
pause may
  have started retransmissions that no modelled queue caused.
- *Overload drops* (frames lost because the machine was too slow, ingress included, over frames handed over): one is
doubtful, since a
  single loss halves a TCP window; above 1 in 10000 they bound TCP as a lossy line would (Mathis et al. 1997).
- *Overloaded senders* (built-in sources that were behind when their time was over): one is doubtful, since less was
  sent than was asked for; never invalid, for what was sent was measured right.
- *Steal* (CPU time that the hypervisor took, over elapsed time of all cores): 1 % and 10 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from twinnet.errors import BadValue

__all__ = ["EXACT", "AgentTiming", "FidelityRecord", "Lateness", "Limit", "Thresholds", "Verdict"]

State = Literal["valid", "doubtful", "invalid"]

EXACT = "exact: the virtual clock waits for every event, so none is ever late"
"""Why a run on the virtual clock is valid."""


@dataclass(frozen=True)
class Limit:
    """Above `doubtful` a run is doubtful, above `invalid` it is invalid."""

    doubtful: float
    invalid: float

    def __post_init__(self) -> None:
        if not 0 <= self.doubtful <= self.invalid:
            raise BadValue(
                f"the limits {self.doubtful} and {self.invalid} are not in order from 0", "doubtful comes first"
            )

    def state(self, value: float) -> State:
        """Return what `value` makes of a run."""
        if value > self.invalid:
            return "invalid"
        return "doubtful" if value > self.doubtful else "valid"


@dataclass(frozen=True)
class Thresholds:
    """What makes a run doubtful or invalid; each can be set. The module's description gives the reasons for the
    defaults."""

    lateness_p999_ns: Limit = Limit(1_000_000, 10_000_000)
    slipped_share: Limit = Limit(0.001, 0.01)
    longest_slip_ns: Limit = Limit(10_000_000, 100_000_000)
    overload_drop_share: Limit = Limit(0.0, 0.0001)
    steal_share: Limit = Limit(0.01, 0.10)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Thresholds:
        """Return the defaults changed by `given`, such as ``{"steal_share": [0.05, 0.2]}``."""
        limits: dict[str, Limit] = {}
        for name, value in given.items():
            if name not in cls.__dataclass_fields__:
                raise BadValue(f"there is no threshold {name!r}", f"known: {', '.join(cls.__dataclass_fields__)}")
            limits[name] = value if isinstance(value, Limit) else Limit(*value)
        return cls(**limits)


@dataclass(frozen=True)
class Verdict:
    """Whether a run can be trusted.

    Parameters
    ----------
    state
        ``valid``, ``doubtful`` or ``invalid``.
    reasons
        Each threshold that was passed, in words.
    """

    state: State
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.state + (f": {'; '.join(self.reasons)}" if self.reasons else "")


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


_OVERLOADED = "built-in senders could not keep up: the machine, and no model, decided what was sent"
SHARED_SHARE = 0.01
"""A thread that waits for a processor for a larger share of the time than this shares it: as `twinnet send` has it."""


@dataclass(frozen=True)
class AgentTiming:
    """How well the agent, the thread that runs the built-in apps of real hosts, kept to their timers.

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
    """

    timers: int
    lateness_ns: Lateness
    waited_s: float
    overloaded_senders: int = 0

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> AgentTiming:
        """Return it in the form of the lab protocol."""
        return cls(
            int(spec["timers"]),
            Lateness.from_spec(spec["lateness_ns"]),
            float(spec["waited_s"]),
            int(spec.get("overloaded_senders", 0)),
        )


def _cpu_by_kind(given: Any) -> dict[str, float]:
    """CPU seconds by kind; the virtual clock tells one number, for there is one thread."""
    if isinstance(given, Mapping):
        return {str(kind): float(seconds) for kind, seconds in cast(Mapping[Any, Any], given).items()}
    return {"fabric": float(given)} if given else {}


@dataclass(frozen=True)
class FidelityRecord:
    """What a lab measured about itself, since its start or the last reset.

    Parameters
    ----------
    elapsed_ps
        The time that the record covers.
    handed_over
        Frames that the fabric handed over.
    lateness_ns
        How late they were.
    slipped_ps, slips, longest_slip_ps
        By how much the fabric moved its schedule because it could not follow: in all, how often, at most.
    regained_ps
        How much of that it made good since, by a clock that goes faster by a thousandth.
    overload_drops, ingress_drops
        Frames lost because the machine was too slow: inside, and before they reached the fabric.
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
        ``wall`` or ``virtual``.
    events, trace_hash
        On the virtual clock how much happened, and a hash over all of it in its order.
    agent
        How well the built-in apps of real hosts kept their schedule; ``None`` where there are none.
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
    clock: str = "wall"
    events: int = 0
    trace_hash: str = ""
    agent: AgentTiming | None = None
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
            clock=str(spec.get("clock", "wall")),
            events=int(spec.get("events", 0)),
            trace_hash=str(spec.get("trace_hash", "")),
            agent=agent,
            raw=dict(spec),
        )

    @property
    def slipped_share(self) -> float:
        """Slipped time over elapsed time."""
        return self.slipped_ps / self.elapsed_ps if self.elapsed_ps else 0.0

    @property
    def overload_drop_share(self) -> float:
        """Frames lost by overload over all frames."""
        lost = self.overload_drops + self.ingress_drops
        return lost / (self.handed_over + lost) if lost else 0.0

    @property
    def agent_processor(self) -> Literal["own", "shared"] | None:
        """Whether the agent had a processor to itself; ``None`` where there is no agent."""
        if self.agent is None:
            return None
        return "shared" if self.agent.waited_s > SHARED_SHARE * self.elapsed_ps / 1e12 else "own"

    @property
    def steal_share(self) -> float:
        """Stolen time over the elapsed time of all cores."""
        elapsed_s = self.elapsed_ps / 1e12 * max(self.cores, 1)
        return self.steal_s / elapsed_s if elapsed_s else 0.0

    def verdict(self, thresholds: Thresholds | None = None) -> Verdict:
        """Return whether the run can be trusted by `thresholds` (the defaults when nothing is given)."""
        if self.clock == "virtual":
            return Verdict("valid", (EXACT,))
        limits = thresholds or Thresholds()
        checks = (
            (limits.lateness_p999_ns, self.lateness_ns.p999, "one frame in 1000 was late by more than {:.3g} ms", 1e-6),
            (limits.slipped_share, self.slipped_share, "the schedule slipped by {:.3g} % of the time", 100),
            (limits.longest_slip_ns, self.longest_slip_ps / 1000, "the fabric stood still for {:.3g} ms", 1e-6),
            (limits.overload_drop_share, self.overload_drop_share, "{:.3g} % of the frames were lost by overload", 100),
            (limits.steal_share, self.steal_share, "the hypervisor took {:.3g} % of the CPU", 100),
        )
        states = [
            (
                limit.state(value),
                f"{words.format(value * scale)} (limit {limit.doubtful * scale:.3g} / {limit.invalid * scale:.3g})",
            )
            for limit, value, words, scale in checks
        ]
        overloaded = self.agent.overloaded_senders if self.agent is not None else 0
        if overloaded:
            states.append(("doubtful", f"{overloaded} {_OVERLOADED}"))
        reasons = tuple(words for state, words in states if state != "valid")
        worst: State = "valid"
        for candidate in ("doubtful", "invalid"):
            if any(state == candidate for state, _ in states):
                worst = candidate
        return Verdict(worst, reasons)
