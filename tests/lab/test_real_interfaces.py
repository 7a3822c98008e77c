"""Interfaces of the machine as ends of links, in a namespace of our own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
import twinnet as tn
from private_network import PrivateNetwork, needs_private_network
from twinnet.errors import BadName, BadTopology, DuplicateName, LabError
from twinnet.network.topology_file import parse_network

needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed: apt install iperf3")

# A lab of one switch between two interfaces, which goes on until its standard input closes.
BETWEEN = """\
import sys
import twinnet as tn

net = tn.Network()
s1 = net.switch("s1")
s1.attach("e1", rate=sys.argv[1] or None, delay=sys.argv[2])
s1.attach("e2", rate=sys.argv[1] or None)
with net.emulate() as lab:
    print("ready", flush=True)
    for line in sys.stdin:
        print(eval(line), flush=True)
"""


class Between:
    """The lab of `BETWEEN`, which answers expressions."""

    def __init__(self, network: PrivateNetwork, rate: str = "", delay: str = "0 s") -> None:
        pipe = subprocess.PIPE
        self._lab = network.here.popen(sys.executable, "-c", BETWEEN, rate, delay, stdin=pipe, stdout=pipe, stderr=pipe)
        assert self._lab.stdout is not None
        said = self._lab.stdout.readline()
        assert said == "ready\n", self._lab.communicate()[1]

    def ask(self, expression: str) -> str:
        assert self._lab.stdin is not None and self._lab.stdout is not None
        self._lab.stdin.write(expression + "\n")
        self._lab.stdin.flush()
        return self._lab.stdout.readline().strip()

    def end(self) -> str:
        _, errors = self._lab.communicate(timeout=20)
        assert self._lab.returncode == 0, errors
        return errors


@pytest.fixture
def network() -> Iterator[PrivateNetwork]:
    with PrivateNetwork(2) as made:
        yield made


@needs_private_network
def test_frames_pass_between_interfaces_with_the_delay_of_the_link(network: PrivateNetwork) -> None:
    lab = Between(network, delay="20 ms")
    far = network.far[0]
    assert "PROMISC" in network.here.run("ip", "-d", "link", "show", "e1") or "promiscuity 1" in network.here.run(
        "ip", "-d", "link", "show", "e1"
    )
    said = far.run("ping", "-c", "3", "-i", "0.2", "10.9.0.2")
    assert " 0% packet loss" in said
    least_ms = float(re.findall(r"= ([0-9.]+)/", said)[0])
    # The link delays frames in both directions.
    assert 40 <= least_ms < 60
    lab.end()
    assert "promiscuity 0" in network.here.run("ip", "-d", "link", "show", "e1")


@needs_private_network
@needs_iperf3
def test_tcp_keeps_to_the_rate_of_the_link_with_offloads_on(network: PrivateNetwork) -> None:
    lab = Between(network, rate="10 Mbit")
    server = network.far[1].popen("iperf3", "-s", "-1", "--forceflush", stdout=subprocess.PIPE)
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        pass
    said = network.far[0].run("iperf3", "-c", "10.9.0.2", "-t", "2", "-f", "k")
    server.communicate(timeout=20)
    kbit_s = float(re.findall(r"([0-9.]+) Kbits/sec +receiver", said)[0])
    # 1448 of 1538 bytes of each frame are TCP's payload: 9.4 of 10 Mbit/s. A busy machine may carry less, never more.
    assert 1_000 < kbit_s < 9_500
    lab.end()


@needs_private_network
def test_checksums_are_right_where_the_other_side_checks_them_in_software(network: PrivateNetwork) -> None:
    for far in network.far:
        if shutil.which("ethtool") is None:
            pytest.skip("ethtool is not installed: apt install ethtool")
        far.run("ethtool", "-K", "far", "rx", "off", "tx", "off", "gro", "off")
    lab = Between(network)
    serve = "import socket; s = socket.create_server(('10.9.0.2', 5000)); print('up', flush=True); c, _ = s.accept();"
    count = " n = 0\nwhile d := c.recv(65536): n += len(d)\nprint(n)"
    server = network.far[1].popen(sys.executable, "-c", serve + count, stdout=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    send = "import socket; s = socket.create_connection(('10.9.0.2', 5000)); s.sendall(bytes(3_000_000))"
    network.far[0].run(sys.executable, "-c", send)
    assert server.communicate(timeout=20)[0] == "3000000\n"
    wrong = network.far[1].run("sh", "-c", "grep ^Tcp: /proc/net/snmp | tail -1")
    assert wrong.split()[-1] == "0"
    lab.end()


LISTEN_FOR_TAG = """\
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("far", 0))
s.setsockopt(263, 8, 1)
print("up", flush=True)
while True:
    frame, (message, *_), _, _ = s.recvmsg(2000, 100)
    if frame.endswith(b"tagged?"):
        status, _, _, _, _, control, protocol = struct.unpack("IIIHHHH", message[2])
        print(bool(status & 16), hex(protocol), hex(control), hex(int.from_bytes(frame[12:14], "big")))
        break
