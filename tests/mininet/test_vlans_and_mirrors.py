"""VLANs and mirrors that ``ovs-vsctl`` gives to ports: with hosts, a trunk and tagged frames."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.errors import BadValue, TwinnetError
from twinnet.network.topology_file import parse_network

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")

TRUNK_END = """
import socket, struct, sys, time

# A host at a trunk: it asks for an address with tagged frames where it is told to, and prints the VLAN and the
# EtherType of each frame that it sees.
name, vlan, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
sock.bind((name, 0))
sock.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: the kernel takes tags off and tells them beside
sock.settimeout(0.1)
print("ready", flush=True)
if vlan:
    mac = bytes.fromhex("020000000099")
    own, asked = bytes([10, 0, 0, 99]), bytes([10, 0, 0, 3])
    request = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, own, bytes(6), asked)
    sock.send(b"\\xff" * 6 + mac + struct.pack("!HH", 0x8100, vlan) + b"\\x08\\x06" + request)
end, seen = time.monotonic() + seconds, set()
while time.monotonic() < end:
    try:
        frame, beside, _, address = sock.recvmsg(2048, 64)
    except TimeoutError:
        continue
    status, _, _, _, _, control, _ = struct.unpack("IIIHHHH", beside[0][2])
    if address[2] != 4:  # PACKET_OUTGOING
        kind = struct.unpack("!H", frame[12:14])[0]
        seen.add((control & 0xfff if status & 0x10 else 0, {0x0800: "ip", 0x0806: "arp"}.get(kind, "other")))
print(sorted(one for one in seen if one[1] != "other"))
"""

NETWORK = """
    import subprocess
    from mininet.net import Mininet
    from mininet.node import OVSSwitch
    net = Mininet(controller=None)
    s1, s2 = (net.addSwitch(name, cls=OVSSwitch, failMode="standalone") for name in ("s1", "s2"))
    h1, h2, h3, h4, t = (net.addHost(name) for name in ("h1", "h2", "h3", "h4", "t"))
    for host, switch in ((h1, s1), (h2, s1), (h3, s2), (h4, s2), (t, s2)):
        net.addLink(host, switch)
    net.addLink(s1, s2)
    net.start()

    def ovs(line):
        print(subprocess.getoutput("ovs-vsctl " + line), end="")

    def watch(vlan, during):
        import time
        watcher = t.popen(["python3", "trunk_end.py", "t-eth0", str(vlan), "2"], stdout=-1, text=True)
        assert watcher.stdout.readline() == "ready\\n"
        during()
        return watcher.stdout.read().strip()
