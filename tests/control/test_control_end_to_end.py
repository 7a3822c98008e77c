"""Real controllers and tools against our switches, on the wall clock."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.control import ControllerProgram
from twinnet.errors import BadValue, NotAvailable, TimeLimit

HERE = Path(__file__).parents[1] / "support"
needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)
needs_ovs_ofctl = pytest.mark.skipif(
    shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed: apt install openvswitch-common"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def three_hosts(**switch: object) -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1", **switch)  # pyright: ignore[reportArgumentType]
    for number in range(1, 4):
        net.link(net.host(f"h{number}"), s1, rate="100 Mbit")
    return net


def wait_for_flows(lab: tn.Lab) -> None:
    """Wait until the controller has installed its first flow: frames before that are lost."""
    deadline_s = time.monotonic() + 20
    while not lab.switch("s1").dump_flows():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@needs_os_ken
@pytest.mark.parametrize(("program", "version"), [("learning_13.py", "1.3"), ("learning_10.py", "1.0")])
def test_an_os_ken_learning_switch_makes_hosts_reach_each_other(program: str, version: str) -> None:
    port = free_port()
    net = three_hosts(fail_mode="secure", protocols=["OpenFlow10" if version == "1.0" else "OpenFlow13"])
    net.controller(f"tcp:127.0.0.1:{port}", run=[sys.executable, str(HERE / "controllers" / program), str(port)])
    with net.emulate() as lab:
        lab.wait_for_controllers("30 s")
        if version == "1.3":
            wait_for_flows(lab)
        # Neighbours are found before: frames that wait for that would all come to the controller at once.
        assert " 0% packet loss" in lab["h1"].run("ping -c 1 h2").stdout
        assert " 0% packet loss" in lab["h1"].run("ping -c 3 -i 0.2 h2").stdout
        (state,) = lab.switch("s1").controller_state
        assert state["version"] == version
        assert state["packet_ins"] >= 2
        flows = [line for line in lab.switch("s1").dump_flows() if "dl_dst=00:00:00:00:00:02" in line]
        assert flows and any("n_packets=0" not in line for line in flows)


@needs_os_ken
def test_flows_outlive_their_controller_and_the_switch_joins_it_again() -> None:
    port = free_port()
    program = [sys.executable, str(HERE / "controllers" / "learning_13.py"), str(port)]
    net = three_hosts(fail_mode="secure", controllers=[f"tcp:127.0.0.1:{port}"])
    with net.emulate() as lab:
        with ControllerProgram(program):
            lab.wait_for_controllers("30 s")
            assert " 0% packet loss" in lab["h1"].run("ping -c 2 -i 0.2 10.0.0.2").stdout
        assert " 0% packet loss" in lab["h1"].run("ping -c 2 -i 0.2 10.0.0.2").stdout
        (state,) = lab.switch("s1").controller_state
        assert state["version"] is None and state["trouble"]
        with ControllerProgram(program):
            lab.wait_for_controllers("30 s")
            assert " 0% packet loss" in lab["h1"].run("ping -c 2 -i 0.2 10.0.0.3").stdout


def ofctl(port: int, *arguments: str, protocol: str = "OpenFlow13") -> str:
    command = ["ovs-ofctl", "-O", protocol, arguments[0], f"tcp:127.0.0.1:{port}", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_ovs_ofctl
def test_ovs_ofctl_adds_and_dumps_flows_in_both_versions() -> None:
    port = free_port()
    with three_hosts(fail_mode="secure", listen=f"ptcp:{port}").emulate() as lab:
        for protocol in ("OpenFlow13", "OpenFlow10"):
            ofctl(port, "add-flow", "priority=5,ip,nw_dst=10.0.0.2,actions=output:2", protocol=protocol)
            ofctl(port, "add-flow", "arp,actions=flood", protocol=protocol)
            ofctl(port, "add-flow", "priority=5,ip,nw_dst=10.0.0.1,actions=output:1", protocol=protocol)
            assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout
            dump = ofctl(port, "dump-flows", protocol=protocol)
            assert "nw_dst=10.0.0.2 actions=output:2" in dump.replace('"', "")
            assert "rx pkts=" in ofctl(port, "dump-ports", protocol=protocol)
            assert "s1-eth1" in ofctl(port, "show", protocol=protocol)
            ofctl(port, "del-flows", protocol=protocol)
            assert "nw_dst" not in ofctl(port, "dump-flows", protocol=protocol)


@needs_ovs_ofctl
def test_ovs_ofctl_makes_groups_and_meters() -> None:
    port = free_port()
    with three_hosts(fail_mode="secure", listen=f"ptcp:{port}").emulate() as lab:
        ofctl(port, "add-group", "group_id=1,type=all,bucket=output:1,bucket=output:2,bucket=output:3")
        ofctl(port, "add-meter", "meter=1,pktps,burst,band=type=drop,rate=1000,burst_size=1000")
        ofctl(port, "add-flow", "actions=meter:1,group:1")
        lab["h1"].run("ping -c 2 -i 0.2 10.0.0.2")
        assert "type=all" in ofctl(port, "dump-groups")
        assert "meter:1" in ofctl(port, "meter-stats")
        assert "group:1" in ofctl(port, "dump-flows")
        assert "table 0" in ofctl(port, "dump-table-features").replace("table 0:", "table 0")


def test_a_lab_without_its_controller_goes_on_by_its_fail_mode_and_says_so() -> None:
    port = free_port()
    with three_hosts(controllers=[f"tcp:127.0.0.1:{port}"]).emulate() as lab:
        assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout
        with pytest.raises(TimeLimit, match="s1"):
            lab.wait_for_controllers("100 ms")
        (state,) = lab.switch("s1").controller_state
        assert state["version"] is None


def test_a_stranger_that_talks_nonsense_is_let_go() -> None:
    port = free_port()
    with three_hosts(listen=f"ptcp:{port}").emulate() as lab:
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.settimeout(10)
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(30_000))
            heard = b""
            while part := stranger.recv(4096):
                heard += part
        assert heard[:2] == b"\x04\x00"
        assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout


HELLO, ECHO = bytes.fromhex("0400000800000001"), bytes.fromhex("0402000800000002")


def echoes(tool: socket.socket) -> bool:
    """Return whether the switch answers `tool`, which has said hello; false when it has ended the connection."""
    tool.settimeout(10)
    with tool.makefile("rb", buffering=0) as said, contextlib.suppress(ConnectionError):
        tool.sendall(ECHO)
        while header := said.read(8):
            said.read(int.from_bytes(header[2:4], "big") - 8)
            if header[1] == 3:
                return True
    return False


def greeted(port: int) -> socket.socket:
    tool = socket.create_connection(("127.0.0.1", port))
    tool.sendall(HELLO)
    assert echoes(tool)
    return tool


def test_strangers_without_number_fill_no_lab_and_drive_no_tool_out() -> None:
    port = free_port()
    with three_hosts(listen=f"ptcp:{port}").emulate() as lab, contextlib.ExitStack() as kept:
        files = Path(f"/proc/{lab.started['pid']}/fd")
        before = len(list(files.iterdir()))
        friend = kept.enter_context(greeted(port))
        for number in range(200):
            stranger = kept.enter_context(socket.create_connection(("127.0.0.1", port)))
            stranger.settimeout(10)
            assert stranger.recv(8)[:2] == b"\x04\x00"
            # Whoever says nothing for long is let go anyway.
            assert number % 20 or echoes(friend)
        assert len(list(files.iterdir())) <= before + 128
        assert echoes(friend)
        # Of those that have said hello the first has to go.
        others = [kept.enter_context(greeted(port)) for _ in range(128)]
        assert not echoes(friend) and echoes(others[-1])
        assert " 0% packet loss" in lab["h1"].run("ping -c 1 10.0.0.2").stdout


def test_a_path_to_listen_at_goes_with_its_owner_even_one_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "s1.mgmt"
    owner = f"""
