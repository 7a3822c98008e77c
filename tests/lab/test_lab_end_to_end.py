"""Labs of real hosts: what is typed and called goes through the lab process, the fabric and the kernel."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet import programs
from twinnet.errors import LabError, TimeLimit
from twinnet.lab.lab import Lab

SOURCE = str(Path(tn.__file__).parent.parent)
TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "LC_ALL": "C"}

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One switch and four hosts at 100 Mbit/s."""
    with tn.templates.single(4, rate="100 Mbit", delay="100 us").emulate() as running:
        yield running


def twinnet(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TWINNET, *arguments], input=stdin, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False
    )


def test_hosts_reach_each_other_by_name_in_both_ip_versions(lab: Lab) -> None:
    assert lab["h1"].run("ping -4 -c 2 -i 0.2 h4", timeout="10 s", check=True).stdout.count("bytes from") == 2
    assert lab["h2"].run("ping -6 -c 1 h3", timeout="10 s", check=True).returncode == 0


def test_programs_give_their_output_status_and_signal(lab: Lab) -> None:
    done = lab["h1"].run("echo out; echo err >&2; exit 3", shell=True)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    assert lab["h1"].run("kill -9 $$", shell=True).shell_status == 137
    assert lab["h1"].run("cat", input="x" * 300_000).stdout == "x" * 300_000
    with pytest.raises(TimeLimit):
        lab["h1"].run("sleep 60", timeout="100 ms")
    with pytest.raises(LabError, match="no such program"):
        lab["h1"].run("no-such-program-here")


@pytest.mark.judged
def test_a_tcp_flow_fills_the_link_and_both_ends_agree() -> None:
    with tn.templates.single(4, rate="100 Mbit", delay="100 us").emulate() as lab:
        flow = lab.start(tn.apps.tcp_bulk("h1", "h4", duration="2 s", interval="500 ms"))
        assert lab.wait([flow], until=f"{lab.now() + 10:.3f} s")
        sender, receiver = flow.reports()
    received = receiver.flow(flow.flow or 0)
    assert received is not None
    # 1448 bytes of payload in each 1538 bytes on the wire are 94.1 Mbit/s. The start costs some round trips of 0.4 ms,
    # and losses in the queue are made good within 20 ms: 1 % of 2 s.
    assert 93e6 < received.throughput_bps < 94.2e6
    assert sender.flows[0].bytes == received.bytes


@pytest.mark.quiet
def test_udp_at_a_rate_that_fits_loses_nothing(lab: Lab) -> None:
    flow = lab.start(tn.apps.udp("h2", "h3", rate="10 Mbit", packets=500, payload="1000 B"))
    assert lab.wait([flow], until=f"{lab.now() + 10:.3f} s")
    deadline = time.monotonic() + 5
    while flow.report().packets != 500 and time.monotonic() < deadline:
        lab.run_until(f"{lab.now() + 0.02:.3f} s")
    report = flow.report()
    assert (report.role, report.packets, report.lost) == ("sink", 500, 0)


@pytest.mark.quiet
def test_links_change_while_they_run(lab: Lab) -> None:
    lab.link("h1", "s1").set(delay="20 ms")
    slow = lab.start(tn.apps.ping("h1", "h2", count=3, interval="50 ms"))
    lab.wait([slow])
    lab.link("h1", "s1").set(delay="100 us")
    fast = lab.start(tn.apps.ping("h1", "h2", count=3, interval="50 ms"))
    lab.wait([fast])
    slow_rtt, fast_rtt = slow.report().rtt, fast.report().rtt
    assert slow_rtt is not None
    assert fast_rtt is not None
    assert slow_rtt.min >= 40e9
    assert fast_rtt.min < 20e9


def test_a_link_that_is_down_carries_nothing(lab: Lab) -> None:
    lab.link("h3", "s1").set(up=False)
    try:
        lost = lab.start(tn.apps.ping("h3", "h1", count=1, timeout="200 ms"))
        lab.wait([lost])
        assert lost.report().rtt is None
    finally:
        lab.link("h3", "s1").set(up=True)


def test_flows_are_added_dumped_and_refused_by_token(lab: Lab) -> None:
    s1 = lab.switch("s1")
    s1.add_flows(["priority=10,ip,nw_dst=10.0.0.4,actions=output:4", "priority=0,actions=flood"])
    assert any("nw_dst=10.0.0.4" in line for line in s1.dump_flows())
    with pytest.raises(LabError, match="nw_dts"):
        s1.add_flow("ip,nw_dts=10.0.0.4,actions=output:4")
    assert s1.delete_flows() == 2
    assert lab["h1"].run("ping -c 1 -W 2 h2", timeout="10 s").returncode == 0


@pytest.mark.quiet
def test_the_lab_measures_itself(lab: Lab) -> None:
    before = lab.fidelity().handed_over
    flow = lab.start(tn.apps.udp("h2", "h3", packets_per_second=500, packets=250, payload="1000 B"))
    assert lab.wait([flow], until=f"{lab.now() + 10:.3f} s")
    record = lab.fidelity()
    # Each datagram arrives; hosts say little of their own accord.
    assert 250 <= record.handed_over - before < 700
    assert 0 < record.lateness_ns.p50 <= record.lateness_ns.p99 <= record.lateness_ns.max
    # More than one frame of these hundreds, late by more than the bound of validity, and the verdict says so.
    late = replace(record, lateness_ns=replace(record.lateness_ns, tail=20_000_000))
    assert late.verdict().state == "invalid"
    # Of fewer than a thousand frames it tells their number besides.
    said = r"late by more than (20 ms|1 ms, all but the latest by up to 20 ms) "
    assert any(re.search(said, reason) for reason in late.verdict().reasons)