"""


def in_network(folder: Path, text: str, *arguments: str) -> list[str]:
    """Run `text` in a machine with two switches, two hosts at each, and a host `t` at a trunk."""
    (folder / "trunk_end.py").write_text(TRUNK_END)
    done = run_script(folder, textwrap.dedent(NETWORK) + textwrap.dedent(text), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@machine
def test_hosts_of_one_vlan_reach_each_other_over_a_trunk_and_no_others(tmp_path: Path) -> None:
    lines = in_network(
        tmp_path,
        """
        ovs("set port s1-eth1 tag=10 -- set port s1-eth2 tag=20")
        ovs("set port s2-eth1 tag=10 -- set port s2-eth2 tag=20")
        print([net.ping(pair) for pair in ([h1, h3], [h2, h4], [h1, h4], [h1, h2])])
        print(watch(0, lambda: (h1.cmd("ip neigh flush all; ping -c 1 10.0.0.3"), h2.cmd("ip neigh flush all"),
                                h2.cmd("ping -c 1 10.0.0.4"))))
        # Tagged frames of the trunk's end: its request in VLAN 10 is answered there, with the tag.
        print(watch(10, lambda: None))
        ovs("set port s2-eth3 trunks=20,30")
        print(watch(10, lambda: (h1.cmd("ip neigh flush all; ping -c 1 10.0.0.3"), h2.cmd("ip neigh flush all"),
                                 h2.cmd("ping -c 1 10.0.0.4"))))
        net.stop()
        """,
    )
    assert lines[0].endswith("[0.0, 0.0, 100.0, 100.0]")
    assert lines[1] == "[(10, 'arp'), (20, 'arp')]"
    assert "(10, 'arp')" in lines[2]
    assert lines[3] == "[(20, 'arp')]"


@machine
def test_a_mirror_shows_the_traffic_of_others_and_takes_nothing(tmp_path: Path) -> None:
    lines = in_network(
        tmp_path,
        """
        net.ping([h1, h3])
        print(watch(0, lambda: h1.cmd("ping -c 2 10.0.0.3")))
        ovs("-- set bridge s2 mirrors=@m -- --id=@t get port s2-eth3 -- --id=@w get port s2-eth1 "
            "-- --id=@m create mirror name=m select-src-port=@w select-dst-port=@w output-port=@t")
        print()
        print(watch(0, lambda: h1.cmd("ping -c 2 10.0.0.3")))
        print(net.ping([t, h3]))
        ovs("clear bridge s2 mirrors")
        print(net.ping([t, h3]))
        net.stop()
        """,
        "--export",
        "network.yaml",
    )
    assert "ip" not in lines[0].partition("[")[2]
    assert "(0, 'ip')" in lines[2]
    assert [line[-5:].strip() for line in lines[-2:]] == ["100.0", "0.0"]


def test_settings_of_a_network_file_are_those_of_the_protocol() -> None:
    text = """
    hosts: {h1: , h2: , h3: }
    switches:
      s1: {vlans: {1: {tag: 10}, 2: {trunks: [10, 20]}}, mirrors: [{to: {port: 3}, all: true}]}
    links: [{between: [h1, s1]}, {between: [h2, s1]}, {between: [h3, s1]}]
    """
    [switch] = [node for node in parse_network(text).to_spec()["nodes"] if node["kind"] == "switch"]
    assert [port.get("vlans") for port in switch["ports"]] == [
        {"mode": "access", "tag": 10, "trunks": []},
        {"mode": "trunk", "tag": 0, "trunks": [10, 20]},
        None,
    ]
    assert switch["mirrors"] == [{"to": {"port": 3}, "all": True, "from": [], "towards": [], "vlans": []}]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("vlans: {1: {tag: 5000}}", "whole numbers from 0 to 4094"),
        ("vlans: {1: {tga: 5}}", "unknown key 'tga'"),
        ("vlans: {1: {mode: access}}", "has no tag"),
        ("vlans: {1: {tag: 5, trunks: [6]}}", "has trunks and is an access port"),
        ("vlans: {x: {tag: 5}}", "a port of"),
        ("vlans: [5]", "a mapping of port numbers"),
        ("mirrors: [{to: {port: 3}}]", "selects nothing"),
        ("mirrors: [{all: true}]", "a mapping with port, vlan"),
        ("mirrors: [{to: {port: 3, vlan: 5}, all: true}]", "names 2 places"),
        ("mirrors: [{to: {port: 3}, all: yes please}]", "allowed are true and false"),
        ("mirrors: {}", "allowed is a list"),
        ("{kind: ovs, vlans: {1: {tag: 5}}}", "cannot have vlans and mirrors"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(settings: str, words: str) -> None:
    inner = settings if settings.startswith("{") else "{" + settings + "}"
    with pytest.raises(TwinnetError, match=words):
        parse_network(f"hosts: {{h1: }}\nswitches: {{s1: {inner}}}\nlinks: [{{between: [h1, s1]}}]")


def test_vlans_of_a_port_without_a_link_are_refused() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1", vlans={2: {"tag": 5}}))
    with pytest.raises(BadValue, match="name port 2, and no link ends there"):
        net.to_spec()


def test_model_hosts_of_one_vlan_reach_each_other_on_the_virtual_clock() -> None:
    net = tn.Network()
    s1 = net.switch("s1", vlans={1: {"tag": 10}, 2: {"tag": 10}, 3: {"tag": 20}})
    for name in ("h1", "h2", "h3"):
        net.link(net.host(name), s1)
    with net.simulate() as lab:
        near, far = lab.start(tn.apps.ping("h1", "h2", count=2)), lab.start(tn.apps.ping("h1", "h3", count=2))
        lab.run_until("10 s")
        assert (near.report().rtt is not None, far.report().rtt) == (True, None)
