"""Real programs on the virtual clock: exact times, one trace for equal runs, and what cannot be is told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import twinnet as tn
from child_processes import children
from kernels_here import a_kernel_is_here
from shared_processors import stretched_s
from twinnet.errors import BadValue, KernelUnusable, LabClosed, LabError, NotAvailable, TimeLimit

if not a_kernel_is_here():
    pytest.skip("there is no kernel for programs on the virtual clock", allow_module_level=True)


def two_hosts(rate: str = "10 Mbit", delay: str = "10 ms") -> tn.Network:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate=rate, delay=delay)
    return net


@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_each_ping_takes_what_arithmetic_says_and_two_runs_are_one() -> None:
    def run() -> tuple[str, str]:
        with two_hosts().simulate(hosts="programs", seed=7) as lab:
            said = lab["h1"].run("ping -4 -c 5 h2", check=True).stdout
            return re.findall(r"rtt min/avg/max/mdev = ([0-9.]+)/", said)[0], lab.trace_hash

    least, trace = run()
    # 98 bytes, preamble and check sequence at 10 Mbit/s are 88 us, and the delay is 10 ms; both ways 20.176 ms.
    assert 20.176 <= float(least) <= 20.177
    assert run() == (least, trace)


def test_a_thread_that_lets_time_pass_may_run_afterwards_where_it_might_before() -> None:
    before = os.sched_getaffinity(0)
    with two_hosts().simulate(hosts="programs") as lab:
        assert os.sched_getaffinity(0) == before
        lab["h1"].run("true", check=True)
        assert os.sched_getaffinity(0) == before
        kernels = [child for child in children(os.getpid()) if Path(f"/proc/{child}/comm").read_text() == "linux\n"]
        assert [len(os.sched_getaffinity(kernel)) for kernel in kernels] == [1]


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_iperf3_fills_a_line_and_leaves_the_same_trace_twice() -> None:
    def run() -> tuple[float, str]:
        with two_hosts().simulate(hosts="programs", seed=7) as lab:
            server = lab["h2"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
            lab.run_until("1 s")
            said = lab["h1"].run("iperf3 -c h2 -t 10 -f k", check=True).stdout
            assert server.wait("10 s").returncode == 0
            rates = re.findall(r"([0-9.]+) Kbits/sec .*receiver", said)
            return float(rates[0]) / 1e3, lab.trace_hash

    rate, trace = run()
    # By name it is IPv6, with 1428 of 1538 bytes of payload: 9.285 Mbit/s at most.
    assert 9.2 <= rate <= 9.29
    assert run() == (rate, trace)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_lines_of_flows_side_by_side_are_never_idle_and_carry_what_headers_leave() -> None:
    net = tn.Network()
    families = {"-4": 1448, "-6": 1428, "": 1428}
    for n in range(len(families)):
        net.link(net.host(f"a{n}"), net.host(f"b{n}"), rate="100 Mbit", delay="1 ms")
    with net.simulate(hosts="programs", seed=7) as lab:
        servers = [lab[f"b{n}"].popen("iperf3 -s -1 -J") for n in range(len(families))]
        lab.run_until("1 s")
        for n, family in enumerate(families):
            lab[f"a{n}"].popen(f"iperf3 {family} -c b{n} -t 2", stdout=tn.lab.DEVNULL)
        sent_bytes: list[list[int]] = []
        for moment in ("1.5 s", "2.5 s"):
            lab.run_until(moment)
            told = {row["port"]: row["counters"]["wire_bytes"] for row in lab.ports()}
            sent_bytes.append([told[f"a{n}-eth0"] for n in range(len(families))])
        said = [json.loads(server.communicate()[0]) for server in servers]
    # 12.5 MB are a second of the line, less or more by the frame that is on it.
    for before, after in zip(*sent_bytes, strict=True):
        assert after - before == pytest.approx(12.5e6, abs=1538)
    # The first second has the slow start. The receiver's second ends with a read, of at most ten frames here.
    seconds = [report["intervals"][1]["sum"]["bits_per_second"] for report in said]
    assert seconds == [pytest.approx(100e6 * payload / 1538, rel=0.001) for payload in families.values()]


@pytest.mark.skipif(not (shutil.which("iperf3") and shutil.which("ping")), reason="iperf3 or ping is not installed")
def test_a_link_that_is_cut_under_load_carries_both_ways_afterwards() -> None:
    with two_hosts().simulate(hosts="programs", seed=7) as lab:
        lab["h2"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
        lab.run_until("1 s")
        flow = lab["h1"].popen("iperf3 -c h2 -t 4", stdout=tn.lab.DEVNULL)
        lab.run_until("2 s")
        lab.link("h1", "h2").set(up=False)
        lab.run_until("2.9 s")
        assert "NO-CARRIER" in lab["h1"].run("ip link show dev h1-eth0", check=True).stdout
        lab.run_until("3 s")
        lab.link("h1", "h2").set(up=True)
        lab.run_until("3.1 s")
        for host, other in (("h1", "h2"), ("h2", "h1")):
            assert "LOWER_UP" in lab[host].run(f"ip link show dev {host}-eth0", check=True).stdout
            lab[host].run(f"ping -c 1 -W 2 {other}", check=True)
        assert flow.wait("10 s").returncode == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_web_servers_and_clients_work_as_they_are_over_both_families() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        lab["h2"].run("mkdir -p /srv/twinnet-test")
        lab["h2"].run("dd if=/dev/zero of=/srv/twinnet-test/big bs=1000 count=500", check=True)
        server = lab["h2"].popen(
            "python3 -m http.server 8000 --bind :: --directory /srv/twinnet-test", stdout=tn.lab.DEVNULL
        )
        lab.run_until("5 s")
        for address in (lab["h2"].ip, f"[{lab['h2'].ip6}]"):
            written = "%{http_code} %{size_download}"
            got = lab["h1"].run(["curl", "-s", "-g", "-o", "/dev/null", "-w", written, f"http://{address}:8000/big"])
            assert got.stdout == "200 500000", got
            assert 0.4 < got.elapsed_s < 0.7
        server.terminate()
        assert server.wait("5 s").returncode == -signal.SIGTERM
    assert not Path("/srv/twinnet-test").exists(), "a guest has written to the machine"


@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_frames_pass_the_flows_of_a_switch() -> None:
    net = tn.Network()
    s1 = net.switch("s1")
    for name in ("h1", "h2", "h3"):
        net.link(net.host(name), s1, rate="100 Mbit", delay="1 ms")
    with net.simulate(hosts="programs") as lab:
        assert lab["h1"].run("ping -c 1 h2").returncode == 0
        lab.switch("s1").add_flow("priority=1000,icmp,in_port=1,actions=drop")
        assert lab["h1"].run("ping -4 -c 1 -W 1 h3").returncode == 1
        assert lab["h2"].run("ping -c 1 h3").returncode == 0


def test_programs_are_fed_and_read_while_time_passes() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        assert lab["h1"].run("cat", input="one\ntwo\n").stdout == "one\ntwo\n"
        job = lab["h1"].popen(["sh", "-c", "echo first; sleep 2; echo second; echo third >&2; exit 3"])
        assert job.stdout is not None and job.stderr is not None
        before = lab.now()
        assert job.stdout.read(6) == b"first\n"
        assert lab.now() - before < 0.5
        assert job.poll() is None
        assert job.stdout.read(7) == b"second\n"
        assert 2.0 <= lab.now() - before < 2.1
        assert job.wait().returncode == 3
        assert job.stderr.read() == b"third\n"
        assert [row["state"] for row in lab.jobs()] == ["ended", "ended"]
        assert lab["h2"].run("hostname").stdout == "h2\n"
        assert lab["h1"].run("date -u +%F").stdout == "2026-01-01\n"
        with pytest.raises(TimeLimit, match="did not end within 3 s"):
            lab["h1"].run("sleep 60", timeout="3 s")


def test_tcp_has_the_room_of_a_machine_and_not_of_the_guests_little_memory() -> None:
    names = ("tcp_rmem", "tcp_wmem", "tcp_max_syn_backlog", "tcp_max_tw_buckets")
    with two_hosts().simulate(hosts="programs") as lab:
        told = lab["h1"].run(["cat", *(f"/proc/sys/net/ipv4/{name}" for name in names)], check=True).stdout
        assert [line.split()[-1] for line in told.splitlines()] == ["33554432", "4194304", "2048", "131072"]
        assert re.match(r"\d+\.\d+", lab.started["kernel"])


def test_what_a_program_does_wrong_is_told() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        with pytest.raises(LabError, match="no such program") as missing:
            lab["h1"].run("no-such-program-anywhere")
        assert missing.value.name == "ProgramNotFound"
        with pytest.raises(LabError, match="is not a directory"):
            lab["h1"].run("true", cwd="/no/such/folder")
        assert lab["h1"].run(["sh", "-c", "kill -9 $$"]).returncode == -9


@pytest.mark.quiet
def test_a_program_that_computes_without_end_is_named_alone_within_five_seconds() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        lab["h2"].popen("sleep 1000", stdout=tn.lab.DEVNULL)
        begin = time.monotonic()
        with pytest.raises(LabError, match=r"^h1: sh -c while :; do :; done computes without end") as found:
            lab["h1"].run(["sh", "-c", "while :; do :; done"])
        # The 4.5 s are of a processor, which the guest shares with whatever else runs.
        assert time.monotonic() - begin < stretched_s(7)
        assert found.value.name == "ProgramSpins" and "sleep" not in found.value.message
        with pytest.raises(LabError, match="computes without end"):
            lab.run_until("100 s")


def test_a_program_that_asks_again_and_again_gets_what_it_waits_for() -> None:
    asks = (
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('', 5000))\n"
        "s.setblocking(False)\nasked = 0\nprint(flush=True)\n"
        "while True:\n  try:\n    print(s.recv(9).decode(), asked)\n    break\n"
        "  except BlockingIOError:\n    asked += 1\n"
    )

    def run() -> tuple[list[str], str]:
        with two_hosts().simulate(hosts="programs", seed=7) as lab:
            asking = lab["h1"].popen(["python3", "-c", asks])
            assert asking.stdout is not None and asking.stdout.read(1) == b"\n"
            lab["h2"].run(
                [
                    "python3",
                    "-c",
                    "import socket\n"
                    f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'news', ('{lab['h1'].ip}', 5000))",
                ]
            )
            return asking.communicate()[0].decode().split(), lab.trace_hash

    (said, asked), trace = run()
    # The datagram takes 10 ms, and each question 0.2 us.
    assert said == "news" and 15_000 < int(asked) < 100_000
    assert run() == ([said, asked], trace)


def test_idle_hosts_cost_no_real_time() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        begin = time.monotonic()
        lab.run_until("1000 s")
        assert lab.now() == 1000
        assert time.monotonic() - begin < stretched_s(5)


def test_an_idle_host_is_silent_because_nobody_advertises_routes() -> None:
    with two_hosts().simulate(hosts="programs") as lab:
        lab.run_until("60 s")
        # Reports of IPv6's groups while the interfaces come up, and no router is asked for.
        assert sum(port["counters"]["received_frames"] for port in lab.ports()) <= 6
        assert lab["h1"].run("cat /proc/sys/net/ipv6/conf/h1-eth0/accept_ra").stdout == "0\n"


def test_models_stand_beside_programs_and_run_none() -> None:
    net = two_hosts()
    net.link(net.host("m1", model=True), net.host("h3"), rate="10 Mbit")
    with net.simulate(hosts="programs") as lab:
        with pytest.raises(NotAvailable, match="m1 is a model"):
            lab["m1"].run("true")
        with pytest.raises(LabError, match=r"h1.*is a real host"):
            lab.start(tn.apps.ping("h1", "h2", count=1))


def test_links_that_have_no_rate_and_words_that_mean_nothing_are_refused() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), delay="1 ms")
    with pytest.raises(LabError, match="has no rate"), net.simulate(hosts="programs"):
        pass
    with pytest.raises(BadValue, match="allowed are 'models' and 'programs'"):
        net.simulate(hosts="real")  # type: ignore[arg-type]


def test_without_a_kernel_it_is_said_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINNET_KERNEL", "/no/such/kernel")
    with pytest.raises(KernelUnusable, match="/no/such/kernel"), two_hosts().simulate(hosts="programs"):
        pass


OWNER = """
import sys, time
import twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
with net.simulate(hosts="programs") as lab:
    print(lab["h1"].run("hostname").stdout, flush=True)
    lab["h1"].run("sh -c 'while :; do :; done'")
