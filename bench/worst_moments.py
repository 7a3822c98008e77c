"""``python -m bench.worst_moments``: who had the processors when the fabric's loop looked at nothing for longest.

It runs one load of `bench.load` under the kernel's tracer, and prints the longest times between two looks of the loop
at its clock: each is one system call, a stretch of the loop's own code, or a wake-up that came late. For each it tells
which threads ran on the loop's processor and on the others meanwhile, for how long the kernel handled softirqs, and
how much of the time a hypervisor took at most: the kernel leaves that out of what it counts as a thread's run time, and
says so at each switch and each tick. The same is told of the agent, the thread of the built-in apps, on demand.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.table import Table
from twinnet.units import rate_bps

from bench import load
from bench.kernel_trace import Event, KernelTrace, events_of

__all__ = ["Moment", "Trace", "main", "read_trace"]

_IDLE = "idle"
_SYSTEM_CALLS = {
    0: "read",
    1: "write",
    19: "readv",
    20: "writev",
    35: "nanosleep",
    45: "recvfrom",
    202: "futex",
    230: "clock_nanosleep",
    281: "epoll_pwait",
    299: "recvmmsg",
    307: "sendmmsg",
    441: "epoll_pwait2",
}
"""By their numbers on x86-64; others are shown by number."""
_SLEEPS = {"epoll_pwait", "epoll_pwait2"}
_NOISE_US = 3.0
"""Stamps have a resolution of 1 us each: less than this is not taken to be the hypervisor's."""


@dataclass(frozen=True)
class Span:
    """A time on a processor that had one use, in microseconds: a thread, a softirq, or what a hypervisor took."""

    begin_us: float
    end_us: float
    use: str
    most_us: float | None = None
    """The use had no more than this of the time; it is not known which part."""

    def within(self, begin_us: float, end_us: float) -> float:
        """Return how much of it falls into the time given, at most."""
        overlap_us = max(0.0, min(self.end_us, end_us) - max(self.begin_us, begin_us))
        return overlap_us if self.most_us is None else min(overlap_us, self.most_us)


@dataclass(frozen=True)
class Moment:
    """A time for which the thread did not look at its clock.

    Parameters
    ----------
    begin_us, end_us
        When, in microseconds of ``CLOCK_MONOTONIC``.
    processor
        The one that the loop had at the end.
    what
        A system call, "own code", or "wake-up" where the thread slept and was to go on at `begin_us`.
    """

    begin_us: float
    end_us: float
    processor: int
    what: str

    @property
    def length_us(self) -> float:
        """How long it lasted."""
        return self.end_us - self.begin_us


@dataclass
class Trace:
    """A run as the tracer saw it: the moments of one thread, and the uses of each processor."""

    moments: list[Moment] = field(default_factory=list[Moment])
    threads: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))
    softirqs: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))
    taken: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))

    def worst(self, number: int) -> list[Moment]:
        """Return the longest moments, longest first."""
        return sorted(self.moments, key=lambda moment: -moment.length_us)[:number]

    @staticmethod
    def used(spans: Iterable[Span], moment: Moment) -> dict[str, float]:
        """Return for each use its time within `moment`, in microseconds, longest first."""
        sums: defaultdict[str, float] = defaultdict(float)
        for span in spans:
            sums[span.use] += span.within(moment.begin_us, moment.end_us)
        return {use: us for use, us in sorted(sums.items(), key=lambda item: -item[1]) if us > 0}


class _Processor:
    """What is going on at one processor while its events are read."""

    def __init__(self) -> None:
        self.thread: str | None = None
        self.pid = 0
        self.since_us = 0.0
        self.accounted_us = 0.0
        self.softirq: tuple[str, float] | None = None


class _Loop:
    """What one thread of the loop is doing while its events are read."""

    def __init__(self, at_us: float) -> None:
        self.looked_us = at_us
        self.call: str | None = None
        self.slept = False
        self.expires_us: float | None = None
        self.woken_us: float | None = None

    def enters(self, call: str, at_us: float) -> None:
        self.call, self.looked_us = call, at_us
        self.slept, self.expires_us, self.woken_us = False, None, None

    def leaves(self, at_us: float) -> tuple[float, str]:
        """Return when it should have gone on, and what kept it."""
        begin_us, what = self.looked_us, self.call or "system call"
        if self.slept and what in _SLEEPS:
            what = "wake-up"
            # What it waited for was there when something woke it, or when its timer was to: the interrupt may be late.
            due = [at for at in (self.woken_us, self.expires_us) if at is not None and at <= at_us]
            begin_us = max(begin_us, min(due, default=at_us))
        self.call, self.looked_us = None, at_us
        return begin_us, what


