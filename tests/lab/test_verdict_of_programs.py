"""What holds up hosts' programs, their sockets and the lab's owner is seen by the verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from means import MEANS

from bench.disturbances import Disturbance, debugged, frozen, short_hog_beside

pytestmark = [pytest.mark.quiet, needs_a_lab]

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
RECEIVER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.bind(("", 5000))
print("up", flush=True)
while True:
    s.recv(2048)
    time.sleep(float(sys.argv[1]))
"""
SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 5000))
for _ in range(200):
    s.send(bytes(500))
    time.sleep(0.002)
"""
BUSY = "import os\nos.sched_setaffinity(0, {0})\nprint('up', flush=True)\nwhile True: pass"
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
print("up", flush=True)
while True:
    s.sendto(*s.recvfrom(2048))
"""
ASKER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 5000))
for _ in range(200):
    s.send(bytes(100))
    s.recv(2048)
    time.sleep(0.003)
"""
GRANDPARENT = """
import os, signal, subprocess, time
child = subprocess.Popen(["sleep", "60"])
for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL):
    child.send_signal(number)
    time.sleep(0.3)
child.wait()
"""
OWNER = """
import json, sys
import twinnet as tn
network = tn.templates.single(2)
network.controller(tn.control.LearningSwitch)
with network.emulate() as lab:
    lab.wait_for_controllers()
    lab["h1"].run("ping -c 1 h2", check=True)
    lab.fidelity(reset=True)
    print(lab.pid, flush=True)
    sys.stdin.readline()
    lab["h2"].run("ping -c 1 h1", check=True)
    record = lab.fidelity()
    print(json.dumps([record.controllers_paused_ps, str(record.verdict()), record.raw["controllers"]]), flush=True)