@pytest.mark.quiet
def test_real_programs_report_in_the_same_columns(lab: Lab) -> None:
    wanted = [
        programs.iperf2("h1", "h4", duration="1 s", interval="500 ms"),
        programs.iperf3("h1", "h4", duration="1 s"),
        programs.wget("h2", "h4", size="1 MB"),
        programs.ping("h1", "h3", count=2, interval="200 ms"),
    ]
    present = [one for one in wanted if programs.installed(one.program)]
    assert present
    for transfer in present:
        report = programs.start(lab, transfer).wait("30 s")[-1]
        if transfer.program == "ping":
            assert (report.packets, report.lost) == (2, 0)
        else:
            assert report.bytes is not None
            assert report.bytes >= 1_000_000
            assert 5e6 < report.throughput_bps < 100e6


def test_another_terminal_finds_the_lab(lab: Lab) -> None:
    names = [one["name"] for one in json.loads(twinnet("labs", "--json").stdout)]
    assert lab.name in names
    with tn.attach(lab.name) as other:
        assert other["h2"].run("hostname").stdout == "h2\n"
    assert lab.running


def test_exec_has_the_programs_own_status_and_streams(lab: Lab) -> None:
    done = twinnet("exec", lab.name, "h1", "--", "sh", "-c", "cat; echo err >&2; exit 42", stdin="given")
    assert (done.returncode, done.stdout, done.stderr) == (42, "given", "err\n")
    assert twinnet("exec", lab.name, "h1", "--", "sh", "-c", "kill -TERM $$").returncode == 143
    assert twinnet("exec", lab.name, "h1", "--", "no-such-program-here").returncode == 127
    unknown = twinnet("exec", lab.name, "h9", "--", "true")
    assert unknown.returncode == 2
    assert "did you mean" in unknown.stderr


def test_exec_on_a_terminal_gives_the_program_a_terminal(lab: Lab) -> None:
    command = [*TWINNET, "exec", lab.name, "h1", "--", "sh", "-c", "tty; read line; echo got $line; exit 5"]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], command, ENVIRONMENT)
    output = b""
    typed = False
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and select.select([terminal], [], [], 20)[0]:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        output += piece
        if not typed and b"/dev/pts/" in output:
            os.write(terminal, b"hello\n")
            typed = True
        if not piece:
            break
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    assert b"got hello" in output
    assert os.waitstatus_to_exitcode(status) == 5


def test_flows_from_the_command_line(lab: Lab) -> None:
    assert twinnet("flows", lab.name, "s1", "add", "-", stdin="# two\npriority=7,actions=flood\n").returncode == 0
    assert "priority=7" in twinnet("flows", lab.name, "s1").stdout
    wrong = twinnet("flows", lab.name, "s1", "add", "priority=x,actions=flood")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1)
    assert json.loads(twinnet("flows", lab.name, "s1", "del", "--json").stdout) == {"deleted": 1}


def test_the_prompt_takes_a_script_and_leaves_nothing() -> None:
    script = "h1 echo from h1\npingall\niperf h1 h2 1s\nlink s1 h1 down\nh1 ping -c1 -W1 h2\nexit\nnever\n"
    done = twinnet("lab", "single:2", "--rate", "100 Mbit", "--name", f"script-{os.getpid()}", stdin=script)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "from h1"
    assert "*** Results: 0% dropped (2/2 received)" in lines
    assert any(line.startswith("*** h1 -> h2: ") and "sink" in line for line in lines)
    assert "1 packets transmitted, 0 received" in done.stdout
    assert "never" not in done.stdout + done.stderr
    assert f"script-{os.getpid()}" not in [info.name for info in tn.labs()]


def test_labs_of_the_same_network_run_side_by_side() -> None:
    nets = [tn.templates.single(2) for _ in range(3)]
    with nets[0].emulate() as a, nets[1].emulate() as b, nets[2].emulate() as c:
        for one in (a, b, c):
            assert one["h1"].run("ping -c 1 -W 2 h2", timeout="10 s").returncode == 0
        assert len({a.name, b.name, c.name}) == 3


def test_a_name_is_taken_once(lab: Lab) -> None:
    with pytest.raises(LabError, match="is running"):
        tn.templates.single(2).emulate(name=lab.name).open()


def test_a_router_forwards_between_its_networks() -> None:
    net = tn.Network()
    r1 = net.router("r1")
    net.link(net.host("h1", ip="10.1.0.2/24", gateway="10.1.0.1"), r1, address_b="10.1.0.1/24")
    net.link(net.host("h2", ip="10.2.0.2/24", gateway="10.2.0.1"), r1, address_b="10.2.0.1/24")
    with net.emulate() as lab:
        assert lab["h1"].run("ping -c 1 -W 2 10.2.0.2", timeout="10 s").returncode == 0


def test_starting_and_stopping_leaves_no_descriptor() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with tn.templates.single(2).emulate():
        pass
    before = descriptors()
    for _ in range(10):
        with tn.templates.single(2).emulate() as lab:
            lab["h1"].run("true")
    assert descriptors() == before