import sys, time, twinnet as tn
net = tn.Network()
net.link(net.host("h1"), net.switch("s1", listen="punix:{path}"))
with net.emulate() as lab:
    print("ready", flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", owner], text=True, **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert path.is_socket()
        process.kill()
    deadline_s = time.monotonic() + 20
    while path.exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_path_that_nobody_listens_at_any_more_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s1.mgmt"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with three_hosts(listen=f"punix:{path}").emulate(), socket.socket(socket.AF_UNIX) as tool:
        tool.connect(str(path))
        assert tool.recv(8)[:2] == b"\x04\x00"
        with pytest.raises(NotAvailable, match="in use"):
            three_hosts(listen=f"punix:{path}").emulate().open()
    assert not path.exists()
    path.write_text("no socket")
    with pytest.raises(NotAvailable, match="cannot listen"):
        three_hosts(listen=f"punix:{path}").emulate().open()
    assert path.read_text() == "no socket"


def test_a_mistake_in_a_target_is_told_where_it_is_made() -> None:
    net = tn.Network()
    with pytest.raises(BadValue, match="names no controller"):
        net.switch("s1", controllers=["127.0.0.1:6653"])
    with pytest.raises(BadValue, match="OpenFlow10 and OpenFlow13"):
        net.switch("s1", protocols=["OpenFlow14"])