"""


@contextmanager
def program(lab: tn.Lab, host: str, script: str, *arguments: object) -> Iterator[None]:
    """A Python program in `host` that has said that it is up."""
    job = lab[host].popen([sys.executable, "-I", "-c", script, *map(str, arguments)])
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == b"up\n"
        yield
    finally:
        job.kill()
        job.wait()
        job.close_streams()


def test_a_quiet_lab_tells_that_it_could_count_everything() -> None:
    with tn.templates.single(2).emulate() as lab:
        lab["h1"].run("ping -c 3 -i 0.1 h2", check=True)
        record = lab.fidelity()
    assert record.sources is not None
    assert set(record.sources) >= {"thread_waits", "memory_pressure", "quota", "steal", "programs", "sockets"}
    assert record.programs.stops == 0
    assert not record.programs.dropped_datagrams
    assert not [reason for reason in record.verdict().reasons if "controller" in reason or "signal" in reason]


def test_what_a_slow_receivers_socket_has_no_room_for_is_no_loss_of_the_network() -> None:
    with tn.templates.single(2).emulate() as lab, program(lab, "h2", RECEIVER, 0.01):
        lab.fidelity(reset=True)
        lab["h1"].run([sys.executable, "-I", "-c", SENDER, lab["h2"].ip], check=True)
        record = lab.fidelity()
        lab.fidelity(reset=True)
        after = lab.fidelity()
    assert 80 <= record.programs.dropped_datagrams["h2"] <= 200
    assert any("h2" in reason and "no room" in reason for reason in record.verdict().reasons), record.verdict()
    assert not after.programs.dropped_datagrams


def test_a_program_that_a_signal_stopped_for_30_ms_is_seen_though_that_is_over() -> None:
    with tn.templates.single(2).emulate() as lab:
        job = lab["h2"].popen([sys.executable, "-I", "-c", SLEEPER])
        assert job.stdout is not None
        job.stdout.readline()
        lab.fidelity(reset=True)
        for _ in range(2):
            job.signal(signal.SIGSTOP)
            time.sleep(0.03)
            job.signal(signal.SIGCONT)
        # The notices of both stops come before that of the end.
        job.kill()
        job.wait()
        record = lab.fidelity()
        job.close_streams()
    assert record.programs.stops == 2
    assert 20e9 <= record.programs.longest_stop_ps < 2e12
    assert any("a signal stopped" in reason and "python" in reason for reason in record.verdict().reasons)


def record_beside(disturbance: Disturbance, strength: int) -> tn.FidelityRecord:
    """The record of a second in which the disturbance was at an idle server of h2, four times."""
    with tn.templates.single(2).emulate() as lab, program(lab, "h2", SLEEPER):
        lab["h1"].run("ping -c 1 h2", check=True)
        lab.fidelity(reset=True)
        with disturbance(lab, strength, 1.0):
            lab["h1"].run("ping -c 11 -i 0.1 h2", check=True)
        return lab.fidelity()


@pytest.mark.skipif(not MEANS["root"].is_here(), reason="only root may trace programs of a lab")
def test_a_program_that_a_debugger_held_for_100_ms_is_seen_and_the_run_invalid() -> None:
    held = record_beside(debugged, 7)
    assert (held.held.by, held.held.program[:6]) == ("tracer", "python")
    # Four holds of 0.1 s, each from the look before it to the one after it; in all from the looks that find them.
    assert held.held.longest_s >= 0.1
    assert held.held.total_s >= 0.2
    assert held.programs.stops == 0
    assert held.verdict().state == "invalid"
    assert any("a debugger or tracer held a program of the lab (python" in reason for reason in held.verdict().reasons)


NO_FIRST = pytest.mark.skipif(not MEANS["freezer-1"].is_here(), reason="no control group of version 1 that freezes")
NO_SECOND = pytest.mark.skipif(not MEANS["freezer-2"].is_here(), reason="no control group of version 2 that freezes")


@pytest.mark.parametrize("version", [pytest.param(1, marks=NO_FIRST), pytest.param(2, marks=NO_SECOND)])
def test_a_program_whose_control_group_was_frozen_for_100_ms_is_seen_and_the_run_invalid(version: int) -> None:
    record = record_beside(lambda *asked: frozen(*asked, version=version), 7)
    assert (record.held.by, record.held.program[:6]) == ("frozen", "python")
    assert record.held.longest_s >= 0.1
    assert record.held.total_s >= 0.2
    assert record.verdict().state == "invalid"


def test_a_signal_to_a_program_that_another_program_started_is_seen() -> None:
    with tn.templates.single(2).emulate() as lab:
        lab["h1"].run("ping -c 1 h2", check=True)
        lab.fidelity(reset=True)
        pings = lab["h1"].popen("ping -c 20 -i 0.05 h2")
        lab["h2"].run([sys.executable, "-I", "-c", GRANDPARENT], check=True)
        pings.wait()
        record = lab.fidelity()
        pings.close_streams()
    assert (record.programs.stops, record.held.by, record.held.program) == (0, "signal", "sleep")
    assert record.held.longest_s >= 0.25


def test_a_lab_that_nothing_holds_tells_so() -> None:
    with tn.templates.single(2).emulate() as lab, program(lab, "h2", SLEEPER):
        lab.fidelity(reset=True)
        lab["h1"].run("ping -c 10 -i 0.1 h2", check=True)
        record = lab.fidelity()
    assert record.held == tn.fidelity.ProgramHold()


@pytest.mark.judged
@pytest.mark.skipif(not MEANS["two-processors"].is_here(), reason="one processor cannot be taken from the lab")
def test_a_server_that_few_turns_reach_late_beside_a_short_real_time_program_is_not_valid() -> None:
    """3.5 ms of each 20 ms are less than a tenth of most windows of 0.05 s."""
    with tn.templates.single(2).emulate() as lab, program(lab, "h2", ECHO):
        lab["h1"].run("ping -c 1 h2", check=True)
        lab.fidelity(reset=True)
        with short_hog_beside(lab, 5, 1.0):
            lab["h1"].run([sys.executable, "-I", "-c", ASKER, lab["h2"].ip], check=True)
        record = lab.fidelity()
    assert record.late_turns.program.startswith("python")
    assert record.late_turns.waited_s > 0.01 * record.elapsed_ps / 1e12
    assert any("for turns at a processor that came late" in reason for reason in record.verdict().reasons)


@pytest.mark.judged
def test_a_program_that_shares_a_processor_is_told_by_the_window_in_which_it_waited_longest() -> None:
    with tn.templates.single(2).emulate() as lab:
        lab["h1"].run("ping -c 1 h2", check=True)
        with program(lab, "h1", BUSY), program(lab, "h2", BUSY):
            lab.fidelity(reset=True)
            lab["h1"].run("ping -c 10 -i 0.1 h2", check=True)
            record = lab.fidelity()
    # Each has half of the processor, in turns of some milliseconds.
    assert record.program_wait.share > 0.2
    assert record.program_wait.program.startswith("python")
    assert any("of 0.0" in reason and "waited for a processor" in reason for reason in record.verdict().reasons)


def test_a_stop_in_short_traffic_after_an_idle_second_is_no_small_share_of_a_second() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        lab["h1"].run("ping -c 1 h2", check=True)
        lab.fidelity(reset=True)
        begin_ps = lab.now_ps() + 1_200_000_000_000
        flow = lab.start(
            tn.apps.udp("h1", "h2", rate="5 Mbit", payload="500 B", duration="0.2 s"), tn.units.Picoseconds(begin_ps)
        )
        lab.run_until(tn.units.Picoseconds(begin_ps + 80_000_000_000))
        os.kill(lab.pid, signal.SIGSTOP)
        time.sleep(0.007)
        os.kill(lab.pid, signal.SIGCONT)
        lab.wait([flow])
        record = lab.fidelity()
    assert record.traffic.moving_ps < 0.7e12
    assert record.traffic.paused_share > 0.01
    assert any("in which frames moved" in reason for reason in record.verdict().reasons), record.verdict()


def test_a_stopped_owner_with_a_controller_in_its_process_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdin is not None and owner.stdout is not None
        owner.stdout.readline()
        owner.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        owner.send_signal(signal.SIGCONT)
        owner.stdin.write(b"go on\n")
        owner.stdin.flush()
        paused_ps, verdict, told = json.loads(owner.stdout.readline())
    assert 0.4e12 <= paused_ps < 5e12
    assert told == {"longest_pause_ps": paused_ps}
    assert "a controller in the process of the lab's owner stood still" in verdict