"""
SEND_TAGGED = """\
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("far", 0))
s.send(b"\\xff" * 6 + bytes([2, 0, 0, 0, 0, 9]) + bytes.fromhex("81006007" "88b5") + b"tagged?".rjust(60))
"""


@needs_private_network
def test_vlan_tags_are_kept(network: PrivateNetwork) -> None:
    lab = Between(network)
    lab.ask("lab.switch('s1').add_flow('dl_vlan=7,actions=output:2')")
    listener = network.far[1].popen(sys.executable, "-c", LISTEN_FOR_TAG, stdout=subprocess.PIPE)
    assert listener.stdout is not None
    listener.stdout.readline()
    network.far[0].run(sys.executable, "-c", SEND_TAGGED)
    assert listener.communicate(timeout=20)[0] == "True 0x8100 0x6007 0x88b5\n"
    assert "n_packets=1," in lab.ask("lab.switch('s1').dump_flows()")
    lab.end()


def states(lab: Between) -> str:
    return lab.ask("[row['state'] for row in lab.interfaces()]")


def until(what: str, lab: Between) -> None:
    for _ in range(200):
        if states(lab) == what:
            return
    raise AssertionError(states(lab))


@needs_private_network
def test_an_interface_that_goes_down_or_vanishes_takes_its_link_down_and_the_lab_goes_on(
    network: PrivateNetwork,
) -> None:
    lab = Between(network)
    network.here.run("ip", "link", "set", "e2", "down")
    until("['up', 'down']", lab)
    assert lab.ask("[way['up'] for way in (lab.links()[1]['ab'], lab.links()[1]['ba'])]") == "[False, False]"
    network.here.run("ip", "link", "set", "e2", "up")
    until("['up', 'up']", lab)
    assert " 0% packet loss" in network.far[0].run("ping", "-c", "2", "-i", "0.2", "10.9.0.2")
    network.here.run("ip", "link", "delete", "e2")
    until("['up', 'gone']", lab)
    assert lab.ask("lab.links()[1]['ab']['up']") == "False"
    assert "the interface e2 is gone" in lab.end()


@needs_private_network
def test_what_cannot_be_opened_is_refused_with_the_remedy(network: PrivateNetwork) -> None:
    program = textwrap.dedent("""
        import sys, twinnet as tn
        net = tn.Network()
        net.switch("s1").attach(sys.argv[1], name="x", mtu=int(sys.argv[2]))
        try:
            with net.emulate():
                pass
        except tn.LabError as error:
            print(error.name, error)
    """)
    said = network.python(program, "nosuch0", "1500")
    assert said.startswith("NoSuchInterface") and "there are e1, e2" in said
    said = network.python(program, "e1", "9000")
    assert said.startswith("MtuTooLarge") and "ip link set e1 mtu 9000" in said
    network.here.run("ip", "tuntap", "add", "t1", "mode", "tun")
    assert network.python(program, "t1", "1500").startswith("NotEthernet")
    bare = network.here.command("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw", sys.executable)
    if shutil.which("setpriv") is not None:
        done = subprocess.run([*bare, "-c", program, "e1", "1500"], capture_output=True, text=True, check=False)
        assert done.stdout.startswith("PacketSocketRefused") and "CAP_NET_RAW" in done.stdout, done


def test_the_virtual_clock_refuses_interfaces_by_name() -> None:
    net = tn.Network()
    net.switch("s1").attach("eth1", name="uplink")
    with pytest.raises(LabError, match=r"uplink.*net\.emulate") as refused, net.simulate():
        pass
    assert refused.value.name == "WallClockOnly"


def test_a_file_names_interfaces() -> None:
    net = parse_network(
        "switches: {s1: }\ninterfaces: {eth1: , up: {interface: enp3s0.100}}\n"
        "links: [{between: [eth1, s1], rate: 10 Mbit}, {between: [up, s1]}]"
    )
    spec = net.to_spec()
    assert [node["interface"] for node in spec["nodes"] if node["kind"] == "interface"] == ["eth1", "enp3s0.100"]
    assert spec["nodes"][2]["ports"] == [{"name": "enp3s0.100", "queue": None}]


def test_a_description_that_contradicts_itself_is_refused() -> None:
    net = tn.Network()
    s1 = net.switch("s1")
    s1.attach("eth1")
    with pytest.raises(DuplicateName, match="eth1 already"):
        net.interface("eth1", name="again")
    with pytest.raises(BadTopology, match="one link can end"):
        net.link("eth1", net.host("h1"))
    with pytest.raises(BadName, match="ip link"):
        net.interface("lo")
    with pytest.raises(BadName, match="rename the node"):
        net.interface("enp3s0.100")
