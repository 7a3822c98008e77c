"""The verdict on a measurement from a lab's record of itself, and the thresholds for it.

A valid run promises: the rate of no line is low by more than 0.1 % over the run or 1 % in any second; in every second
99 % of the moments at which a frame can come are looked at within 1 ms, and all of them within 10 ms; the machine lost
no frame. A doubtful run breaks this and promises less, `PROMISES`: what may be farther off is invalid. Each threshold
follows from one of these; docs/reference/fidelity.md derives them.

All that makes a verdict is looked at here, in what was counted of all lines, frames, timers and programs. Lists in a
record are for showing. Small numbers are judged by what they are, and a counter that the machine does not offer is no
evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet.results.fidelity import FidelityRecord
    from twinnet.results.fidelity_counts import Lateness

__all__ = ["EXACT", "PROMISES", "Limit", "Thresholds", "Verdict", "judge"]

State = Literal["valid", "doubtful", "invalid"]

EXACT = "exact: the virtual clock waits for every event, so none is ever late"
"""The reason why a run on the virtual clock is valid."""
PROMISES: Mapping[State, str] = {
    "valid": "rates within 0.1 % of the run or 1 % of any second, and 99 % of delays within 1 ms",
    "doubtful": "rates, counts and losses within 5 %, and delays within 5 % or 100 ms",
    "invalid": "nothing",
}
"""What a run of each verdict promises of its numbers."""
_OVERLOADED = "built-in senders could not keep up: the machine, and no model, decided what was sent"
_ENOUGH = 1000
"""Of fewer frames one in a thousand is less than one."""
_ENOUGH_TIMERS = 100
"""Of fewer timers one in a hundred is less than one."""
_SOURCES = {
    "thread_waits": "for how long threads wait for a processor (/proc/PID/schedstat)",
    "memory_pressure": "for how long programs wait for memory (/proc/pressure/memory)",
    "quota": "what a quota of its control group takes (cpu.stat)",
    "steal": "what the hypervisor takes (the steal in /proc/stat)",
    "programs": "for how long all threads of hosts' programs wait for a processor, because they are too many",
    "sockets": "what the sockets of hosts' programs had no room for (/proc/net/snmp)",
}
"""What a verdict needs to know, and what it means that it does not."""
_SOURCES_OF = {"wall": tuple(_SOURCES), "real": ("thread_waits", "steal")}


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
    """The thresholds above which a run is doubtful or invalid; each can be set. docs/reference/fidelity.md derives the
    defaults.

    Parameters
    ----------
    lateness_p999_ns
        Lateness that one frame in 1000 exceeds, of all frames and of each line; of 100 to 999 frames the lateness that
        one of them exceeds, and of fewer that of the latest.
    slipped_share
        Share of the time in which frames moved that the worst line lost and did not regain, over the run.
    worst_second_share
        The same in its worst second.
    longest_slip_ns
        The longest time for which the fabric, or a line with something to do, was not looked at, or a timer of the
        built-in apps of real hosts was due and none was served, and by how much the latest frame was late.
    paused_share
        Share of the worst second, or of the time in which frames moved, that the fabric stood still, in pauses of 1 ms
        and more. Of the time in which frames moved also the longest pause of the built-in apps of real hosts, and the
        time for which programs were stopped or held.
    queued_share
        Share of the worst second in which frames left late because a pause had filled a queue.
    overload_drop_share
        Share of the frames that the machine lost.
    agent_lateness_p99_ns
        Lateness that one timer in 100 of the built-in apps of real hosts exceeds; of fewer timers that of the latest.
    waiting_share
        Share of the worst second for which the fabric, the agent or a host's program had no processor though it could
        have run; of a host's program also of the worst window of 0.05 s.
    late_turns_share
        Share of the run for which one thread of a host's program waited for a processor, of windows of 0.05 s in which
        it waited for more than 0.2 ms each time.
    unsent_share
        Share of its time that a built-in sender was behind when that was over.
    socket_drop_share
        Share of the datagrams that arrived at a host with programs and that a UDP socket had no room for, of the host
        where it is largest.
    program_stopped_ns
        The longest time for which a signal stopped a program that the lab started, or a debugger or a frozen control
        group held any.
    controller_paused_ns
        The longest time for which a controller in the process of the lab's owner did not go on.
    throttled_share
        Share of the worst second for which a quota of the lab's control group stopped it.
    memory_pressure_share
        Share of the worst second for which some program of the machine waited for memory.
    steal_share
        Share of the time of all processors that the hypervisor took, over the run.
    """

    lateness_p999_ns: Limit = Limit(1_000_000, 10_000_000)
    slipped_share: Limit = Limit(0.001, 0.01)
    worst_second_share: Limit = Limit(0.01, 0.05)
    longest_slip_ns: Limit = Limit(10_000_000, 100_000_000)
    paused_share: Limit = Limit(0.01, 0.05)
    queued_share: Limit = Limit(0.01, 1.0)
    overload_drop_share: Limit = Limit(0.0, 0.005)
    agent_lateness_p99_ns: Limit = Limit(1_000_000, 10_000_000)
    waiting_share: Limit = Limit(0.10, 1.0)
    late_turns_share: Limit = Limit(0.01, 0.05)
    unsent_share: Limit = Limit(0.0, 0.05)
    socket_drop_share: Limit = Limit(0.0, 0.05)
    program_stopped_ns: Limit = Limit(1_000_000, 100_000_000)
    controller_paused_ns: Limit = Limit(20_000_000, 100_000_000)
    throttled_share: Limit = Limit(0.0, 0.05)
    memory_pressure_share: Limit = Limit(0.01, 1.0)
    steal_share: Limit = Limit(0.01, 0.05)

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
    """The verdict on a run: valid, doubtful or invalid.

    Parameters
    ----------
    state
        ``valid``, ``doubtful`` or ``invalid``.
    reasons
        Each threshold that was passed, in words.
    by_hand
        What somebody has changed in the network by hand while it ran, in words; empty: nothing. A lab keeps its
        promise all the same, for the network as it was at each moment, and what was measured is not of the network
        that was described. A run of a study is then invalid.
    """

    state: State
    reasons: tuple[str, ...] = ()
    by_hand: str = ""

    @property
    def promise(self) -> str:
        """How far the run's numbers may be from what they should be."""
        return PROMISES[self.state]

    def __str__(self) -> str:
        state = f"doubtful ({self.promise})" if self.state == "doubtful" else self.state
        reasons = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return state + reasons + (f"; {self.by_hand}" if self.by_hand else "")


