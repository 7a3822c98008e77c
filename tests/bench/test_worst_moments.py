"""What `bench.worst_moments` makes of a trace: lines as the kernel writes them, with times that are known by hand."""

from __future__ import annotations

import pytest

from bench.kernel_trace import events_of
from bench.worst_moments import Trace, read_trace

TRACE = """\
# tracer: nop
          fabric-41      [000] ..... 100.000000: sys_exit: NR 441 (0, 0, 0, 0, 0, 0)
          fabric-41      [000] ..... 100.000010: sys_enter: NR 20 (9, 0, 0, 0, 0, 0)
          fabric-41      [000] ..s1. 100.000020: softirq_entry: vec=3 [action=NET_RX]
          fabric-41      [000] ..s1. 100.000060: softirq_exit: vec=3 [action=NET_RX]
          fabric-41      [000] ..... 100.000070: sys_exit: NR 20 = 1524
          fabric-41      [000] ..... 100.000075: sys_enter: NR 441 (4, 0, 100, 0, 0, 0)
          fabric-41      [000] d.... 100.000076: hrtimer_start: hrtimer=00000000bd function=hrtimer_wakeup \
expires=100000500000 softexpires=100000500000 mode=ABS was_armed=0
          fabric-41      [000] d..2. 100.000077: sched_stat_runtime: comm=fabric pid=41 runtime=77000 [ns]
          fabric-41      [000] d..2. 100.000078: sched_switch: prev_comm=fabric prev_pid=41 prev_prio=98 prev_state=S \
==> next_comm=opt cgu-0.03 next_pid=77 next_prio=120
           agent-42      [001] d..2. 100.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=agent next_pid=42 next_prio=110
    opt cgu-0.03-77      [000] d.h1. 100.000900: sched_waking: comm=fabric pid=41 prio=98 target_cpu=000
    opt cgu-0.03-77      [000] d..2. 100.000910: sched_stat_runtime: comm=opt cgu-0.03 pid=77 runtime=432000 [ns]
    opt cgu-0.03-77      [000] d..2. 100.000910: sched_switch: prev_comm=opt cgu-0.03 prev_pid=77 prev_prio=120 \
prev_state=R ==> next_comm=fabric next_pid=41 next_prio=98
          fabric-41      [000] ..... 100.000920: sys_exit: NR 441 = 0
           agent-42      [001] d..2. 100.001000: sched_switch: prev_comm=agent prev_pid=42 prev_prio=110 prev_state=S \
==> next_comm=swapper/1 next_pid=0 next_prio=120
"""


@pytest.fixture
def trace() -> Trace:
    return read_trace(events_of(TRACE.splitlines()), "fabric")


def test_a_sleep_is_late_from_the_moment_that_its_timer_was_for(trace: Trace) -> None:
    worst = trace.worst(1)[0]
    assert (worst.what, worst.processor) == ("wake-up", 0)
    # The timer was for 500 us, its interrupt came at 900 us, and the loop went on at 920 us.
    assert worst.length_us == pytest.approx(420)


def test_all_else_lasts_from_look_to_look(trace: Trace) -> None:
    found = [(moment.what, round(moment.length_us)) for moment in trace.moments]
    assert found == [("own code", 10), ("writev", 60), ("own code", 5), ("wake-up", 420)]


def test_the_processors_uses_are_told_for_each_moment(trace: Trace) -> None:
    late, write = trace.worst(2)
    # From 500 us on: the other thread until it is pushed aside at 910 us, then the loop itself. It has no name yet at
    # the end of the trace.
    assert Trace.used(trace.threads[0], late) == pytest.approx({"opt cgu-0.03": 410})
    assert Trace.used(trace.threads[1], late) == pytest.approx({"agent": 420})
    assert Trace.used(trace.softirqs[0], write) == pytest.approx({"NET_RX": 40})
    assert Trace.used(trace.softirqs[0], late) == {}


def test_what_a_hypervisor_took_is_what_the_kernel_does_not_count_as_run_time(trace: Trace) -> None:
    # Of 832 us between two switches the thread ran for 432 us: up to 400 of the late wake-up's 420 us are not its own.
    assert Trace.used(trace.taken[0], trace.worst(1)[0]) == pytest.approx({"hypervisor": 400})


def test_a_thread_that_was_pushed_aside_has_not_slept() -> None:
    pushed = TRACE.replace("prev_state=S ==> next_comm=opt", "prev_state=R+ ==> next_comm=opt")
    worst = read_trace(events_of(pushed.splitlines()), "fabric").worst(1)[0]
    assert (worst.what, round(worst.length_us)) == ("epoll_pwait2", 845)
