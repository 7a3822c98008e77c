"""The lab process and the programs in its hosts, by the raw protocol."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_protocol import Client, RawLab, Refused, core, eventually, processes_in, star
from shared_processors import stretched_s

NOT_PERMITTED = {"NamespacesRefused", "ProcNotMounted"}


@pytest.fixture(scope="module", autouse=True)
def permitted() -> None:
    try:
        lab = RawLab()
    except core.CoreError as error:
        if error.args[0] in NOT_PERMITTED:
            pytest.skip(f"this machine permits no lab: {error.args[1]}")
        raise
    try:
        lab.start(star(1))
    except Refused as error:
        if error.name in NOT_PERMITTED:
            pytest.skip(f"this machine permits no lab: {error.message}")
        raise
    finally:
        lab.close()


@pytest.fixture
def lab() -> Iterator[RawLab]:
    lab = RawLab()
    lab.start(star(2))
    yield lab
    lab.close()


def test_a_host_sees_its_own_interfaces_and_names_of_all(lab: RawLab) -> None:
    assert lab.run("h1", "ls", "/sys/class/net")[1].split() == ["h1-eth0", "lo"]
    assert lab.run("h2", "hostname")[1] == "h2\n"
    names = Path("/etc/hosts").read_text()
    seen = lab.run("h1", "cat", "/etc/hosts")[1]
    assert "10.0.0.2 h2\n" in seen and "fd00::1 h1\n" in seen
    assert Path("/etc/hosts").read_text() == names


def test_a_program_has_its_output_status_environment_and_directory(lab: RawLab) -> None:
    outcome, output = lab.run("h1", "sh", "-c", 'echo "$COLOUR"; pwd; exit 7', env={"COLOUR": "red"}, cwd="/usr")
    assert (outcome["status"], outcome["signal"], outcome["limit"]) == (7, None, False)
    assert output == "red\n/usr\n"
    outcome, _ = lab.run("h1", "sh", "-c", "kill -9 $$")
    assert (outcome["status"], outcome["signal"]) == (None, signal.SIGKILL)


def test_a_program_that_cannot_be_run_is_refused_by_kind(lab: RawLab, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    for argv, name in [
        (["no-such-program"], "ProgramNotFound"),
        ([str(plain)], "ProgramNotExecutable"),
        ([str(script)], "ProgramNotExecutable"),
        ([], "ProgramNotFound"),
    ]:
        with pytest.raises(Refused) as refusal:
            lab.spawn("h1", *argv)
        assert refusal.value.name == name
    with pytest.raises(Refused, match="NoSuchDirectory"):
        lab.spawn("h1", "true", cwd="/no/such/directory")
    with pytest.raises(Refused, match='there is no host "h9"; the hosts are h1, h2'):
        lab.spawn("h9", "true")
    with pytest.raises(Refused, match="2 descriptors came with the program; 3 are needed"):
        lab.ask("spawn", [0, 1], host="h1", argv=["true"])


def test_a_time_limit_ends_the_whole_group(lab: RawLab) -> None:
    outcome, _ = lab.run("h1", "sh", "-c", "sleep 100 & sleep 100", limit_ps=10**11)
    assert (outcome["signal"], outcome["limit"]) == (signal.SIGTERM, True)
    assert 0.1 <= outcome["elapsed_ps"] / 1e12 < stretched_s(1.0)
    outcome, _ = lab.run("h1", "sh", "-c", "trap '' TERM; while :; do sleep 100; done", limit_ps=10**11)
    assert (outcome["signal"], outcome["limit"]) == (signal.SIGKILL, True)
    assert 1.1 <= outcome["elapsed_ps"] / 1e12 < stretched_s(3.0)
    left = lab.run("h1", "ps", "-e", "-o", "comm=")[1]
    assert "sleep" not in left


def test_a_job_runs_in_the_background_until_it_is_signalled(lab: RawLab) -> None:
    job = lab.spawn("h1", "sleep", "100")
    waiting = lab.send("wait", job=job)
    assert [(entry["argv"], entry["state"]) for entry in lab.ask("jobs")] == [(["sleep", "100"], "running")]
    lab.ask("signal", job=job, signal=signal.SIGINT)
    assert lab.answer(waiting)["signal"] == signal.SIGINT
    assert lab.ask("jobs")[0]["state"] == "ended"
    assert lab.ask("wait", job=job)["signal"] == signal.SIGINT
    assert lab.ask("signal", job=job, signal=signal.SIGINT) == {}
    with pytest.raises(Refused, match="UnknownJob"):
        lab.ask("wait", job=99)


def test_a_terminal_program_is_interrupted_from_its_terminal(lab: RawLab) -> None:
    master, slave = pty.openpty()
    script = "test -t 0 && test -t 2 && echo at $(ps -o tty= -p $$); exec sleep 100"
    job = lab.ask("spawn", [slave], host="h1", argv=["sh", "-c", script], terminal=True)["job"]
    os.close(slave)
    shown = b""
    while b"\n" not in shown:
        shown += os.read(master, 1000)
    assert shown.startswith(b"at pts/")
    os.write(master, b"\x03")
    assert lab.ask("wait", job=job)["signal"] == signal.SIGINT
    os.close(master)


def test_orphans_of_programs_are_reaped(lab: RawLab) -> None:
    lab.run("h1", "sh", "-c", "(sleep 0.05 &) ; exit 0")

    def no_zombie() -> bool:
        return "Z" not in lab.run("h1", "ps", "-e", "-o", "stat=")[1]

    assert eventually(no_zombie)


def test_routes_parameters_and_forwarding_are_set() -> None:
    lab = RawLab()
    network = star(1, forwarding=True, sysctls={"net.ipv4.ip_default_ttl": 17})
    network["nodes"][0]["routes"] = [{"to": "0.0.0.0/0", "via": "10.0.0.2"}, {"to": "::/0", "via": "fd00::2"}]
    network["links"][0] |= {"mtu": 9000, "ab": {"rate_bps": 10_000_000}}
    lab.start(network)
    script = (
        "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv4/ip_default_ttl"
    )
    assert lab.run("h1", "sh", "-c", script)[1].split() == ["1", "1", "17"]
    seen = lab.run("h1", "sh", "-c", "cat /sys/class/net/h1-eth0/mtu /sys/class/net/h1-eth0/tx_queue_len")[1]
    assert seen.split() == ["9000", "5"]
    assert "00000000\t0200000A" in lab.run("h1", "cat", "/proc/net/route")[1]
    lab.close()


def test_a_network_that_cannot_be_built_is_refused_with_the_reason() -> None:
    lab = RawLab()
    network = star(1, sysctls={"net.ipv4.no_such_parameter": 1})
    with pytest.raises(Refused, match=r"h1.*no_such_parameter"):
        lab.start(network)
    lab.close()
    lab = RawLab()
    network = star(2)
    network["links"][1]["a"]["node"] = "h1"
    with pytest.raises(Refused, match=r"links\[1\] \(h1 to s1\): port 0 of \"h1\" is in use by links\[0\]"):
        lab.start(network)
    lab.close()
    lab = RawLab()
    with pytest.raises(Refused, match="InvalidOption"):
        lab.start(star(1), interface="token-ring")
    lab.close()


@pytest.mark.parametrize("interface", ["tap", "veth"])
def test_interfaces_of_both_kinds_look_alike_to_a_host(interface: str) -> None:
    lab = RawLab()
    try:
        assert lab.start(star(2), interface=interface)["interface"] == interface
    except Refused as error:
        lab.close()
        pytest.skip(f"no {interface} here: {error.message}")
    seen = lab.run("h2", "sh", "-c", "ls /sys/class/net; cat /sys/class/net/h2-eth0/address /proc/net/if_inet6")[1]
    assert seen.split()[:3] == ["h2-eth0", "lo", "00:00:00:00:00:02"]
    assert "fe8000000000000002000" in seen
    lab.close()


def test_another_client_of_the_same_user_reaches_the_lab(lab: RawLab) -> None:
    assert lab.name in core.list_labs()
    other = connect(lab)
    assert other.run("h1", "echo", "hello")[1] == "hello\n"
    assert other.ask("describe")["nodes"][0]["name"] == "h1"
    other.connection.close()
    assert lab.ask("now")["now_ps"] > 0


def test_garbage_and_a_client_that_never_reads_disturb_nobody(lab: RawLab) -> None:
    other = connect(lab)
    for text in [
        b"\xff\xfe",
        b"[]",
        b"{",
        b'{"memfd": true}',
        b'{"id": 1}',
        b'{"id": 2, "do": 3}',
        b'{"id": 3, "do": "spawn"}',
    ]:
        other.connection.send(text)
        assert "error" in other.receive()
    silent = connect(lab)
    silent.connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            silent.connection.send(b'{"id": 1, "do": "describe"}')
    assert lab.ask("now")["now_ps"] > 0
    assert other.ask("now")["now_ps"] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_turned_away(lab: RawLab) -> None:
    script = (
        "import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        f"s.settimeout(5); s.connect('\\0twinnet/{os.geteuid()}/{lab.name}'); print(s.recv(100))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20)
    assert result.stdout == "b''\n" or "ConnectionResetError" in result.stderr


def test_a_name_that_is_taken_is_refused(lab: RawLab) -> None:
    with pytest.raises(core.CoreError) as refusal:
        core.spawn_lab(lab.name, sys.executable, "unused")
    assert refusal.value.args[0] == "LabNameTaken"
    with pytest.raises(core.CoreError) as refusal:
        core.spawn_lab(None, "/no/such/python", "unused")
    assert refusal.value.args[0] == "LabNotStarted"


def test_requests_and_answers_larger_than_a_packet_travel_as_memfds() -> None:
    lab = RawLab()
    network = star(2)
    flows = [f"priority={number},ip,nw_dst=10.0.0.1,actions=drop" for number in range(1, 5000)]
    network["nodes"][2]["flows"] = flows
    lab.start(network)
    assert lab.ask("describe")["nodes"][2]["flows"] == flows
    assert lab.run("h1", "sh", "-c", "echo ${#BIG}", env={"BIG": "y" * 100_000})[1] == "100000\n"
    lab.close()


def test_interrupting_the_terminals_group_leaves_the_lab_alone(lab: RawLab) -> None:
    assert os.getsid(lab.pid) == lab.pid
    os.kill(lab.pid, signal.SIGINT)
    assert lab.ask("now")["now_ps"] > 0


def test_a_stopped_lab_answers_and_is_gone() -> None:
    lab = RawLab()
    lab.start(star(2))
    lab.spawn("h1", "sleep", "100")
    assert lab.ask("stop") == {}
    lab.close()
    assert lab.processes() == []
    assert lab.name not in core.list_labs()


def test_a_lab_that_is_asked_to_terminate_ends_with_all_it_started() -> None:
    lab = RawLab()
    lab.start(star(2))
    lab.spawn("h1", "sleep", "100")
    os.kill(lab.pid, signal.SIGTERM)
    lab.close()
    assert lab.processes() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can limit namespaces of a lab from outside")
def test_a_host_whose_first_process_cannot_be_made_says_why(lab: RawLab) -> None:
    limit = (
        f"nsenter --user --preserve-credentials --target {lab.pid} sh -c 'echo 1 > /proc/sys/user/max_pid_namespaces'"
    )
    done = subprocess.run(limit, shell=True, capture_output=True, timeout=20)
    if done.returncode != 0:
        pytest.skip(f"the limit cannot be set: {done.stderr!r}")
    with pytest.raises(Refused, match=r"HostNotReady.*first process.*max_pid_namespaces"):
        lab.spawn("h1", "true")
    assert lab.ask("now")["now_ps"] > 0


def test_nothing_is_left_when_the_lab_is_killed() -> None:
    interfaces = names_in("/sys/class/net")
    lab = RawLab()
    lab.start(star(2))
    lab.spawn("h1", "sleep", "100")
    lab.spawn("h2", "sh", "-c", "setsid sleep 100 & sleep 100")
    assert eventually(lambda: len(lab.processes()) >= 7)
    os.kill(lab.pid, signal.SIGKILL)
    lab.close()
    assert eventually(lambda: lab.processes() == [])
    assert names_in("/sys/class/net") == interfaces
    assert lab.name not in core.list_labs()


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    script = (
        "import signal; from lab_protocol import *; lab = RawLab(); lab.start(star(2));"
        "lab.spawn('h1', 'sleep', '100'); print(lab.user_namespace, flush=True); signal.pause()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1] / "support"
    ) as owner:
        assert owner.stdout is not None
        namespace = owner.stdout.readline().strip()
        assert len(processes_in(namespace)) >= 4
        owner.kill()
    assert eventually(lambda: processes_in(namespace) == [])


def test_nothing_is_left_when_the_zygote_is_killed() -> None:
    lab = RawLab()
    lab.start(star(2))
    job = lab.spawn("h1", "sleep", "100")
    waiting = lab.send("wait", job=job)
    zygote = next(pid for pid in lab.processes() if command_line(pid) == "twinnet: programs")
    os.kill(zygote, signal.SIGKILL)
    with pytest.raises(Refused, match="ProgramsEnded"):
        lab.answer(waiting)
    lab.close()
    assert eventually(lambda: lab.processes() == [])


def test_a_host_whose_first_process_is_killed_starts_anew(lab: RawLab) -> None:
    job = lab.spawn("h1", "sleep", "100")
    waiting = lab.send("wait", job=job)
    first = next(pid for pid in lab.processes() if command_line(pid) == "twinnet: h1")
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Refused, match="HostEnded"):
        lab.answer(waiting)
    assert lab.ask("jobs")[0]["state"] == "lost"
    assert lab.run("h1", "ls", "/sys/class/net")[1].split() == ["h1-eth0", "lo"]


def test_ten_labs_with_the_same_names_run_at_once() -> None:
    labs = [RawLab() for _ in range(10)]
    starts = [lab.send("start", network=star(3), options={}) for lab in labs]
    assert all(lab.answer(start)["hosts"] == 3 for lab, start in zip(labs, starts, strict=True))
    assert len({lab.name for lab in labs}) == 10
    assert all(lab.run("h2", "hostname")[1] == "h2\n" for lab in labs)
    for lab in labs:
        lab.close()
    assert all(lab.processes() == [] for lab in labs)


@pytest.mark.long
def test_fifty_labs_in_a_row_leave_no_descriptor_with_the_owner() -> None:
    def one_lab() -> None:
        lab = RawLab()
        lab.start(star(2))
        lab.run("h1", "true")
        lab.close()

    one_lab()
    before = names_in("/proc/self/fd")
    for _ in range(50):
        one_lab()
    assert len(names_in("/proc/self/fd")) == len(before)


def connect(lab: RawLab) -> Client:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0twinnet/{os.geteuid()}/{lab.name}")
    return Client(connection)


def names_in(folder: str) -> list[str]:
    return sorted(entry.name for entry in Path(folder).iterdir())


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()


def test_programs_begin_with_no_signal_blocked_and_the_lab_with_its_own_two(lab: RawLab) -> None:
    blocked = lab.run("h1", "grep", "SigBlk", "/proc/self/status")[1].split()[1]
    assert int(blocked, 16) == 0
    own = Path(f"/proc/{lab.pid}/status").read_text().split("SigBlk:")[1].split()[0]
    assert int(own, 16) == 1 << signal.SIGCHLD - 1 | 1 << signal.SIGTERM - 1


def test_what_is_no_fresh_lab_process_becomes_no_lab() -> None:
    ours, other = socket.socketpair()
    with ours, other:
        with pytest.raises(core.CoreError, match="first of its PID namespace"):
            core.lab_main(ours.fileno(), other.fileno(), "x")
        # Both are still the caller's.
        ours.send(b"here")
        assert other.recv(4) == b"here"