def read_trace(events: Iterable[Event], thread: str) -> Trace:
    """Return the moments of the threads called `thread` and the uses of the processors."""
    trace = Trace()
    processors: defaultdict[int, _Processor] = defaultdict(_Processor)
    loops: dict[int, _Loop] = {}
    for event in events:
        processor = processors[event.processor]
        if event.name == "sched_switch":
            _switch(event, processor, trace, loops)
        elif event.name == "sched_stat_runtime":
            _account(event, processor, trace)
        elif event.name == "softirq_entry":
            processor.softirq = (_word(event.told, r"action=(\w+)"), event.at_us)
        elif event.name == "softirq_exit" and processor.softirq is not None:
            name, since_us = processor.softirq
            trace.softirqs[event.processor].append(Span(since_us, event.at_us, name))
            processor.softirq = None
        elif event.name in ("sys_enter", "sys_exit") and event.task == thread:
            _look(event, trace, loops)
        elif event.name == "hrtimer_start" and event.pid in loops and "function=hrtimer_wakeup" in event.told:
            loops[event.pid].expires_us = float(_word(event.told, r" expires=(\d+)")) / 1e3
        elif event.name == "sched_waking":
            loop = loops.get(int(_word(event.told, r" pid=(\d+)")))
            if loop is not None and loop.woken_us is None:
                loop.woken_us = event.at_us
    return trace


def _look(event: Event, trace: Trace, loops: dict[int, _Loop]) -> None:
    number = int(_word(event.told, r"NR (-?\d+)"))
    call = _SYSTEM_CALLS.get(number, f"system call {number}")
    loop = loops.get(event.pid)
    if loop is None:
        loop = loops[event.pid] = _Loop(event.at_us)
        if event.name == "sys_exit":
            return
    if event.name == "sys_enter":
        trace.moments.append(Moment(loop.looked_us, event.at_us, event.processor, "own code"))
        loop.enters(call, event.at_us)
    else:
        begin_us, what = loop.leaves(event.at_us)
        trace.moments.append(Moment(begin_us, event.at_us, event.processor, what))


def _switch(event: Event, processor: _Processor, trace: Trace, loops: Mapping[int, _Loop]) -> None:
    found = re.match(
        r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)", event.told
    )
    if found is None:
        return
    _, before, state, name, pid = found.groups()
    if processor.thread is not None:
        trace.threads[event.processor].append(Span(processor.since_us, event.at_us, processor.thread))
    # A thread that could go on was pushed aside: it does not sleep.
    if int(before) in loops and not state.startswith("R"):
        loops[int(before)].slept = True
    processor.thread, processor.pid = (name if int(pid) else _IDLE), int(pid)
    processor.since_us = processor.accounted_us = event.at_us


def _account(event: Event, processor: _Processor, trace: Trace) -> None:
    """The kernel says how long a thread ran since it last said so: less than the clock shows where it had no processor
    though it seemed to (``CONFIG_PARAVIRT_TIME_ACCOUNTING``)."""
    pid, ran_ns = int(_word(event.told, r" pid=(\d+)")), int(_word(event.told, r"runtime=(\d+)"))
    if pid != processor.pid:
        return
    begin_us, processor.accounted_us = processor.accounted_us, event.at_us
    taken_us = event.at_us - begin_us - ran_ns / 1e3
    if begin_us > 0 and taken_us > _NOISE_US:
        trace.taken[event.processor].append(Span(begin_us, event.at_us, "hypervisor", taken_us))


