"""Open vSwitch as the switches of a lab: the userspace datapath everywhere, the kernel's where the kernel has it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import select
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
from open_vswitch_here import needs_kernel, needs_ovs
from ordinary_user import CannotSwitch, OrdinaryUser, an_ordinary_user
from twinnet import _core
from twinnet.errors import BadQueue, BadValue, LabError, NotAvailable
from twinnet.network.topology_file import parse_network

HERE = Path(__file__).parents[1] / "support"

needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed: apt install iperf3")
DATAPATHS = [
    pytest.param("netdev", marks=needs_ovs),
    pytest.param("system", marks=[needs_ovs, needs_kernel]),
]


def hosts_at(datapath: str, hosts: int = 2, rate: str | None = None, **switch: object) -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1", kind="ovs", datapath=datapath, **switch)  # pyright: ignore[reportArgumentType]
    for number in range(1, hosts + 1):
        net.link(net.host(f"h{number}"), s1, rate=rate, delay="5 ms")
    return net


@pytest.mark.parametrize("datapath", DATAPATHS)
def test_hosts_reach_each_other_through_it_with_the_delays_of_the_links(datapath: str) -> None:
    with hosts_at(datapath).emulate() as lab:
        said = lab["h1"].run("ping -c 3 -i 0.2 h2", check=True).stdout
        least_ms = float(re.findall(r"= ([0-9.]+)/", said)[0])
        # Two links of 5 ms, both ways.
        assert 20 <= least_ms < 40
        assert " 0% packet loss" in lab["h1"].run("ping -6 -c 2 -i 0.2 fd00::2").stdout
        assert any("NORMAL" in flow for flow in lab.switch("s1").dump_flows())


@needs_iperf3
@pytest.mark.parametrize("interface", ["tap", "veth"])
@pytest.mark.parametrize("datapath", DATAPATHS)
def test_tcp_passes_with_right_checksums_and_keeps_to_the_rate(datapath: str, interface: str) -> None:
    if interface == "tap" and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("TAPs are not permitted here")
    with hosts_at(datapath, rate="2 Mbit").emulate(interface=interface) as lab:
        server = lab["h2"].popen("iperf3 -s -1 --forceflush")
        assert server.stdout is not None
        while b"listening" not in server.stdout.readline():
            pass
        said = lab["h1"].run("iperf3 -c h2 -t 2 -f k", check=True).stdout
        server.wait("20 s")
        kbit_s = float(re.findall(r"([0-9.]+) Kbits/sec +receiver", said)[0])
        # By name it is IPv6, with 1428 of 1538 bytes of payload: 1.86 of 2 Mbit/s. A busy machine carries less.
        assert 300 < kbit_s < 1_900
        told = lab["h2"].run("grep ^Tcp: /proc/net/snmp").stdout.splitlines()
        assert dict(zip(told[0].split(), told[1].split(), strict=True))["InCsumErrors"] == "0"


@pytest.mark.parametrize("datapath", DATAPATHS)
def test_flows_are_added_shown_and_deleted_in_the_usual_syntax(datapath: str) -> None:
    start = ["priority=1,actions=flood", "table=1,priority=5,ip,nw_dst=10.0.0.9,actions=drop"]
    with hosts_at(datapath, fail_mode="secure", flows=start).emulate() as lab:
        s1 = lab.switch("s1")
        assert len(s1.dump_flows()) == 2
        assert " 0% packet loss" in lab["h1"].run("ping -4 -c 2 -i 0.2 h2").stdout
        s1.add_flow("priority=9,icmp,actions=drop")
        assert "100% packet loss" in lab["h1"].run("ping -4 -c 1 -W 1 h2").stdout
        assert s1.delete_flows("icmp") == 1
        assert " 0% packet loss" in lab["h1"].run("ping -4 -c 2 -i 0.2 h2").stdout
        with pytest.raises(LabError, match="flow 2") as refused:
            s1.add_flows(["priority=7,arp,actions=drop", "nonsense"])
        assert refused.value.name == "BadFlow"
        with tn.attach(lab.name) as elsewhere:
            assert len(elsewhere.switch("s1").dump_flows()) == 2
        assert lab.jobs() == [job for job in lab.jobs() if job["host"] == "h1"]


@pytest.mark.parametrize("datapath", DATAPATHS)
def test_a_link_that_goes_down_is_a_port_without_carrier(datapath: str) -> None:
    with hosts_at(datapath).emulate() as lab:
        s1 = lab.switch("s1").open_vswitch
        assert s1 is not None
        lab.link("h1", "s1").set(up=False)
        assert s1.vsctl("--timeout=10", "wait-until", "Interface", "s1-eth1", "link_state=down") == ""
        lab.link("h1", "s1").set(up=True)
        assert s1.vsctl("--timeout=10", "wait-until", "Interface", "s1-eth1", "link_state=up") == ""


@needs_ovs
@needs_os_ken
def test_a_controller_beside_the_lab_drives_it_and_tools_reach_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        port, tools = one.getsockname()[1], two.getsockname()[1]
    program = [sys.executable, str(HERE / "controllers" / "learning_13.py"), str(port)]
    net = hosts_at("netdev", fail_mode="secure", protocols=["OpenFlow13"], listen=f"ptcp:{tools}")
    net.controller(f"tcp:127.0.0.1:{port}", run=program)
    with net.emulate() as lab:
        lab.wait_for_controllers("30 s")
        (state,) = lab.switch("s1").controller_state
        assert (state["target"], state["version"], state["trouble"]) == (f"tcp:127.0.0.1:{port}", "1.3", None)
        assert " 0% packet loss" in lab["h1"].run("ping -4 -c 2 -i 0.2 h2").stdout
        command = ["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", f"tcp:127.0.0.1:{tools}"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        assert "dl_dst=00:00:00:00:00:02" in told


@needs_ovs
def test_strangers_without_number_fill_no_relay_and_keep_no_tool_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    with hosts_at("netdev", listen=f"ptcp:{port}").emulate(), contextlib.ExitStack() as kept:
        before = threading.active_count()
        for _ in range(150):
            kept.enter_context(socket.create_connection(("127.0.0.1", port)))
        command = ["ovs-ofctl", "show", f"tcp:127.0.0.1:{port}"]
        assert "s1-eth1" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        deadline_s = time.monotonic() + 30
        while threading.active_count() > before + 2 * 64:
            assert time.monotonic() < deadline_s, threading.active_count() - before
            time.sleep(0.05)


@needs_ovs
def test_a_controller_that_is_not_there_is_told_of() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    with hosts_at("netdev", controllers=[f"tcp:127.0.0.1:{port}"]).emulate() as lab:
        with pytest.raises(tn.errors.TimeLimit, match="no controller has joined s1"):
            lab.wait_for_controllers("1 s")
        (state,) = lab.switch("s1").controller_state
        assert state["version"] is None and "refused" in state["trouble"]


OWNER = """\
import os, sys
import twinnet as tn