# Scales of figures: a share in per cent, nanoseconds in milliseconds.
_PERCENT, _MS_PER_NS = 100, 1e-6
_FIGURE = "\0"
"""Where the figure stands in words. Names of programs and ports are in these too, and none has this character, as they
may have any other: words are no format."""


@dataclass(frozen=True)
class _Check:
    """One figure of a record beside its limit. `words` have the place `_FIGURE` for the figure times `scale`, which
    makes per cent of a share and milliseconds of nanoseconds."""

    limit: Limit
    value: float
    words: str
    scale: float

    def finding(self) -> tuple[State, str]:
        words = self.words.replace(_FIGURE, f"{self.value * self.scale:.3g}")
        unit = "%" if self.scale == _PERCENT else "ms"
        bounds = f"doubtful above {self.limit.doubtful * self.scale:.3g} {unit}"
        # No share is more than the whole: such a limit makes no run invalid.
        if self.limit.invalid < (1 if unit == "%" else math.inf):
            bounds += f", invalid above {self.limit.invalid * self.scale:.3g} {unit}"
        return self.limit.state(self.value), f"{words} ({bounds})"


_LATE_LINK = Limit(0.01, 0.05)
"""Of a link between two machines: the share of frames that may come late, as its datagrams are samples of them."""


def judge(record: FidelityRecord, limits: Thresholds) -> Verdict:
    """Return what `record` is worth by `limits`: the worst of all that is found, with every reason; what makes it
    invalid comes first."""
    return replace(_judged(record, limits), by_hand=record.by_hand.words())


def _judged(record: FidelityRecord, limits: Thresholds) -> Verdict:
    if record.clock == "virtual":
        return Verdict("invalid", (_fault(record),)) if record.impossible_states else Verdict("valid", (EXACT,))
    if record.machines:
        return _of_machines(record, limits)
    checks = (
        *_frames(record, limits),
        *_lines(record, limits),
        *_apps(record, limits),
        *_programs(record, limits),
        *_machine(record, limits),
    )
    findings = [check.finding() for check in checks]
    overloaded = record.agent.overloaded_senders if record.agent is not None else 0
    if overloaded:
        findings.append(("doubtful", f"{overloaded} {_OVERLOADED}"))
    if record.impossible_states:
        findings.append(("invalid", _fault(record)))
    findings += [("doubtful", words) for words in _unknown(record)]
    worst: State = "valid"
    for candidate in ("doubtful", "invalid"):
        if any(state == candidate for state, _ in findings):
            worst = candidate
    findings.sort(key=lambda finding: finding[0] != "invalid")
    return Verdict(worst, tuple(words for state, words in findings if state != "valid"))