"""


def test_an_interrupt_ends_the_lab_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None and owner.stderr is not None
        assert owner.stdout.readline() == b"h1\n"
        kernels = children(owner.pid)
        # The program that spins has the turn now, and will not give it back.
        time.sleep(0.5)
        owner.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in owner.stderr.read()
    assert not any(Path(f"/proc/{pid}").exists() for pid in kernels)
    assert list(tmp_path.iterdir()) == []


def test_a_lab_that_has_ended_has_no_kernel_left() -> None:
    before = set(children(os.getpid()))
    with two_hosts().simulate(hosts="programs") as lab:
        server = lab["h1"].popen("sleep 1000", stdout=tn.lab.DEVNULL)
        assert set(children(os.getpid())) - before
    assert not set(children(os.getpid())) - before
    with pytest.raises(LabClosed):
        server.wait()


@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_the_prompt_lets_time_pass_while_a_program_runs() -> None:
    lines = ["h1 ping -4 -c 3 h2", "sleep 7 s", "py f'{lab.now():.1f}'", "h2 hostname &", "jobs"]
    command = [
        str(Path(sys.executable).with_name("twinnet")),
        "lab",
        "single:2",
        "--rate",
        "10 Mbit",
        "--clock",
        "virtual",
    ]
    done = subprocess.run(
        [*command, "--programs", *(word for line in lines for word in ("-c", line))],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 packets transmitted, 3 received" in done.stdout
    assert "\n9.0\n" in done.stdout
    refused = subprocess.run([*command, "--interface", "tap"], capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0 and "no --interface" in refused.stderr
    wall = [*command[:-1], "wall", "--programs"]
    assert "for --clock virtual" in subprocess.run(wall, capture_output=True, text=True, check=False).stderr


def test_a_lab_whose_owner_is_killed_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"h1\n"
        kernels = children(owner.pid)
        assert kernels
        owner.kill()
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in kernels):
        assert time.monotonic() < end, "the guest's kernel lives on"
        time.sleep(0.02)
    assert list(tmp_path.iterdir()) == []
