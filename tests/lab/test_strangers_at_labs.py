"""Another user of the machine at the addresses of our labs: is sent nothing, is told of, blocks nothing, hangs nothing.

Any user may listen at any abstract address (unix(7)), so that an address proves nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from labs_here import can_run_labs
from ordinary_user import NOBODY, CannotSwitch, OrdinaryUser
from twinnet.errors import NotAvailable
from twinnet.lab_process.connection import connect

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
LISTENS = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
listeners = []
for address in sys.argv[3:]:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(b"\\0" + address.encode("utf-8", "surrogateescape"))
    one.listen(0 if sys.argv[2] == "full" else 64)
    listeners.append(one)
waiting = []
if sys.argv[2] == "full":
    for one in listeners:
        while True:
            other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            other.setblocking(False)
            waiting.append(other)
            try:
                other.connect(one.getsockname())
            except BlockingIOError:
                break
print("listening", flush=True)
if sys.argv[2] == "takes":
    for one in listeners:
        while True:
            client, _ = one.accept()
            said, descriptors, _, _ = socket.recv_fds(client, 1 << 20, 16)
            print(len(said), len(descriptors), flush=True)
sys.stdin.read()
"""
"""A user that listens: lets clients in and tells what they send, lets them wait, or has nobody wait any more."""


@contextlib.contextmanager
def listening(how: str, *addresses: str, user: int = NOBODY) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", LISTENS, str(user), how, *addresses]
    # The interpreter of root may be out of the other user's reach: it becomes that user by itself.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        try:
            yield process
        finally:
            process.kill()


def called(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TWINNET, *arguments], capture_output=True, text=True, timeout=timeout_s, input="secret")


@pytest.fixture
def name() -> str:
    return f"victim-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture
def labs() -> None:
    if not can_run_labs():
        pytest.skip("this machine permits no namespaces: see twinnet doctor")


@contextlib.contextmanager
def running(name: str) -> Generator[subprocess.Popen[str]]:
    command = [*TWINNET, "lab", "single:2", "--name", name, "--no-wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdin is not None and lab.stdout is not None
        lab.stdin.write("h1 echo ready\n")
        lab.stdin.flush()
        try:
            assert lab.stdout.readline() == "ready\n"
            yield lab
        finally:
            lab.stdin.close()
            lab.wait(30)


@pytest.mark.parametrize(
    "command",
    [("exec", "{}", "h1", "--", "id"), ("flows", "{}", "s1"), ("graph", "{}"), ("capture", "{}", "h1-eth0", "-")],
)
def test_a_stranger_at_a_labs_address_is_sent_nothing(name: str, command: tuple[str, ...]) -> None:
    with listening("takes", f"twinnet/0/{name}") as stranger:
        done = called(*(word.format(name) for word in command))
        assert done.returncode in (1, 2)
        if command[0] == "exec":
            assert f"user {NOBODY} listens at its address, and was sent nothing" in done.stderr
        stranger.kill()
        told = stranger.stdout.read() if stranger.stdout else ""
        assert set(told.split("\n")) <= {"0 0", ""}, "bytes and descriptors that the stranger was sent"


def test_from_python_a_stranger_is_no_lab(name: str) -> None:
    with listening("takes", f"twinnet/0/{name}"), pytest.raises(NotAvailable, match=f"user {NOBODY} listens"):
        connect(name)


@pytest.mark.parametrize("how", ["takes", "waits", "full"])
def test_strangers_are_told_of_and_do_not_hang_the_list(name: str, how: str) -> None:
    addresses = [f"twinnet/0/{name}-{number}" for number in range(20)]
    with listening(how, *addresses, f"twinnet/0/{name}\udcff\n\x1b[31m"):
        done = called("labs", "--json", timeout_s=30)
    assert done.returncode == 0, done.stderr
    assert not [one for one in json.loads(done.stdout) if one["name"].startswith(name)]
    who = "somebody who lets nobody in" if how == "full" else f"user {NOBODY}"
    assert f"{who} listens at the address of a lab '{name}-0' of yours; ignored" in done.stderr
    assert "more such listeners; ignored" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("how", ["waits", "full"])
def test_a_name_that_a_stranger_holds_is_ours_all_the_same(name: str, how: str, labs: None) -> None:
    with listening(how, f"twinnet/0/{name}") as stranger, running(name):
        done = called("exec", name, "h1", "--", "cat")
        assert (done.returncode, done.stdout) == (0, "secret"), done.stderr
        taken = called("lab", "single:2", "--name", name)
        assert taken.returncode == 1 and f'a lab of yours named "{name}" is running' in taken.stderr
        stranger.kill()
        stranger.wait()
        # The stranger has gone: the name is ours still, and not to be had twice.
        assert called("lab", "single:2", "--name", name).returncode == 1
        listed = json.loads(called("labs", "--json").stdout)
        assert [one["hosts"] for one in listed if one["name"] == name] == [2]


def test_a_lab_of_ours_that_stands_still_does_not_hang_the_list(name: str, labs: None) -> None:
    with running(name) as lab:
        processes = [int(one) for one in Path(f"/proc/{lab.pid}/task/{lab.pid}/children").read_text().split()]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            done = called("labs", "--json", timeout_s=30)
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
        listed = json.loads(done.stdout)
        assert [one["hosts"] for one in listed if one["name"] == name] == [None]


@pytest.fixture
def ordinary() -> Iterator[OrdinaryUser]:
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        try:
            yield OrdinaryUser(Path(folder))
        except CannotSwitch as reason:
            pytest.skip(str(reason))


def test_root_at_the_address_of_an_ordinary_users_lab_is_sent_nothing(name: str, ordinary: OrdinaryUser) -> None:
    with listening("takes", f"twinnet/{NOBODY}/{name}", user=0) as stranger:
        done = ordinary.run(ordinary.twinnet("exec", name, "h1", "--", "id"))
        assert done.returncode == 1 and "user 0 listens at its address, and was sent nothing" in done.stderr
        listed = ordinary.run(ordinary.twinnet("labs", "--json"))
        assert json.loads(listed.stdout) == [] and f"a lab '{name}' of yours; ignored" in listed.stderr
        stranger.kill()
        told = stranger.stdout.read() if stranger.stdout else ""
        assert set(told.split("\n")) <= {"0 0", ""}


def test_an_ordinary_user_does_not_reach_roots_lab(name: str, ordinary: OrdinaryUser, labs: None) -> None:
    with running(name):
        done = ordinary.run(ordinary.twinnet("exec", name, "h1", "--", "id"))
        assert done.returncode == 1 and f"no lab '{name}' of this user is running" in done.stderr
        assert json.loads(ordinary.run(ordinary.twinnet("labs", "--json")).stdout) == []