def _of_machines(record: FidelityRecord, limits: Thresholds) -> Verdict:
    """The worst verdict of the machines, with the reasons of each."""
    verdicts = {name: judge(one, limits) for name, one in record.machines.items()}
    late = [(_LATE_LINK.state(share), name, share) for name, share in record.late_links.items()]
    states = [*(one.state for one in verdicts.values()), *(state for state, _, _ in late)]
    worst: State = "invalid" if "invalid" in states else "doubtful" if "doubtful" in states else "valid"
    worst_first = sorted(verdicts.items(), key=lambda one: one[1].state != "invalid")
    reasons = [f"on {name}: {reason}" for name, one in worst_first for reason in one.reasons]
    reasons += [
        f"the way between the machines of the link {name} took longer than its delay for"
        f" {100 * share:.3g} % of datagrams"
        for state, name, share in late
        if state != "valid"
    ]
    return Verdict(worst, tuple(reasons))


def _fault(record: FidelityRecord) -> str:
    first = record.raw.get("first_impossible_state", "unknown")
    return (
        f"twinnet met {record.impossible_states} states that cannot be, a fault of its own; report the first: {first}"
    )


def _unknown(record: FidelityRecord) -> Iterator[str]:
    """What the record cannot tell: that nothing was counted is no evidence then."""
    if record.elapsed_ps <= 0:
        yield "the record covers no time"
    if record.sources is None:
        yield "the record does not say what this machine could count"
        return
    missing = [_SOURCES[name] for name in _SOURCES_OF.get(record.clock, ()) if not record.sources.get(name)]
    if missing:
        yield f"this machine does not report {', nor '.join(missing)}"


