"""Programs on a terminal in a lab on the virtual clock, whose time goes as fast as real time meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from terminal_session import PATIENCE_S, TerminalSession
from twinnet.errors import LabError
from twinnet.lab.terminal_job import start_on_terminal

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)

TWINNET = str(Path(sys.executable).with_name("twinnet"))
ENVIRONMENT = os.environ | {"TERM": "xterm", "PS1": "$ "}


@pytest.fixture
def lab() -> Iterator[tn.Lab]:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with net.simulate(hosts="programs", name=f"terminals-{os.getpid()}") as lab:
        yield lab


def read_until(terminal: int, text: bytes) -> bytes:
    screen, deadline = b"", time.monotonic() + PATIENCE_S
    os.set_blocking(terminal, False)
    while text not in screen and time.monotonic() < deadline:
        try:
            screen += os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break
    assert text in screen
    return screen


def exec_(lab: tn.Lab, *command: str, options: tuple[str, ...] = (), rows: int = 30) -> TerminalSession:
    return TerminalSession([TWINNET, "exec", *options, lab.name, "h1", "--", *command], ENVIRONMENT, rows)


def test_a_shell_has_a_terminal_and_hears_of_its_size(lab: tn.Lab) -> None:
    session = exec_(lab, "sh", rows=31)
    session.type("tty; stty size\n")
    session.await_text("/dev/pts/")
    session.await_text("31 100")
    session.resize(40, 90)
    session.type("sleep 0.5; stty size\n")
    session.await_text("40 90")
    session.type("exit 5\n")
    assert session.status() == 5


@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_an_interrupt_at_the_terminal_ends_a_ping_that_goes_as_fast_as_real_time(lab: tn.Lab) -> None:
    began_s = time.monotonic()
    session = exec_(lab, "ping", "-4", "h2", options=("--terminal",))
    session.await_text("icmp_seq=3")
    # Two intervals of a second each lie between the first and the third.
    assert 2.0 <= lab.now() <= time.monotonic() - began_s
    session.type("\x03")
    session.await_text("0% packet loss")
    assert session.status() == 0
    stood = lab.now()
    time.sleep(0.1)
    assert lab.now() == stood, "time stands when nothing has a terminal"


def test_who_hangs_up_ends_the_program(lab: tn.Lab) -> None:
    job, terminal = start_on_terminal(lab, "h1", ["sh", "-c", "echo there; sleep 1000"], (24, 80))
    read_until(terminal, b"there\r\n")
    os.close(terminal)
    assert job.wait().returncode == -signal.SIGHUP
    assert lab.now() < 900


def test_all_that_a_program_wrote_is_shown_before_its_end_is_told(lab: tn.Lab) -> None:
    session = exec_(lab, "sh", "-c", "seq 1 20000; exit 3", options=("-t",))
    session.await_text("20000\r\n")
    assert session.status() == 3


def test_a_program_that_is_not_there_has_no_terminal(lab: tn.Lab) -> None:
    with pytest.raises(LabError, match="no-such-program"):
        start_on_terminal(lab, "h1", ["no-such-program"], (24, 80))
    session = exec_(lab, "no-such-program", options=("-t",))
    assert session.status() == 127


def test_a_terminal_ends_with_its_lab() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit")
    with net.simulate(hosts="programs") as lab:
        job, terminal = start_on_terminal(lab, "h1", ["sleep", "1000"], (24, 80))
        assert job.poll() is None
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if not os.read(terminal, 100):
                break
        except OSError:
            # EIO: the lab's end is closed.
            break
    assert time.monotonic() < deadline
    os.close(terminal)


def test_without_a_terminal_none_can_be_asked_for(lab: tn.Lab) -> None:
    command = [TWINNET, "exec", "-t", lab.name, "h1", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--terminal needs a terminal" in done.stderr
