"""Labs on the virtual clock that other terminals reach by name: time goes on while they wait and stands otherwise."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from twinnet.cli import exec_command
from twinnet.errors import LabClosed, LabError
from twinnet.lab.turns import Turns

TWINNET = str(Path(sys.executable).with_name("twinnet"))
needs_kernel = pytest.mark.skipif(not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock")


def two_hosts() -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    return net


def name_of(test: str) -> str:
    return f"{test}-{os.getpid()}"


def twinnet(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([TWINNET, *words], input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_a_named_lab_of_models_is_found_and_its_time_passes_for_who_waits() -> None:
    name = name_of("models")
    with two_hosts().simulate(name=name) as lab:
        assert name in [one.name for one in tn.labs()]
        with tn.attach(name) as elsewhere:
            assert (elsewhere.clock, [host.name for host in elsewhere.hosts]) == ("virtual", ["h1", "h2"])
            flow = elsewhere.start(tn.apps.ping("h1", "h2", count=3, interval="1 s"))
            assert lab.now() == 0
            assert elsewhere.wait([flow])
            assert 2.02 < lab.now() < 2.03
            elsewhere.run_until("10 s")
            elsewhere.link("h1", "h2").set(up=False)
            assert lab.now() == elsewhere.now() == 10
            assert not lab.links()[0]["ab"]["up"]
            assert elsewhere.trace_hash == lab.trace_hash
            with pytest.raises(LabError, match="h1 is a model on the virtual clock"):
                elsewhere["h1"].run("true")
        assert lab.running
    assert name not in [one.name for one in tn.labs()]


def test_a_name_is_had_once_and_an_empty_one_is_chosen() -> None:
    name = name_of("once")
    with two_hosts().simulate(name=name):
        with pytest.raises(LabError, match="is running") as taken, two_hosts().simulate(name=name):
            pass
        assert taken.value.name == "LabNameTaken"
    with two_hosts().simulate(name="") as chosen:
        assert chosen.name in [one.name for one in tn.labs()]
    with pytest.raises(LabError) as wrong, two_hosts().simulate(name="no/name"):
        pass
    assert wrong.value.name == "InvalidLabName"


def test_who_waits_is_told_when_the_lab_ends() -> None:
    told: list[BaseException] = []

    def wait(elsewhere: tn.Lab) -> None:
        try:
            # A lab with nothing to do would be there at once.
            elsewhere.start(tn.apps.ping("h1", "h2", interval="1 ms", count=100_000_000))
            elsewhere.run_until("2000 h")
        except LabClosed as error:
            told.append(error)

    with two_hosts().simulate(name=name_of("end")) as lab:
        elsewhere = tn.attach(lab.name)
        waiting = threading.Thread(target=wait, args=(elsewhere,))
        waiting.start()
        while lab.now() == 0:
            time.sleep(0.01)
    waiting.join(20)
    assert told and not elsewhere.running
    elsewhere.stop()


def test_nonsense_is_answered_or_ends_the_connection() -> None:
    from twinnet import _core

    with two_hosts().simulate(name=name_of("nonsense")) as lab:
        for said, answer in (
            (b'{"id": 1, "do": "start"}', "BadRequest"),
            (b'{"id": 2, "do": "advance", "until_ps": "x"}', "BadRequest"),
            (b'{"id": 3, "do": "no-such-thing"}', "error"),
            (b"[1, 2]", None),
            (b"{", None),
            (b'{"do": "now"}', None),
        ):
            with socket.socket(fileno=_core.open_lab(lab.name)) as client:
                client.settimeout(10)
                client.send(said)
                heard = client.recv(65536)
                assert (answer.encode() in heard) if answer is not None else heard == b""
        assert lab.now() == 0


def test_threads_get_their_turns_in_order() -> None:
    turns, order, begun = Turns(), list[int](), list[threading.Thread]()
    with turns:
        with turns:
            pass
        for number in range(5):
            asked = threading.Thread(target=lambda number=number: _note(turns, order, number))
            asked.start()
            begun.append(asked)
            while len(turns._waiting) <= number:
                time.sleep(0.001)
        assert order == []
    for thread in begun:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def _note(turns: Turns, order: list[int], number: int) -> None:
    with turns:
        order.append(number)


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    """A lab with programs at the prompt of another terminal, which nobody types at."""
    name = name_of("elsewhere")
    command = [TWINNET, "lab", "single:2", "--rate", "10 Mbit", "--delay", "10 ms"]
    with subprocess.Popen(
        [*command, "--clock", "virtual", "--programs", "--name", name], stdin=subprocess.PIPE
    ) as owner:
        assert owner.stdin is not None
        end = time.monotonic() + 60
        while name not in [one.name for one in tn.labs()]:
            assert time.monotonic() < end and owner.poll() is None
            time.sleep(0.05)
        yield name
        owner.stdin.close()
        assert owner.wait(20) == 0


def now(name: str) -> float:
    with tn.attach(name) as elsewhere:
        return elsewhere.now()


@needs_kernel
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_exec_lets_time_pass_while_its_program_runs(lab: str) -> None:
    before = now(lab)
    done = twinnet("exec", lab, "h1", "--", "ping", "-4", "-c", "3", "h2")
    assert done.returncode == 0 and done.stdout.count("time=40.4 ms") == 2, done
    assert 2 < now(lab) - before < 2.2
    # Time stands while nobody waits.
    after = now(lab)
    time.sleep(0.2)
    assert now(lab) == after


@needs_kernel
def test_exec_passes_input_output_and_status_on(lab: str) -> None:
    assert twinnet("exec", lab, "h2", "--", "wc", "-c", stdin="text\n").stdout == "5\n"
    done = twinnet("exec", lab, "h1", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 7)
    missing = twinnet("exec", lab, "h1", "--", "no-such-program-here")
    assert missing.returncode == 127 and "no such program" in missing.stderr
    told = json.loads(twinnet("exec", "--json", lab, "h1", "--", "sh", "-c", "hostname; sleep 2").stdout)
    assert told["stdout"] == "h1\n" and told["status"] == 0 and 2 <= told["elapsed_s"] < 2.1


@needs_kernel
def test_exec_hands_its_signals_on(lab: str) -> None:
    # What it writes is more than a pipe holds: it has begun when something can be read, and it does not end by itself.
    words = [TWINNET, "exec", lab, "h1", "--", "sh", "-c", "while :; do echo on; sleep 1; done"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as client:
        assert client.stdout is not None and client.stdout.readline() == b"on\n"
        client.send_signal(signal.SIGINT)
        client.stdout.read()
        assert client.wait(20) == 128 + signal.SIGINT


@pytest.mark.parametrize("numbers", [(signal.SIGINT,), (signal.SIGHUP, signal.SIGTERM)])
def test_a_signal_in_the_midst_of_a_request_waits_for_no_lock_of_it(numbers: tuple[signal.Signals, ...]) -> None:
    handed: list[int] = []
    all_here, lock = threading.Event(), threading.Lock()

    class Job:
        def signal(self, number: int) -> None:
            with lock:
                handed.append(number)
            if len(handed) == len(numbers):
                all_here.set()

    before = {number: signal.getsignal(number) for number in exec_command._HANDED_ON}
    try:
        signals = exec_command._Signals()
        signals.catch()
        signals.hand_on_to(Job())  # type: ignore[arg-type]
        with lock:
            for number in numbers:
                signal.raise_signal(number)
        assert all_here.wait(20) and handed == list(numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@needs_kernel
def test_time_stands_when_a_client_was_killed(lab: str) -> None:
    words = [TWINNET, "exec", lab, "h1", "--", "sleep", "100000000"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as client:
        before = now(lab)
        while now(lab) < before + 10:
            time.sleep(0.02)
        client.kill()
    end = time.monotonic() + 20
    while (stands := now(lab)) != (time.sleep(0.3), now(lab))[1]:
        assert time.monotonic() < end, stands
    assert twinnet("exec", lab, "h1", "--", "hostname").stdout == "h1\n"


@needs_kernel
def test_a_reader_that_sleeps_holds_nobody_else_up(lab: str) -> None:
    words = [TWINNET, "exec", lab, "h1", "--", "yes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as slow:
        assert slow.stdout is not None and slow.stdout.readline() == b"y\n"
        assert twinnet("exec", lab, "h2", "--", "hostname").stdout == "h2\n"
        slow.stdout.close()
        slow.send_signal(signal.SIGTERM)
        assert slow.wait(20) == 128 + signal.SIGTERM


@needs_kernel
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_lines_of_the_prompt_and_captures_work_from_elsewhere(lab: str, tmp_path: Path) -> None:
    file = tmp_path / "s1.pcapng"
    done = twinnet("do", lab, f"capture s1-eth1 {file}", "h1 ping -4 -c 2 h2", "capture stop", "links")
    assert done.returncode == 0 and "2 packets transmitted, 2 received" in done.stdout, done
    assert "delay 10 ms" in done.stdout
    assert file.stat().st_size > 4 * 98


@needs_kernel
def test_programs_of_an_attached_lab_stand_until_somebody_waits(lab: str) -> None:
    with tn.attach(lab) as elsewhere:
        job = elsewhere["h1"].popen(["sh", "-c", "sleep 5; cat; echo end"], stdin=tn.lab.PIPE)
        begun = elsewhere.now()
        assert job.poll() is None and elsewhere.now() == begun
        assert job.stdin is not None and job.stdout is not None
        job.stdin.write(b"given\n")
        job.stdin.close()
        assert job.stdout.read() == b"given\nend\n"
        assert job.wait().returncode == 0 and elsewhere.now() - begun >= 5
        assert elsewhere["h2"].run("cat", input="x" * 200_000).stdout == "x" * 200_000