def _frames(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check how late frames were, how long the fabric stood still, and how many frames overload lost."""
    known = [(line.lateness_ns, f" on the line of {line.port}") for line in record.all_worst_lines]
    late, where = max([(record.lateness_ns, ""), *known], key=lambda one: one[0].tail)
    yield _Check(limits.lateness_p999_ns, late.tail, _lateness(late, where), _MS_PER_NS)
    latest, where = max([(record.lateness_ns, ""), *known], key=lambda one: one[0].max)
    yield _Check(limits.longest_slip_ns, latest.max, f"one frame{where} was late by {_FIGURE} ms", _MS_PER_NS)
    yield _Check(
        limits.longest_slip_ns,
        record.longest_pause_ps / 1000,
        f"the fabric, or a line with frames to carry, stood still for {_FIGURE} ms",
        _MS_PER_NS,
    )
    of = "the worst second"
    if record.traffic.paused_share > record.pauses_ps.get("worst_second", 0) / 1e12:
        of = f"the {record.traffic.moving_ps / 1e12:.3g} s in which frames moved"
    yield _Check(limits.paused_share, record.paused_share, f"the fabric stood still for {_FIGURE} % of {of}", _PERCENT)
    line = record.busiest_line
    why = "the fabric stood still"
    if line.port:
        why = f"pauses had filled the queue of {line.port} (busy for {100 * line.share:.0f} % without TCP)"
    late_for = f"{why}, so frames left late for up to {_FIGURE} % of the worst second"
    yield _Check(limits.queued_share, record.queued_share, late_for, _PERCENT)
    yield _Check(limits.overload_drop_share, record.overload_drop_share, _losses(record), _PERCENT)


def _lateness(late: Lateness, where: str) -> str:
    """By how much frames were late, in words; of few frames with their count."""
    if not 0 < late.count < _ENOUGH:
        return f"one frame in 1000{where} was late by more than {_FIGURE} ms"
    rest = "the latest" if late.count < _ENOUGH // 10 else "all but the latest"
    return f"of {late.count} frames{where} {late.late} were late by more than 1 ms, {rest} by up to {_FIGURE} ms"


def _losses(record: FidelityRecord) -> str:
    overflowed = record.agent.overflowed_datagrams if record.agent is not None else 0
    ports = ", ".join(f"{port} {count}" for port, count in list(record.interface_drops_by_port.items())[:5])
    parts = (
        (record.overload_drops, "that hosts' interfaces did not take"),
        (record.ingress_drops, "that were not read in time"),
        (record.interface_drops, "that were not read in time on links with a rate" + (f": {ports}" if ports else "")),
        (overflowed, "that arrived and that the sockets of sinks had no room for"),
    )
    counts = ", ".join(f"{count} {words}" for count, words in parts if count)
    return f"{_FIGURE} % of the frames were lost by overload of the machine" + (f" ({counts})" if counts else "")


def _lines(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check how much of their rates lines lost."""
    lines = record.all_worst_lines
    worst = max(lines, key=lambda line: line.missing_ps, default=None)
    of = f" of {worst.port}" if worst is not None else ""
    yield _Check(
        limits.slipped_share, record.slipped_share, f"the line{of} slipped by {_FIGURE} % of the time", _PERCENT
    )
    worst = max(lines, key=lambda line: line.missing_in_worst_second_ps, default=None)
    missing_ps = max(record.missing_in_worst_second_ps, worst.missing_in_worst_second_ps if worst is not None else 0)
    of = f"the line of {worst.port}" if worst is not None else "a line"
    words = f"{of} slipped by {_FIGURE} % of its worst second"
    yield _Check(limits.worst_second_share, missing_ps / 1e12, words, _PERCENT)


def _apps(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check how well the built-in apps of real hosts kept their times."""
    agent = record.agent
    if agent is None:
        return
    words = f"one timer in 100 of the built-in apps was late by more than {_FIGURE} ms"
    if agent.timers < _ENOUGH_TIMERS:
        words = f"of {agent.timers} timers of the built-in apps the latest was late by {_FIGURE} ms"
    yield _Check(limits.agent_lateness_p99_ns, agent.lateness_ns.p99, words, _MS_PER_NS)
    behind = f"a built-in sender was behind by {_FIGURE} % of its time when that was over"
    yield _Check(limits.unsent_share, agent.unsent_share, behind, _PERCENT)
    longest = agent.pauses_ps.get("longest", 0) / 1000
    yield _Check(limits.longest_slip_ns, longest, f"the built-in apps stood still for {_FIGURE} ms", _MS_PER_NS)
    of_traffic = f"the built-in apps stood still at once for {_FIGURE} % of the time in which frames moved"
    yield _Check(limits.paused_share, record.share_of_traffic(longest * 1000), of_traffic, _PERCENT)


def _programs(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check what held up the programs of hosts, and controllers in the owner's process."""
    wait = record.program_wait
    window = f"a host's program ({wait.program}) waited for a processor for {_FIGURE} % of {wait.window_s:.2g} s"
    yield _Check(limits.waiting_share, wait.share, window, _PERCENT)
    late = record.late_turns
    turns = (
        f"a host's program ({late.program}) waited for {_FIGURE} % of the time for turns at a processor that came late"
    )
    yield _Check(limits.late_turns_share, late.waited_s / record.least_elapsed_s, turns, _PERCENT)
    programs = record.programs
    stopped = f"a signal stopped a host's program ({programs.stopped}) for {_FIGURE} ms"
    yield _Check(limits.program_stopped_ns, programs.longest_stop_ps / 1000, stopped, _MS_PER_NS)
    of_traffic = f"signals stopped hosts' programs for {_FIGURE} % of the time in which frames moved"
    yield _Check(limits.paused_share, record.share_of_traffic(programs.stopped_ps), of_traffic, _PERCENT)
    yield from _held(record, limits)
    hosts = ", ".join(f"{host} {count}" for host, count in list(programs.dropped_datagrams.items())[:5])
    full = f"sockets of a host with programs had no room for {_FIGURE} % of the datagrams that came to it ({hosts})"
    yield _Check(limits.socket_drop_share, record.socket_drop_share, full, _PERCENT)
    controllers = f"a controller in the process of the lab's owner stood still for {_FIGURE} ms"
    yield _Check(limits.controller_paused_ns, record.controllers_paused_ps / 1000, controllers, _MS_PER_NS)


_HELD_BY = {
    "tracer": "a debugger or tracer held",
    "frozen": "a frozen control group held",
    "signal": "a signal stopped",
}


def _held(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check for how long programs were held: by looks now and then, at once the most that it may have been."""
    held = record.held
    by = _HELD_BY.get(held.by, "something held")
    longest = f"{by} a program of the lab ({held.program}) for up to {_FIGURE} ms"
    yield _Check(limits.program_stopped_ns, held.longest_s * 1e9, longest, _MS_PER_NS)
    of_traffic = f"{by} a program of the lab ({held.program}) for {_FIGURE} % of the time in which frames moved"
    yield _Check(limits.paused_share, record.share_of_traffic(held.total_s * 1e12), of_traffic, _PERCENT)


def _machine(record: FidelityRecord, limits: Thresholds) -> Iterator[_Check]:
    """Check how much the machine took from the fabric and from the programs of hosts."""
    program = record.took("programs_waited").program
    for name, who in (
        ("fabric_waited", "the fabric"),
        ("agent_waited", "the agent, which runs the built-in apps,"),
        ("programs_waited", f"a host's program ({program})" if program else "a host's program"),
    ):
        words = f"{who} waited for a processor for {_FIGURE} % of the worst second"
        yield _Check(limits.waiting_share, record.took(name).worst_second_s, words, _PERCENT)
    throttled = f"a quota stopped the lab's control group for {_FIGURE} % of the worst second"
    yield _Check(limits.throttled_share, record.took("throttled").worst_second_s, throttled, _PERCENT)
    memory = f"programs of this machine waited for memory for {_FIGURE} % of the worst second"
    yield _Check(limits.memory_pressure_share, record.took("memory_pressure").worst_second_s, memory, _PERCENT)
    yield _Check(limits.steal_share, record.steal_share, f"the hypervisor took {_FIGURE} % of the CPU", _PERCENT)
