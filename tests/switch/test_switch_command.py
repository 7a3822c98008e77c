"""``twinnet switch``: one switch alone, on interfaces in a namespace of our own."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from private_network import PrivateNetwork, needs_private_network

HERE = Path(__file__).parents[1] / "support"
TWINNET = (sys.executable, "-c", "from twinnet.cli import main; main()")
needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)
needs_ovs_ofctl = pytest.mark.skipif(
    shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed: apt install openvswitch-common"
)
needs_ovs_vsctl = pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="ovs-vsctl is not installed")
pytestmark = needs_private_network


@pytest.fixture(scope="module")
def network() -> Iterator[PrivateNetwork]:
    with PrivateNetwork(2) as made:
        yield made


class Alone:
    """A switch that runs in the foreground; `line` is what it says when it is ready."""

    def __init__(self, network: PrivateNetwork, *options: str) -> None:
        command = (*TWINNET, "switch", *options)
        self.process = network.here.popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()
        assert self.line, self.process.communicate()[1]

    def end(self, number: int, may_have_said: str = "") -> None:
        self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=20)
        assert (self.process.returncode, out) == (0, "")
        assert errors in ("", may_have_said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_when_it_is_ready_forwards_and_ends_cleanly(network: PrivateNetwork, number: int) -> None:
    alone = Alone(network, "--dpid", "0xab", "--port", "e1", "--port", "e2")
    assert alone.line == "switch 00000000000000ab is ready on e1, e2"
    assert " 0% packet loss" in network.far[0].run("ping", "-c", "2", "-i", "0.2", "10.9.0.2")
    alone.end(number)
    assert network.far[0].run("ping", "-c", "1", "-W", "1", "10.9.0.2", check=False).count("100% packet loss") == 1
    assert "promiscuity 0" in network.here.run("ip", "-d", "link", "show", "e1")


@needs_ovs_ofctl
def test_tools_reach_it_and_port_one_is_the_first_that_was_named(network: PrivateNetwork) -> None:
    listen = ["--listen", "ptcp:6655", "--fail-mode", "secure", "--protocol", "OpenFlow13"]
    alone = Alone(network, "--port", "e2", "--port", "e1", *listen)
    ofctl = ["ovs-ofctl", "-O", "OpenFlow13"]
    switch = "tcp:127.0.0.1:6655"
    assert network.here.run(*ofctl, "dump-ports", switch).count("port ") == 2
    assert "100% packet loss" in network.far[0].run("ping", "-c", "1", "-W", "1", "10.9.0.2", check=False)
    for flow in ("in_port=1,actions=output:2", "in_port=2,nw_src=10.9.0.1,ip,actions=output:1", "arp,actions=flood"):
        network.here.run(*ofctl, "add-flow", switch, flow)
    assert " 0% packet loss" in network.far[0].run("ping", "-c", "2", "-i", "0.2", "10.9.0.2")
    told = network.here.run(*ofctl, "dump-flows", switch, "in_port=2,ip")
    # The packet of the first ping may still have waited for an answer to ARP when the flows came.
    assert re.search(r"n_packets=[23],", told)
    alone.end(signal.SIGINT)


@needs_ovs_vsctl
def test_clients_of_ovsdb_read_it_and_give_its_ports_queues(network: PrivateNetwork) -> None:
    alone = Alone(network, "--dpid", "0xab", "--port", "e1", "--port", "e2", "--ovsdb", "ptcp:6640")
    assert alone.line == "switch 00000000000000ab is ready on e1, e2, serves OVSDB on ptcp:6640"
    vsctl = ["ovs-vsctl", "-t", "10", "--db=tcp:127.0.0.1:6640"]
    assert network.here.run(*vsctl, "get", "bridge", "s", "datapath_id").strip() == '"00000000000000ab"'
    assert network.here.run(*vsctl, "list-ports", "s").split() == ["s-eth1", "s-eth2"]
    policer = ["type=egress-policer", "other-config:cir=1250", "other-config:cbs=2000"]
    network.here.run(*vsctl, "set", "port", "s-eth2", "qos=@q", "--", "--id=@q", "create", "qos", *policer)
    # Of ten packets of 1042 bytes within a tenth of a second, a bucket of 2000 bytes has room for one.
    lossy = ["ping", "-c", "10", "-i", "0.01", "-W", "1", "-s", "1000", "10.9.0.2"]
    assert re.search(r"[1-9]0% packet loss", network.far[0].run(*lossy, check=False))
    network.here.run(*vsctl, "clear", "port", "s-eth2", "qos")
    assert " 0% packet loss" in network.far[0].run(*lossy)
    alone.end(signal.SIGINT)


# A controller that tells what it hears of ports: the reason and the port's number.
LISTENER = """
import socket, struct
with socket.create_server(("127.0.0.1", 6659)) as server:
    print("listening", flush=True)
    switch, _ = server.accept()
    switch.sendall(bytes([4, 0, 0, 8, 0, 0, 0, 1, 4, 2, 0, 8, 0, 0, 0, 2]))
    heard = switch.makefile("rb")
    while header := heard.read(8):
        _, kind, length, _ = struct.unpack("!BBHI", header)
        body = heard.read(length - 8)
        if kind == 3:
            print("joined", flush=True)
        if kind == 12:
            print(body[0], struct.unpack_from("!I", body, 8)[0], flush=True)
