"""The counts that a lab's record of itself is made of, each in its form of the lab protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from twinnet.results.read_fields import Reported, read_fields

__all__ = [
    "AgentTiming",
    "BusyLine",
    "HeldUpPrograms",
    "LateTurns",
    "Lateness",
    "LineLateness",
    "MachineTime",
    "ProgramHold",
    "ProgramWait",
    "TrafficTime",
    "by_name",
    "cpu_by_kind",
    "read_pauses",
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
    count
        How many there were; 0 where that is not known.
    tail
        The lateness that one in 1000 exceeds; of 100 to 999 the one that one exceeds, and of fewer the largest.
    late
        How many were late by more than 1 ms.
    """

    p50: int = 0
    p90: int = 0
    p99: int = 0
    p999: int = 0
    max: int = 0
    mean: float = 0.0
    histogram: tuple[tuple[int, int], ...] = ()
    count: int = 0
    tail: int = 0
    late: int = 0

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Lateness:
        """Return it in the form of the lab protocol; zeros where it says nothing."""
        known = {name: value for name, value in (spec or {}).items() if value is not None}
        # As records had it before they said of few frames what one exceeds.
        return read_fields(cls, {"tail": known.get("p999", 0), **known})


def read_pauses(given: Any) -> dict[str, int]:
    """Pauses in the form of the lab protocol; zeros where it says nothing."""
    pauses = by_name(given)
    return {name: int(pauses.get(f"{name}_ps", 0)) for name in _PAUSES}


_PAUSES = ("total", "longest", "worst_second", "worst_second_beyond")


@dataclass(frozen=True)
class BusyLine(Reported):
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
    unsent_share
        The largest share of its time that one of them was behind then.
    overflowed_datagrams
        Datagrams that arrived and that the sockets of built-in sinks had no room for.
    pauses_ps
        ``total``, ``longest``, ``worst_second`` and ``worst_second_beyond`` of the times of 1 ms and more for which a
        timer was due and none was served; the last counts of each only what is beyond 1 ms.
    over_ps
        Of the worst second the sums of what pauses were longer than some times: pairs of the time and the sum.
    """

    timers: int
    lateness_ns: Lateness
    waited_s: float
    overloaded_senders: int = 0
    overflowed_datagrams: int = 0
    unsent_share: float = 0.0
    pauses_ps: Mapping[str, int] = field(default_factory=dict[str, int])
    over_ps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> AgentTiming:
        """Return it in the form of the lab protocol."""
        over = by_name(spec.get("pauses")).get("worst_second_over_ps", ())
        sums = tuple((int(time), int(of)) for time, of in over)
        return read_fields(cls, spec, pauses_ps=read_pauses(spec.get("pauses")), over_ps=sums)


@dataclass(frozen=True)
class LineLateness(Reported):
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

    @property
    def missing_ps(self) -> int:
        """Time that is missing from the line's rate: what was lost and not regained."""
        return max(self.lost_ps - self.regained_ps, 0)


@dataclass(frozen=True)
class MachineTime(Reported):
    """Time in seconds that the machine took from a run in one way: in all, and in the worst second.

    Of hosts' programs the worst second is that of the one that waited longest, and `program` is its name.
    """

    total_s: float = 0.0
    worst_second_s: float = 0.0
    program: str = ""


def cpu_by_kind(given: Any) -> dict[str, float]:
    """CPU seconds by kind; the virtual clock has one number, for there is one thread."""
    if isinstance(given, Mapping):
        return {str(kind): float(seconds) for kind, seconds in cast(Mapping[Any, Any], given).items()}
    return {"fabric": float(given)} if given else {}


def by_name(given: Any) -> Mapping[str, Any]:
    """An object of the lab protocol; an empty one where there is none."""
    return cast("Mapping[str, Any]", given or {})


@dataclass(frozen=True)
class TrafficTime(Reported):
    """The time in which frames moved, and the shares of it that the fabric stood still for.

    Parameters
    ----------
    moving_ps
        The time between frames that came one after the other, of each gap at most 0.1 s; 0 where it is not known.
    paused_share
        The share of it, or of 0.1 s where it is shorter, that pauses of 1 ms and more took.
    paused_beyond_share
        The same of what each pause was longer than 1 ms.
    """

    moving_ps: int = 0
    paused_share: float = 0.0
    paused_beyond_share: float = 0.0


@dataclass(frozen=True)
class ProgramWait(Reported):
    """The short window in which one program of a host waited longest for a processor.

    Parameters
    ----------
    waited_s, window_s
        How long it waited, and how long the window was: 0.05 s, or more where there are many programs.
    share
        The share of the window, at least of 0.05 s.
    program
        The name of the program.
    """

    waited_s: float = 0.0
    window_s: float = 0.0
    share: float = 0.0
    program: str = ""


@dataclass(frozen=True)
class LateTurns(Reported):
    """The time for which one thread of a host's program waited for turns at a processor that came late.

    Parameters
    ----------
    waited_s
        The time in seconds, of all windows of 0.05 s in which it waited for more than 0.2 ms each time on average. Of
        the thread that waited longest.
    program
        The name of the program.
    """

    waited_s: float = 0.0
    program: str = ""


@dataclass(frozen=True)
class ProgramHold(Reported):
    """The time for which programs of the lab were held: they neither ran nor waited for anything of their own.

    Parameters
    ----------
    total_s, longest_s
        The time in seconds, in all and at most at once. Where it is known by looks each 0.05 s, the latter is the most
        that it may have been, from the look before to the look after; the former is from the looks that find it.
    program
        The name of the program of the longest.
    by
        ``tracer`` (a debugger or tracer), ``frozen`` (a control group) or ``signal`` (to a program that another program
        has started); empty where nothing was held.
    """

    total_s: float = 0.0
    longest_s: float = 0.0
    program: str = ""
    by: str = ""


@dataclass(frozen=True)
class HeldUpPrograms:
    """What held up hosts' programs beside the want of a processor.

    Parameters
    ----------
    dropped_datagrams
        By host that has run programs, the UDP datagrams that arrived and that a socket had no room for.
    read_datagrams
        Of the same hosts the datagrams that were read from sockets.
    stops, stopped_ps, longest_stop_ps, stopped
        How often a signal stopped a program that the lab started, for how long in all and at most, and which that was.
    """

    dropped_datagrams: Mapping[str, int] = field(default_factory=dict[str, int])
    read_datagrams: Mapping[str, int] = field(default_factory=dict[str, int])
    stops: int = 0
    stopped_ps: int = 0
    longest_stop_ps: int = 0
    stopped: str = ""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> HeldUpPrograms:
        """Return it in the form of the lab protocol; nothing where it says nothing."""
        stops = by_name((spec or {}).get("stops"))
        names = {"stops": "count", "stopped_ps": "total_ps", "longest_stop_ps": "longest_ps", "stopped": "program"}
        renamed = {name: stops[key] for name, key in names.items() if key in stops}
        return read_fields(cls, {**(spec or {}), "stops": 0, **renamed})
