"""What a kernel does that was built as ours: its random numbers, its clock and its timers. It boots by itself, with the
clock that never waits (``time-travel=inf-cpu``), and runs a script of the machine's shell."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kernels_here import needs_a_kernel
from twinnet.guest import needed

pytestmark = needs_a_kernel

LIMIT_S = 120
FIXED = ("time-travel=inf-cpu", "time-travel-start=1000000000000000000")
CONSOLE = ("con=null", "con0=null,fd:1", "console=tty0", "quiet", "panic=-1")


def printed(folder: Path, script: str, *parameters: str) -> list[str]:
    """The words that `script` prints in a kernel that is started with these parameters."""
    init = folder / "init"
    init.write_text(f"#!/bin/sh\nmount -t proc p /proc\necho BEGIN\n{script}\necho END\n")
    init.chmod(0o755)
    given = ["mem=128M", "rootfstype=hostfs", "root=/dev/root", "ro", f"init={init}", *CONSOLE]
    # Its first process ends, and so the kernel does: by a panic, for which it has a status of its own.
    done = subprocess.run(
        [needed().path, *given, *FIXED, *parameters],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=folder,
    )
    found = re.search(r"BEGIN\r?\n(.*)END", done.stdout, re.DOTALL)
    assert found, done.stdout + done.stderr
    return found.group(1).split()


def test_its_random_numbers_follow_from_the_seed(tmp_path: Path) -> None:
    drawn = "cat /proc/sys/kernel/random/uuid; od -An -N16 -tx1 /dev/urandom"
    first, again, other = (printed(tmp_path, drawn, f"rngseed={seed}") for seed in (7, 7, 8))
    assert len(first) == 17 and first == again
    assert first[0] != other[0] and first[1:] != other[1:]
    # Without a seed they come from the machine.
    assert printed(tmp_path, drawn)[0] != printed(tmp_path, drawn)[0]


ANEW = f"{sys.executable} -Sc 'import fcntl; fcntl.ioctl(open(\"/dev/urandom\"), 0x5206)'"
"""``RNDCLEARPOOL``."""
KERNELS_OWN = "cat /proc/sys/kernel/random/uuid"


def test_its_random_numbers_begin_anew_whatever_was_drawn_before(tmp_path: Path) -> None:
    before = f"{KERNELS_OWN} >/dev/null; sleep 3; echo mine >/dev/urandom; /bin/true; {KERNELS_OWN} >/dev/null"
    plain, longer = (printed(tmp_path, f"{earlier}\n{KERNELS_OWN}", "rngseed=7") for earlier in ("", before))
    assert plain != longer
    plain, longer = (printed(tmp_path, f"{earlier}\n{ANEW}\n{KERNELS_OWN}", "rngseed=7") for earlier in ("", before))
    assert plain == longer


def test_what_a_program_draws_follows_from_its_host_and_number(tmp_path: Path) -> None:
    draw = f"{sys.executable} -Sc 'import os; print(os.urandom(8).hex(), os.urandom(80).hex())'"

    def drawn(before: str, after: str = "") -> list[str]:
        # A namespace of its own makes its number 2, whatever was started before.
        script = f"hostname {after or 'one'}; {draw}"
        return printed(tmp_path, f"{before}\nunshare -pufm sh -c {script!r}", "rngseed=7")

    usual = drawn("")
    assert len(usual) == 2 and usual[0] != usual[1][:16]
    assert drawn(f"/bin/true; {KERNELS_OWN} >/dev/null; {draw} >/dev/null") == usual
    assert drawn("", after="two") != usual


def test_its_clock_costs_what_it_is_told(tmp_path: Path) -> None:
    read = "date +%s%N; date +%s%N"

    def between(*parameters: str) -> int:
        earlier, later = printed(tmp_path, read, "rngseed=7", *parameters)
        return int(later) - int(earlier)

    usual, dear, calls = between(), between("ttcost=1000000"), between("ttsyscall=1000000")
    # A `date` reads the clock at least once, and makes some tens of system calls.
    assert usual < 1_000_000 <= dear
    assert 10_000_000 < calls < 1_000_000_000
    assert calls == between("ttsyscall=1000000")


def test_its_timers_have_the_grain_of_other_kernels(tmp_path: Path) -> None:
    assert needed().hz == 250
    # CLOCK_MONOTONIC_COARSE goes on by jiffies, which TCP's timers count.
    asked = f"{sys.executable} -Sc 'import time; print(time.clock_getres(6))'"
    assert printed(tmp_path, asked, "rngseed=7") == ["0.004"]


def test_a_number_that_is_none_is_told(tmp_path: Path) -> None:
    wrong = [needed().path, "rngseed=seven", "mem=64M"]
    done = subprocess.run(wrong, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert "rngseed= takes a number above 0, not 'seven'" in done.stdout + done.stderr
