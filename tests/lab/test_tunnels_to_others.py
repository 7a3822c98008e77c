"""Tunnels over a real underlay: two labs, each on a machine of its own, and other speakers."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import can_run_labs
from open_vswitch_peer import OpenVSwitchPeer
from underlay_pair import ADDRESSES, CannotMake, UnderlayPair

wall_clock = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
HERE, THERE = ADDRESSES


@pytest.fixture
def pair() -> Iterator[UnderlayPair]:
    """Two machines on a wire with an MTU of 1500."""
    try:
        made = UnderlayPair()
    except CannotMake as error:
        pytest.skip(str(error))
    with made:
        yield made


def tunnel(kind: str, remote: str, **settings: Any) -> dict[str, Any]:
    """A tunnel to `remote` as network files have it."""
    return {kind: {"remote": remote, "vni" if kind == "vxlan" else "key": 42} | settings}


def received(ping: str) -> int:
    """How many answers `ping` has seen."""
    found = re.search(r"(\d+) received", ping)
    assert found is not None, ping
    return int(found.group(1))


@wall_clock
@pytest.mark.parametrize("kind", ["vxlan", "gre"])
def test_two_labs_are_one_network_across_an_underlay(pair: UnderlayPair, kind: str) -> None:
    one = pair.lab(0, address="10.0.0.1/24", mac="02:00:00:00:00:01", tunnels=[tunnel(kind, THERE)])
    other = pair.lab(1, address="10.0.0.2/24", mac="02:00:00:00:00:02", tunnels=[tunnel(kind, HERE)])
    assert (one.refusal, other.refusal) == (None, None)
    # Full-size packets are longer than the underlay's and are cut there.
    assert received(one.run("ping -c 5 -i 0.05 -s 1472 -W 2 10.0.0.2")) == 5
    if shutil.which("iperf3"):
        other.ask(start="iperf3 -s -1")
        one.run("sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do iperf3 -c 10.0.0.2 -n 4M && break; sleep 0.2; done'")
    [row] = one.ask()
    assert row["path_mtu"] == 1500
    assert row["inner_mtu"] == (1450 if kind == "vxlan" else 1458)
    counters = row["counters"]
    assert counters["sent"] >= 6
    assert counters["received"] >= 6
    if shutil.which("iperf3"):
        # Super-segments went out as the frames that they stand for; iperf3 ends before the last bytes have arrived.
        assert counters["sent_bytes"] > 1_000_000
        assert counters["sent_bytes"] <= counters["sent"] * 1514
    assert row["refused"] == {"malformed": 0, "not_ethernet": 0, "other_identifier": 0, "other_source": 0}


@wall_clock
def test_tunnels_with_other_identifiers_do_not_meet_and_what_is_hostile_is_counted(pair: UnderlayPair) -> None:
    one = pair.lab(
        0,
        address="10.0.0.1/24",
        tunnels=[tunnel("vxlan", THERE), {"vxlan": {"vni": 7, "remote": THERE}}],
    )
    # Both tunnels share a socket.
    other = pair.lab(1, address="10.0.0.2/24", mac="02:00:00:00:00:09", tunnels=[{"vxlan": {"vni": 7, "remote": HERE}}])
    assert (one.refusal, other.refusal) == (None, None)
    assert received(one.ask(run="ping -c 3 -i 0.05 -W 2 10.0.0.2", host="h2")) == 3
    assert received(one.run("ping -c 2 -i 0.05 -W 1 10.0.0.2")) == 0
    shouting = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"for bytes in (b'', b'x', bytes(8), bytes([8, 0, 0, 0, 0, 0, 9, 0]) + bytes(60), bytes(60000)):\n"
        f"    s.sendto(bytes, ('{HERE}', 4789))\n"
    )
    assert pair.run(1, "python3", "-c", shouting).returncode == 0
    assert received(one.ask(run="ping -c 3 -i 0.05 -W 2 10.0.0.2", host="h2")) == 3
    first, second = one.ask()
    assert first["counters"]["received"] == 0
    assert second["counters"]["received"] >= 6
    assert second["refused"] == {"malformed": 4, "not_ethernet": 0, "other_identifier": 1, "other_source": 0}


@wall_clock
def test_a_stranger_with_the_right_identifier_is_not_heard(pair: UnderlayPair) -> None:
    one = pair.lab(0, address="10.0.0.1/24", tunnels=[tunnel("vxlan", "192.0.2.3")])
    other = pair.lab(1, address="10.0.0.2/24", mac="02:00:00:00:00:09", tunnels=[tunnel("vxlan", HERE)])
    assert received(other.run("ping -c 2 -i 0.05 -W 1 10.0.0.1")) == 0
    [row] = one.ask()
    assert row["refused"]["other_source"] > 0


@wall_clock
def test_what_may_not_be_cut_fits_or_is_refused_before_anything_is_built(pair: UnderlayPair) -> None:
    too_long = pair.lab(0, address="10.0.0.1/24", tunnels=[tunnel("vxlan", THERE, fragment=False)])
    assert too_long.refusal is not None
    assert "give its link mtu=1450" in too_long.refusal
    one = pair.lab(0, address="10.0.0.1/24", mtu=1450, tunnels=[tunnel("vxlan", THERE, fragment=False)])
    other = pair.lab(
        1, address="10.0.0.2/24", mac="02:00:00:00:00:09", mtu=1450, tunnels=[tunnel("vxlan", HERE, fragment=False)]
    )
    assert (one.refusal, other.refusal) == (None, None)
    assert received(one.run("ping -c 3 -i 0.05 -s 1422 -W 2 10.0.0.2")) == 3


@wall_clock
@pytest.mark.parametrize(
    ("kind", "device", "settings", "ours"),
    [("vxlan", "vxlan", "id 42 dstport 4789", {}), ("gre", "gretap", "key 42", {"checksum": True})],
)
def test_the_kernels_own_device_is_spoken_with(
    pair: UnderlayPair, kind: str, device: str, settings: str, ours: dict[str, Any]
) -> None:
    made = pair.run(1, f"ip link add tun0 type {device} {settings} local 192.0.2.2 remote 192.0.2.1")
    if made.returncode != 0 and device == "vxlan":
        pytest.skip(f"this kernel has no vxlan device: {made.stderr.strip()}")
    if made.returncode != 0:
        pytest.skip(f"this kernel has no gretap device: {made.stderr.strip()}")
    pair.run(1, "ip addr add 10.0.0.2/24 dev tun0")
    pair.run(1, "ip link set tun0 up")
    one = pair.lab(0, address="10.0.0.1/24", tunnels=[tunnel(kind, THERE, **ours)])
    assert one.refusal is None
    assert received(one.run("ping -c 5 -i 0.05 -s 1400 -W 2 10.0.0.2")) == 5
    assert received(pair.run(1, "ping -c 3 -i 0.05 -s 1422 -W 2 10.0.0.1").stdout) == 3


@wall_clock
@pytest.mark.parametrize("kind", ["gre", "vxlan"])
def test_open_vswitch_is_spoken_with(pair: UnderlayPair, kind: str, tmp_path: Path) -> None:
    try:
        peer = OpenVSwitchPeer(pair, 1, tmp_path)
    except CannotMake as error:
        pytest.skip(str(error))
    with peer:
        peer.tunnel(kind, THERE, HERE, 42, "10.0.0.2/24")
        one = pair.lab(0, address="10.0.0.1/24", mtu=1400, tunnels=[tunnel(kind, THERE, fragment=False)])
        assert one.refusal is None
        assert received(one.run("ping -c 5 -i 0.1 -s 1300 -W 2 10.0.0.2")) >= 4, one.ask()


def test_the_virtual_clock_refuses_a_tunnel_to_another_speaker() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    net.tunnel("s1", tn.vxlan(42, remote=THERE))
    with pytest.raises(tn.TwinnetError, match=r"tun1 \(to 192\.0\.2\.2\)"), net.simulate():
        pass


@wall_clock
def test_a_port_in_use_is_told_with_its_remedy() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        net.tunnel("s1", tn.vxlan(42, remote="127.0.0.2", local="127.0.0.1", port=port))
        with pytest.raises(tn.TwinnetError, match="choose another port"), net.emulate():
            pass


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: tn.vxlan(42), "to whom it leads"),
        (lambda: tn.vxlan(42, remote="224.0.0.1"), "remote address of the tunnel"),
        (lambda: tn.vxlan(42, remote="example.org"), "remote address of the tunnel"),
        (lambda: tn.vxlan(42, remote=THERE, mtu=1400), "leave mtu out"),
        (lambda: tn.vxlan(42, remote=THERE, port=0), "from 1 to 65535"),
        (lambda: tn.gre(remote=THERE, fragment=False, mtu=80), "no room"),
    ],
)
def test_what_leads_nowhere_is_refused(made: Any, words: str) -> None:
    net = tn.Network()
    net.switch("s1")
    with pytest.raises(tn.UsageError, match=words):
        net.tunnel("s1", made())
    assert list(net.nodes) == ["s1"]


def test_the_same_tunnel_twice_is_refused_and_a_link_takes_no_addresses() -> None:
    net = tn.Network()
    net.switch("s1")
    net.link(net.host("h1"), "s1")
    net.tunnel("s1", tn.gre(key=1, remote=THERE))
    net.tunnel("s1", tn.gre(key=2, remote=THERE))
    with pytest.raises(tn.UsageError, match="its own key"):
        net.tunnel("s1", tn.gre(key=1, remote=THERE))
    with pytest.raises(tn.UsageError, match=r"net\.tunnel"):
        net.link("h1", net.host("h2"), tunnel=tn.gre(remote=THERE))
