"""Programs in hosts as users see them: their status, signals and terminal, and that they end with their lab."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from lab_protocol import eventually
from labs_here import can_run_labs
from terminal_session import TerminalSession
from twinnet.lab.lab import Lab

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tn.__file__).parent.parent), "LC_ALL": "C", "TERM": "xterm"}

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tn.templates.single(2).emulate() as running:
        yield running


def twinnet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TWINNET, *arguments], capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False
    )


def running(mark: str) -> bool:
    """Whether a process of this machine has `mark` as an argument."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in entry.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_the_prompt_tells_the_status_of_programs() -> None:
    script = ["h1 true", "h1 exit 3", "h1 kill -KILL $$", "h1 no-such-program-here", "h1 true | false"]
    done = twinnet("lab", "single:1", "--json", *(word for line in script for word in ("-c", line)))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["result"]["status"] for answer in answers] == [0, 3, 137, 127, 1]
    assert [answer["ok"] for answer in answers] == [True, False, False, False, False]
    assert done.returncode == 1
    assert twinnet("lab", "single:1", "-c", "h1 true").returncode == 0
    assert twinnet("lab", "single:1", "-c", "h1 false").returncode == 1


def test_what_runs_in_the_background_ends_with_the_lab() -> None:
    mark = f"{10_000 + os.getpid()}"
    script = [f"h1 sleep {mark} &", f"h2 setsid sleep {mark} &", f"h1 (trap '' HUP TERM; sleep {mark}) &", "jobs"]
    done = twinnet("lab", "single:2", *(word for line in script for word in ("-c", line)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(mark) >= 3
    assert eventually(lambda: not running(mark))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda one: one.name
)
def test_exec_hands_signals_on_and_ends_as_the_program_did(lab: Lab, number: signal.Signals) -> None:
    # No shell: dash can lose an interrupt that comes between two commands.
    program = "import time; print('begun', flush=True); time.sleep(100)"
    command = [*TWINNET, "exec", lab.name, "h1", "--", sys.executable, "-c", program]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **streams, env=ENVIRONMENT, start_new_session=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"begun\n"
        # The program may write before its client has been told that it runs.
        client.send_signal(number)
        assert client.wait(20) == 128 + number
    assert [job for job in lab.jobs() if job["state"] == "running"] == []


def test_exec_says_when_the_lab_ends_under_it() -> None:
    with tn.templates.single(1).emulate() as short:
        command = [*TWINNET, "exec", short.name, "h1", "--", "sh", "-c", "echo begun; exec sleep 100"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True
        ) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "begun\n"
            short.stop()
            _, told = client.communicate(timeout=20)
        assert client.returncode == 1
        assert told.startswith(("twinnet: the lab was stopped", "twinnet: the lab has ended"))
        assert len(told.splitlines()) == 1


@pytest.mark.skipif(shutil.which("vi") is None, reason="vi is not installed")
def test_an_editor_in_a_host_edits(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    session = TerminalSession([*TWINNET, "exec", lab.name, "h1", "--", "vi", str(file)], ENVIRONMENT)
    session.await_text("note.txt")
    session.type("ihello from h1\x1b")
    session.type(":wq\r")
    assert session.status() == 0
    assert file.read_text() == "hello from h1\n"


@pytest.mark.skipif(shutil.which("top") is None, reason="top is not installed")
def test_top_in_a_host_shows_that_hosts_processes_only(lab: Lab) -> None:
    session = TerminalSession([*TWINNET, "exec", lab.name, "h2", "--", "top", "-n1"], ENVIRONMENT, columns=120)
    session.await_text("load average")
    session.await_text("twinnet:")
    session.await_text("top")
    assert b"pytest" not in session.screen
    assert session.status() == 0


def test_the_hosts_terminal_has_the_size_of_the_users_and_follows_it(lab: Lab) -> None:
    script = "stty size; trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.05; done"
    session = TerminalSession([*TWINNET, "exec", lab.name, "h1", "--", "sh", "-c", script], ENVIRONMENT, 31, 97)
    session.await_text("31 97")
    session.await_text("ready")
    session.resize(45, 111)
    session.await_text("45 111")
    assert session.status() == 4


def test_keys_that_interrupt_reach_the_program_and_not_the_lab() -> None:
    session = TerminalSession([*TWINNET, "lab", "single:2"], ENVIRONMENT)
    session.await_text("twinnet>")
    session.type("h1 ping h2\r")
    session.await_text("64 bytes from")
    session.type("\x03")
    session.await_text("packets transmitted")
    session.await_text("twinnet>")
    session.type("h1 echo still $((40 + 2))\r")
    session.await_text("still 42")
    session.await_text("twinnet>")
    session.type("exit\r")
    assert session.status() == 0


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_prompt_ends_when_its_lab_was_killed() -> None:
    session = TerminalSession([*TWINNET, "lab", "single:2"], ENVIRONMENT)
    session.await_text("twinnet>")
    for pid in children_of(session.pid):
        os.kill(pid, signal.SIGKILL)
    session.await_text("the lab has ended")
    assert session.status() == 1


def test_a_script_on_a_pipe_ends_when_its_lab_was_killed() -> None:
    command = [*TWINNET, "lab", "single:2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as script:
        assert script.stdin is not None and script.stdout is not None and script.stderr is not None
        script.stdin.write("h1 echo größe\nh1 echo half".encode())
        script.stdin.flush()
        assert script.stdout.readline() == "größe\n".encode()
        for pid in children_of(script.pid):
            os.kill(pid, signal.SIGKILL)
        # Nobody closes its input.
        assert script.wait(20) == 1
        assert b"the lab has ended" in script.stderr.read()