net = tn.Network()
s1 = net.switch("s1", kind="ovs")
for number in (1, 2):
    net.link(net.host(f"h{number}"), s1)
with net.emulate() as lab:
    assert " 0% packet loss" in lab["h1"].run("ping -4 -c 2 -i 0.2 h2").stdout
    print(lab.pid, flush=True)
    sys.stdin.read()
"""


def processes_named(name: str, namespace: str) -> list[int]:
    """The processes called `name` in the user namespace `namespace`."""
    found: list[int] = []
    for one in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_it = one.name.isdecimal() and (one / "comm").read_text().strip() == name
            if is_it and str((one / "ns" / "user").readlink()) == namespace:
                found.append(int(one.name))
    return found


@needs_ovs
def test_killed_with_its_owner_it_leaves_nothing() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert owner.stdout is not None and owner.stdin is not None
    lab = int(owner.stdout.readline())
    namespace = str(Path(f"/proc/{lab}/ns/user").readlink())
    pidfds = [
        os.pidfd_open(pid) for name in ("ovs-vswitchd", "ovsdb-server") for pid in processes_named(name, namespace)
    ]
    assert len(pidfds) == 2
    before = sorted(Path("/run").iterdir())
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    for pidfd in pidfds:
        # A descriptor of a process can be read when the process has ended.
        assert select.select([pidfd], [], [], 20)[0]
        os.close(pidfd)
    assert processes_named("ovs-vswitchd", namespace) == []
    assert sorted(Path("/run").iterdir()) == before


@needs_ovs
def test_ten_labs_with_the_same_names_run_side_by_side() -> None:
    with contextlib.ExitStack() as stack:
        labs = [stack.enter_context(hosts_at("netdev").emulate()) for _ in range(10)]
        labs[3].switch("s1").add_flow("priority=9,icmp,actions=drop")
        for number, lab in enumerate(labs):
            said = lab["h1"].run("ping -4 -c 1 -W 1 h2").stdout
            assert ("100% packet loss" if number == 3 else " 0% packet loss") in said


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with an_ordinary_user() as found:
        yield found


@needs_ovs
def test_an_ordinary_user_has_it_too(user: OrdinaryUser) -> None:
    done = user.run(user.command(user.python, "-c", OWNER))
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr


@needs_ovs
def test_an_ordinary_user_has_it_where_taps_are_not_permitted(user: OrdinaryUser) -> None:
    try:
        command = user.without_tap(user.command(user.python, "-c", OWNER))
    except CannotSwitch as reason:
        pytest.skip(str(reason))
    done = user.run(command)
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr


@needs_ovs
@needs_kernel
def test_an_ordinary_user_has_the_kernel_s_datapath_too(user: OrdinaryUser) -> None:
    done = user.run(user.command(user.python, "-c", OWNER.replace('kind="ovs"', 'kind="ovs", datapath="system"')))
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stderr


@needs_ovs
@needs_kernel
@needs_iperf3
def test_queues_before_the_kernel_s_datapath_are_chosen_by_flows() -> None:
    net = tn.Network()
    s1 = net.switch("s1", kind="ovs", datapath="system")
    net.link(net.host("h1"), s1)
    slow = tn.qos.Htb("2 Mbit", {0: tn.qos.HtbQueue(max_rate="2 Mbit"), 1: tn.qos.HtbQueue(max_rate="400 kbit")})
    net.link(s1, net.host("h2"), rate="10 Mbit", queue_a=slow)
    with net.emulate() as lab:
        bridge = lab.switch("s1").open_vswitch
        assert bridge is not None and 'max-rate="400000"' in bridge.vsctl("list", "Queue")

        def kbit_s() -> float:
            server = lab["h2"].popen("iperf3 -s -1 --forceflush")
            assert server.stdout is not None
            while b"listening" not in server.stdout.readline():
                pass
            said = lab["h1"].run("iperf3 -4 -c h2 -t 4 -f k", check=True).stdout
            server.wait("20 s")
            return float(re.findall(r"([0-9.]+) Kbits/sec +receiver", said)[0])

        fast = kbit_s()
        lab.switch("s1").add_flow("priority=9,tcp,in_port=1,actions=set_queue:1,output:2")
        slow_kbit_s = kbit_s()
        assert 700 < fast < 2_100
        assert slow_kbit_s < 480
        lab.switch("s1").set_queue(2, tn.qos.Fifo(limit_frames=100))
        assert "qos                 : []" in bridge.vsctl("list", "Port", "s1-eth2")


def test_queues_with_classes_are_refused_where_queue_numbers_do_not_reach() -> None:
    net = tn.Network()
    netdev, system = net.switch("s1", kind="ovs"), net.switch("s2", kind="ovs", datapath="system")
    htb = tn.qos.Htb("8 Mbit", {0: tn.qos.HtbQueue(max_rate="8 Mbit")})
    with pytest.raises(BadQueue, match="without the queue numbers"):
        net.link(netdev, net.host("h1"), queue_a=htb)
    with pytest.raises(BadQueue, match=r"only queue with classes is tn\.qos\.Htb"):
        net.link(system, net.host("h2"), queue_a=tn.qos.Priority([tn.qos.Fifo(), tn.qos.Fifo()]))
    net.link(system, "h1", queue_a=htb)
    net.link(netdev, "h2", queue_a=tn.qos.Codel())


def test_what_contradicts_itself_is_refused() -> None:
    net = tn.Network()
    with pytest.raises(BadValue, match='kind="ovs" too'):
        net.switch("s1", datapath="netdev")
    with pytest.raises(BadValue, match="'system' and 'netdev'"):
        net.switch("s1", kind="ovs", datapath="dpdk")
    with pytest.raises(BadValue, match="'own' and 'ovs'"):
        net.switch("s1", kind="bmv2")
    with pytest.raises(BadValue, match="delay to its links"):
        net.switch("s1", kind="ovs", delay="1 ms")


@needs_ovs
def test_a_controller_that_it_cannot_reach_is_refused_before_anything_is_built() -> None:
    net = hosts_at("netdev")
    net.controller(tn.control.LearningSwitch)
    with pytest.raises(NotAvailable, match="in this process cannot drive s1"), net.emulate():
        pass
    net = hosts_at("netdev")
    net.controller("tcp:127.0.0.1:6653", delay="1 ms")
    with pytest.raises(NotAvailable, match="cannot be given a delay"), net.emulate():
        pass


def test_the_virtual_clock_refuses_it_by_name() -> None:
    net = tn.Network()
    net.switch("s1", kind="ovs")
    net.switch("s2")
    with pytest.raises(LabError, match=r"s1 would be it.*net\.emulate"), net.simulate():
        pass


def test_a_missing_open_vswitch_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    said = r"Open vSwitch is not installed.*apt install openvswitch-switch"
    with pytest.raises(NotAvailable, match=said), hosts_at("netdev").emulate():
        pass


def test_a_missing_kernel_datapath_is_told_with_the_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/sbin/{name}")
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    monkeypatch.setattr(_core, "kernel_has_open_vswitch", lambda: False)
    with pytest.raises(NotAvailable, match=r"which s1 would use.*modprobe openvswitch"), hosts_at("system").emulate():
        pass


def test_a_file_names_its_kind() -> None:
    net = parse_network("switches: {s1: {kind: ovs, datapath: system, flows: ['ct_state=+trk,actions=ct(commit)']}}")
    assert net.to_spec()["nodes"][0]["datapath"] == "system"
    with pytest.raises(tn.UsageError, match="flows"):
        parse_network("switches: {s1: {flows: ['ct_state=+trk,actions=ct(commit)']}}")
