"""Ctrl-C at each moment of a lab with programs on the virtual clock: it ends at once and leaves nothing. And a guest
that stands still is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import twinnet as tn
from child_processes import children
from kernels_here import a_kernel_is_here
from twinnet.errors import LabError
from twinnet.lab import guest_options

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

LIMIT_S = 60
"""Far more than any of these takes, on a busy machine too."""

OWNER = """
import time
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    lab["h1"].run("hostname", check=True)
    print("now", flush=True)
    {work}
"""
WORK = {
    "idle": 'lab.run_until("100 h")',
    "a program that asks often": 'lab["h1"].run("sh -c \'while :; do sleep 0.001; done\'")',
    "a program that sends": 'lab["h1"].run("ping -q -i 0.002 h2")',
    "a read of a pipe": 'lab["h1"].popen("sleep 1000000000").stdout.read()',
    "between two calls": "time.sleep(1000)",
}
LAB = ("lab", "single:2", "--rate", "10 Mbit", "--clock", "virtual", "--programs")


@contextmanager
def started(folder: Path, *command: str) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A process and its guest's kernel; afterwards both are gone, and so are their files."""
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, *command], env=environment, **pipes) as owner:  # type: ignore[call-overload]
        try:
            end = time.monotonic() + LIMIT_S
            while not (kernels := children(owner.pid)):
                assert time.monotonic() < end and owner.poll() is None, "there is no guest"
                time.sleep(0.01)
            yield owner, kernels
        finally:
            owner.kill()
    end = time.monotonic() + LIMIT_S
    while any(Path(f"/proc/{pid}").exists() for pid in kernels):
        # One that was interrupted before it had the lab in hand leaves its kernel to the system.
        assert time.monotonic() < end, "the guest's kernel lives on"
        time.sleep(0.02)
    assert list(folder.iterdir()) == []


def ended(owner: subprocess.Popen[bytes]) -> str:
    """What it says when it ends."""
    _, said = owner.communicate(timeout=LIMIT_S)
    return said.decode()


@pytest.mark.parametrize("after_s", [0, 0.1, 0.3])
def test_an_interrupt_while_the_guest_boots_ends_it(tmp_path: Path, after_s: float) -> None:
    with started(tmp_path, "-c", OWNER.format(work="time.sleep(1000)")) as (owner, _):
        time.sleep(after_s)
        owner.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in ended(owner)
        assert owner.returncode == -signal.SIGINT


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_an_interrupt_ends_the_lab_whatever_it_does(tmp_path: Path, work: str) -> None:
    with started(tmp_path, "-c", OWNER.format(work=work)) as (owner, _):
        assert owner.stdout is not None and owner.stdout.readline() == b"now\n"
        time.sleep(0.2)
        owner.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in ended(owner)
        assert owner.returncode == -signal.SIGINT


def command_line(*words: str) -> tuple[str, ...]:
    return ("-c", "import sys; from twinnet.cli import run; sys.exit(run(sys.argv[1:]))", *words)


@pytest.mark.parametrize("line", ["sleep 100 h", "h1 echo now && sleep 1000000000", "py __import__('time').sleep(999)"])
def test_the_command_line_ends_with_status_130(tmp_path: Path, line: str) -> None:
    words = (*LAB, "-c", "h1 echo begun", "-c", line, "-c", "h1 echo not any more")
    with started(tmp_path, *command_line(*words)) as (owner, _):
        assert owner.stdout is not None and owner.stdout.readline() == b"begun\n"
        time.sleep(0.5)
        owner.send_signal(signal.SIGINT)
        written, said = owner.communicate(timeout=LIMIT_S)
        assert owner.returncode == 130
        assert said.endswith(b"twinnet: interrupted\n") and b"Traceback" not in said, said.decode()
        assert b"not any more" not in written


def test_a_program_that_does_not_listen_is_ended_by_the_second_interrupt(tmp_path: Path) -> None:
    line = "h1 trap '' INT; echo deaf; while :; do sleep 1; done"
    with started(tmp_path, *command_line(*LAB, "-c", line)) as (owner, _):
        assert owner.stdout is not None and owner.stdout.readline() == b"deaf\n"
        for _ in range(2):
            # On a busy machine two that come close together are one: a process keeps one signal of a kind.
            time.sleep(2)
            assert owner.poll() is None
            owner.send_signal(signal.SIGINT)
        assert "interrupted" in ended(owner)
        assert owner.returncode == 130


def test_a_guest_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_options, "_SILENCE_S", 1.0)
    before = set(children(os.getpid()))
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with net.simulate(hosts="programs") as lab:
        (kernel,) = set(children(os.getpid())) - before
        job = lab["h1"].popen("sh -c 'while :; do sleep 0.01; done'")
        os.kill(kernel, signal.SIGSTOP)
        with pytest.raises(LabError, match=r"has stood still for 1 s of real time: .*kill -CONT") as told:
            lab.run_until("10 s")
        assert told.value.name == "GuestStands"
        with pytest.raises(LabError, match="has stood still"):
            job.wait()
    assert set(children(os.getpid())) == before


def test_a_guest_that_takes_no_order_in_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guest_options, "_SILENCE_S", 1.0)
    before = set(children(os.getpid()))
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with net.simulate(hosts="programs") as lab:
        (kernel,) = set(children(os.getpid())) - before
        lab.run_until("1 s")
        os.kill(kernel, signal.SIGSTOP)
        with pytest.raises(LabError, match="has stood still for 1 s of real time: it has the turn") as told:
            lab["h1"].run("hostname")
        assert told.value.name == "GuestStands"
    assert set(children(os.getpid())) == before
