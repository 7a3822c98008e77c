"""The clock that programs read without a system call: it gives what the kernel gives, and is the kernel's."""

from __future__ import annotations

import shutil

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel

pytestmark = needs_a_kernel

BOTH_WAYS = """
import ctypes, time
libc = ctypes.CDLL(None)
CLOCKS = (time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)

def asked(clock):
    "What the kernel says: clock_gettime(2) as a system call."
    told = (ctypes.c_long * 2)()
    assert libc.syscall(228, clock, told) == 0
    return told[0] * 10**9 + told[1]

def check():
    "Both ways by turns: time goes on at each reading, and neither way is ahead of the other."
    for clock in CLOCKS:
        told = [way(clock) for _ in range(3000) for way in (time.clock_gettime_ns, asked)]
        steps = [after - before for before, after in zip(told, told[1:])]
        # 256 ns for a reading, 200 ns for a system call, now and then a tick of the kernel's timer.
        assert 200 <= min(steps) and max(steps) < 100_000, (clock, min(steps), max(steps))
"""

EACH_NS = """
for clock in CLOCKS:
    before = asked(clock)
    for _ in range(10_000):
        time.clock_gettime_ns(clock)
    print((asked(clock) - before) / 10_000)
"""

SET = """
time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + 5 * 10**18 + 123)
check()
assert time.time() > 6e9
# ADJ_FREQUENCY, 500 parts in a million: the kernel's clock has another rate then.
wanted = (ctypes.c_long * 64)(2, 0, 500 << 16)
assert libc.adjtimex(wanted) >= 0
check()
time.sleep(1)
check()
print("as the kernel's")
"""

SCRIBBLE = """
libc.getauxval.restype = ctypes.c_ulong
place = ctypes.c_ulong.from_address(libc.getauxval(33) + 4096 - 8).value
before = asked(time.CLOCK_MONOTONIC)
for now, until, cost in ((2**62, 2**63, 1), (2**64 - 1, 0, 0), (0, 2**63, 2**40), (10**13, 10**15, 10**12)):
    lent = (ctypes.c_ulong * 3).from_address(place)
    lent[:] = (now, until, cost)
    time.monotonic_ns()
    assert 0 < asked(time.CLOCK_MONOTONIC) - before < 10**8
time.sleep(1)
assert 10**9 < asked(time.CLOCK_MONOTONIC) - before < 11 * 10**8
check()
print("only its own")
"""


def printed(program: str, *before: str) -> list[str]:
    """The words that a Python program prints in a host."""
    net = tn.Network(seed=7)
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        return lab["h1"].run([*before, "python3", "-c", BOTH_WAYS + program], check=True).stdout.split()


def test_both_ways_give_the_same_clock() -> None:
    assert printed("check(); print('as one')") == ["as", "one"]


def test_a_reading_costs_no_system_call() -> None:
    # 456 ns would be one with a system call.
    assert all(255 < float(one) < 262 for one in printed(EACH_NS))


def test_a_clock_that_was_set_or_has_another_rate_is_the_kernels_too() -> None:
    assert printed(SET) == ["as", "the", "kernel's"]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_clock_in_a_namespace_of_its_own_is_the_kernels_too() -> None:
    assert printed("check(); print(time.monotonic() > 10**6)", "unshare", "-T", "--monotonic", "1000000") == ["True"]


def test_a_program_that_writes_into_the_clock_changes_nobodys_time() -> None:
    assert printed(SCRIBBLE) == ["only", "its", "own"]