"""
DELETED, MODIFIED = 1, 2


@needs_ovs_ofctl
def test_a_port_whose_interface_vanishes_is_deleted_and_the_others_go_on(network: PrivateNetwork) -> None:
    network.here.run("ip", "link", "add", "gone1", "type", "veth", "peer", "name", "gone2")
    for name in ("gone1", "gone2"):
        network.here.run("ip", "link", "set", name, "up")
    listener = network.here.popen(sys.executable, "-c", LISTENER, stdout=subprocess.PIPE)
    try:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "listening\n"
        ports = ("--port", "e1", "--port", "e2", "--port", "gone1", "--flow", "actions=normal")
        alone = Alone(network, *ports, "--listen", "ptcp:6657", "--controller", "tcp:127.0.0.1:6659")
        assert listener.stdout.readline() == "joined\n"
        told = ("ovs-ofctl", "-O", "OpenFlow13", "dump-ports-desc", "tcp:127.0.0.1:6657")
        assert "3(s-eth3)" in network.here.run(*told)
        network.here.run("ip", "link", "set", "gone1", "down")
        assert listener.stdout.readline() == f"{MODIFIED} 3\n"
        network.here.run("ip", "link", "delete", "gone1")
        assert listener.stdout.readline() == f"{DELETED} 3\n"
        assert alone.process.stderr is not None
        while "gone1 is gone" not in (line := alone.process.stderr.readline()):
            assert line
        assert "2(s-eth2)" in (left := network.here.run(*told)) and "s-eth3" not in left
        assert " 0% packet loss" in network.far[0].run("ping", "-c", "2", "-i", "0.2", "10.9.0.2")
        alone.end(signal.SIGINT)
    finally:
        listener.kill()
        listener.communicate()


@needs_os_ken
def test_a_controller_that_is_a_program_of_its_own_drives_it(network: PrivateNetwork) -> None:
    controller = network.here.popen(sys.executable, str(HERE / "controllers" / "learning_13.py"), "6656")
    try:
        options = ["--controller", "tcp:127.0.0.1:6656", "--fail-mode", "secure", "--json"]
        alone = Alone(network, "--port", "e1", "--port", "e2", *options)
        assert json.loads(alone.line)["ports"] == ["e1", "e2"]
        # Until the controller has joined, nothing is forwarded: ping asks until it is.
        said = network.far[0].run("ping", "-c", "1", "-w", "20", "10.9.0.2")
        assert " 1 received" in said
        # The controller may take its time to listen.
        alone.end(signal.SIGTERM, "twinnet: tcp:127.0.0.1:6656: Connection refused\n")
    finally:
        controller.kill()
        controller.wait()


def test_why_a_controller_is_not_reached_is_said_once(network: PrivateNetwork) -> None:
    alone = Alone(network, "--port", "e1", "--port", "e2", "--controller", "tcp:127.0.0.1:6660")
    assert alone.process.stderr is not None
    assert alone.process.stderr.readline() == "twinnet: tcp:127.0.0.1:6660: Connection refused\n"
    alone.end(signal.SIGINT)


def refusal(network: PrivateNetwork, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        network.here.command(*TWINNET, "switch", *options), capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stderr.strip()


def test_what_cannot_be_is_refused_in_one_line(network: PrivateNetwork) -> None:
    status, said = refusal(network, "--port", "nosuch0")
    assert status == 1 and "there are e1, e2" in said and "\n" not in said
    status, said = refusal(network, "--port", "e1", "--port", "e1")
    assert status == 2 and "e1" in said and "already" in said
    status, said = refusal(network, "--port", "e1", "--dpid", "zz")
    assert status == 2 and "dpid" in said
    status, said = refusal(network, "--port", "e1", "--controller", "quic:1.2.3.4")
    assert status == 2 and "tcp:127.0.0.1:6653" in said
    status, said = refusal(network, "--port", "e1", "--controller", "ssl:1.2.3.4", "--private-key", "key.pem")
    assert status == 2 and "need --private-key and --certificate" in said
    status, said = refusal(network, "--port", "e1", "--ca-cert", "ca.pem")
    assert status == 2 and "no --controller ssl:" in said
    keys = ("--private-key", "/nowhere/key.pem", "--certificate", "/nowhere/cert.pem")
    status, said = refusal(network, "--port", "e1", "--listen", "pssl:6658", *keys)
    assert status == 1 and "'/nowhere/key.pem' cannot be read" in said and "\n" not in said


ECHO = """
import socket, sys, time
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as switch:
    switch.sendall(bytes([4, 0, 0, 8, 0, 0, 0, 1]))
    begin = time.monotonic()
    switch.sendall(bytes([4, 2, 0, 8, 0, 0, 0, 2]))
    heard = b""
    while bytes([4, 3, 0, 8, 0, 0, 0, 2]) not in heard:
        heard += switch.recv(1000)
    print(time.monotonic() - begin)
"""


def test_messages_of_control_take_the_delay_that_is_asked_for_each_way(network: PrivateNetwork) -> None:
    alone = Alone(network, "--port", "e1", "--listen", "ptcp:16653:127.0.0.1", "--control-delay", "150 ms")
    took_s = float(network.here.run(sys.executable, "-c", ECHO, "16653"))
    # There and back; a busy machine is later, and nothing is earlier.
    assert 0.3 <= took_s < 5
    alone.end(signal.SIGTERM)
