"""What programs on the virtual clock ask the processor itself: its random numbers and its counter."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import needs_a_kernel

pytestmark = [needs_a_kernel, pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")]

ASKING = Path(__file__).parents[2] / "bench" / "processor_numbers.cpp"
"""Prints two numbers of ``std::random_device``, the counter twice, two of RDRAND and two of RDSEED."""


def built(folder: Path, source: str, *options: str) -> Path:
    program = folder / "program"
    command = ["g++", "-O1", *options, "-x", "c++", "-", "-o", str(program)]
    subprocess.run(command, input=source.encode(), check=True, capture_output=True)
    return program


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    return built(tmp_path, ASKING.read_text(), "-mrdrnd", "-mrdseed")


def printed(commands: Sequence[Sequence[str]], seed: int = 7) -> list[str]:
    """What the commands print, one after the other in one host."""
    net = tn.Network(seed=seed)
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        return [lab["h1"].run(list(command), check=True).stdout for command in commands]


def test_its_random_numbers_follow_from_the_seed(asking: Path) -> None:
    first, later = (one.split() for one in printed([[str(asking)]] * 2))
    # A processor that has no such instruction leaves zeros.
    drawn = [number for number in (*first[:2], *first[4:], *later[:2], *later[4:]) if int(number, 16)]
    assert len(set(drawn)) == len(drawn) >= 4, "each draw gives another number"
    assert [one.split() for one in printed([[str(asking)]] * 2)] == [first, later]
    assert printed([[str(asking)]], seed=8)[0].split()[0] != first[0]


def test_a_static_program_gets_them_too(tmp_path: Path) -> None:
    program = built(tmp_path, ASKING.read_text(), "-mrdrnd", "-mrdseed", "-static")
    assert printed([[str(program)]]) == printed([[str(program)]])


COUNTING = """
#include <cstdio>
#include <ctime>
#include <x86intrin.h>
int main() {
    unsigned int place = 9;
    unsigned long long before = __rdtsc(), after = __rdtscp(&place);
    timespec nap = {0, 250000000};
    nanosleep(&nap, nullptr);
    std::printf("%llu %llu %u\\n", after - before, __rdtsc() - after, place);
    while (__rdtsc() - after < 300000000) {
    }
    return 0;
}
"""


def test_its_counter_counts_virtual_nanoseconds(tmp_path: Path) -> None:
    # A reading costs 256 ns, and a system call 200 ns. The program polls until 300 ms have passed, which ends.
    reading, nap, place = map(int, printed([[str(built(tmp_path, COUNTING))]])[0].split())
    assert (reading, place) == (256, 0)
    assert 250_000_000 < nap < 250_100_000


def test_a_program_is_on_the_disk_as_it_was(asking: Path) -> None:
    sums = printed([[str(asking)], ["sha256sum", str(asking)]])[1]
    assert sums.split()[0] == hashlib.sha256(asking.read_bytes()).hexdigest()


def test_an_instruction_that_is_none_still_ends_a_program(tmp_path: Path) -> None:
    program = built(tmp_path, "int main(int count, char **) { if (count) __builtin_trap(); }")
    net = tn.Network()
    net.host("h1")
    with net.simulate(hosts="programs") as lab:
        assert lab["h1"].run([str(program)]).returncode == -signal.SIGILL


LOOKALIKE = """
#include <cstdio>
int main() {
    unsigned long long number;
    asm volatile("movabs $0x11f0c70f44332211, %0" : "=r"(number));
    std::printf("%llx\\n", number);
    asm volatile("movabs $0x2020e2c148310f11, %0" : "=r"(number));
    std::printf("%llx\\n", number);
    return 0;
}
"""


def test_the_same_bytes_in_another_instruction_stay(tmp_path: Path) -> None:
    program = built(tmp_path, LOOKALIKE)
    assert b"\x0f\xc7\xf0" in program.read_bytes() and b"\x0f\x31\x48\xc1\xe2\x20" in program.read_bytes()
    assert printed([[str(program)]]) == ["11f0c70f44332211\n2020e2c148310f11\n"]