def _word(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the kernel's trace says {text!r}; {pattern!r} was expected")
    return found[1]


def _uses(uses: Mapping[str, float]) -> str:
    return ", ".join(f"{use} {us:.0f}" for use, us in list(uses.items())[:4] if us >= 1) or "-"


def _print(trace: Trace, thread: str, number: int, console: Console) -> None:
    worst = trace.worst(number)
    if not worst:
        console.print(f"The trace has no system call of the {thread}.")
        return
    first_us = min(moment.begin_us for moment in trace.moments)
    table = Table(box=box.SIMPLE, title=f"The {len(worst)} longest times between two looks of the {thread}, in us")
    for heading in ("at s", "us", "it was in", "ran on its processor", "ran on others", "softirqs here"):
        table.add_column(heading, justify="right" if heading in ("at s", "us") else "left")
    table.add_column("softirqs on others")
    table.add_column("taken here, at most", justify="right")
    for moment in worst:
        here = moment.processor

        def of(spans: Mapping[int, list[Span]], ours: bool, moment: Moment = moment, here: int = here) -> str:
            chosen = [span for at, theirs in spans.items() if (at == here) == ours for span in theirs]
            return _uses(Trace.used(chosen, moment))

        taken = sum(Trace.used(trace.taken.get(here, []), moment).values())
        table.add_row(
            f"{(moment.begin_us - first_us) / 1e6:.3f}",
            f"{moment.length_us:.0f}",
            moment.what,
            of(trace.threads, True),
            of(trace.threads, False),
            of(trace.softirqs, True),
            of(trace.softirqs, False),
            f"{taken:.0f}",
        )
    console.print(table)
    console.print(_summary(trace))


def _summary(trace: Trace) -> str:
    """How long all moments were, and what the processors did over the whole run."""
    lengths = sorted(moment.length_us for moment in trace.moments)
    begin_us = min(moment.begin_us for moment in trace.moments)
    whole = Moment(begin_us, max(moment.end_us for moment in trace.moments), 0, "")
    lines = [
        f"{len(lengths)} looks in {whole.length_us / 1e6:.2f} s; between two of them 99 % "
        f"{_quantile(lengths, 0.99):.0f}, 99.9 % {_quantile(lengths, 0.999):.0f}, 99.99 % "
        f"{_quantile(lengths, 0.9999):.0f} us"
    ]
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for moment in trace.moments:
        kinds[moment.what].append(moment.length_us)
    each = sorted(kinds.items(), key=lambda item: -sum(item[1]))
    told = (f"{what} {len(us) / whole.length_us * 1e6:.0f} a second of {sum(us) / len(us):.1f} us" for what, us in each)
    lines.append(f"in them: {', '.join(told)}")
    for processor in sorted(trace.threads):
        per_cent = 100 / whole.length_us
        parts = [
            f"{use} {us * per_cent:.0f}"
            for use, us in Trace.used(trace.threads[processor], whole).items()
            if us * per_cent >= 1
        ]
        soft = sum(Trace.used(trace.softirqs.get(processor, []), whole).values())
        taken = sum(Trace.used(trace.taken.get(processor, []), whole).values())
        lines.append(
            f"processor {processor}, in %: {', '.join(parts)}; in them softirqs {soft * per_cent:.0f}, taken by a "
            f"hypervisor {taken * per_cent:.1f}"
        )
    return "\n".join(lines)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _load(kind: str, links: int, bps: int, seconds: float) -> Callable[[load.Around], load.Outcome]:
    if kind == "tcp":
        return lambda around: load.streams(links, bps, seconds, around)
    if kind == "pairs":
        return lambda around: load.datagrams(links, bps, 10 * bps, seconds, around=around)
    return lambda around: load.datagrams(links, 2 * bps, bps, seconds, around=around)


def main() -> int:
    """Run a load and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.worst_moments", description=__doc__)
    parser.add_argument(
        "load",
        choices=("full", "pairs", "tcp"),
        help="full: datagrams at twice each link's rate; pairs: at a tenth of it; tcp: one flow on each link",
    )
    parser.add_argument("links", type=int, help="how many at once")
    parser.add_argument("--rate", default="10 Mbit", help="of a link (full, tcp) or of a flow (pairs)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long it is traced")
    parser.add_argument("--worst", type=int, default=10, metavar="N", help="how many moments are shown")
    parser.add_argument("--thread", choices=("fabric", "agent"), default="fabric", help="whose moments are shown")
    wanted = parser.parse_args()
    console = Console(width=200)
    kernel = KernelTrace(wanted.thread)

    def around() -> AbstractContextManager[object]:
        return kernel

    outcome = _load(wanted.load, wanted.links, rate_bps(wanted.rate), wanted.seconds)(around)
    console.print(
        f"{wanted.load}, {wanted.links} of {wanted.rate}: rate off by {outcome.error_percent:+.2f} %, {outcome.state}"
    )
    for reason in outcome.reasons:
        console.print(f"  {reason}", highlight=False)
    if kernel.lost:
        console.print(f"the tracer had no room for {kernel.lost} events: trace a shorter time")
    trace = read_trace(events_of(kernel.text.splitlines()), wanted.thread)
    _print(trace, wanted.thread, wanted.worst, console)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
