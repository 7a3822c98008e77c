"""Links through a tunnel: one body on both clocks, exact times on the virtual one, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet.lab.lab import Lab
from twinnet.network.topology_file import parse_network
from twinnet.network.tunnels import Tunnel

wall_clock = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
Start = Callable[[tn.Network], Lab]


@pytest.fixture(params=[pytest.param("wall", marks=wall_clock), "virtual"])
def start(request: pytest.FixtureRequest) -> Start:
    """What starts a network on one of the clocks."""
    return tn.Network.emulate if request.param == "wall" else tn.Network.simulate


def pair(tunnel: Tunnel | None, mtu: int = 1500, rate: str = "10 Mbit", loss: str | None = None) -> tn.Network:
    """Two hosts at a link through `tunnel`."""
    network = tn.Network(seed=3)
    network.link(network.host("h1"), network.host("h2"), rate=rate, delay="5 ms", mtu=mtu, tunnel=tunnel, loss=loss)
    return network


def counters_of(lab: Lab, name: str) -> dict[str, int]:
    """The counters of the port `name`."""
    return next(port["counters"] for port in lab.ports() if port["port"] == name)


@pytest.mark.parametrize(
    "start", [pytest.param("wall", marks=[wall_clock, pytest.mark.judged]), "virtual"], indirect=True
)
def test_a_udp_flow_gets_what_the_fragments_leave_it(start: Start) -> None:
    with start(pair(tn.gre(key=5), mtu=1500)) as lab:
        flow = lab.start(tn.apps.udp("h1", "h2", rate="12 Mbit", payload="1472 B", duration="2 s", interval="500 ms"))
        lab.run_until("4 s")
        report = flow.report()
    # 1472 bytes of payload in a frame of 1514, which costs 1538 + 100 bytes on the wire: 8.987 Mbit/s.
    assert report.intervals is not None
    middle = [count * 8 / 0.5 for count in report.intervals.bytes[1:3]]
    # On the wall clock a busy machine may be late with single datagrams; the line never gives more than it has.
    left = 1472 / 1638 * 10e6
    least = 0.999 if lab.clock == "virtual" else 0.9
    assert all(least * left - 1472 * 8 / 0.5 <= rate <= left + 1472 * 8 / 0.5 for rate in middle)


def test_tcp_crosses_a_tunnel_with_frames_larger_than_the_underlays(start: Start) -> None:
    with start(pair(tn.vxlan(42), mtu=4000, rate="100 Mbit")) as lab:
        flow = lab.start(tn.apps.tcp_bulk("h1", "h2", size="4 MB"))
        assert lab.wait([flow], until="20 s")
        counters = counters_of(lab, "h1-eth0")
    # No segment is lost, and the wire carries more than the frames: three fragments each.
    assert counters["wire_bytes"] > counters["link_bytes"] * 1.02


def test_a_ping_takes_the_time_of_its_fragments_to_the_picosecond() -> None:
    network = pair(tn.gre(key=5), rate="100 Mbit")
    with network.simulate(static_neighbours=True) as lab:
        probe = lab.start(tn.apps.ping("h1", "h2", count=1, payload="1472 B"))
        assert lab.wait([probe], until="10 s")
        report = probe.report()
    assert report.rtt is not None
    # Each way 1626 bytes until the last bit of the second fragment, and 5 ms.
    assert report.rtt.min == 2 * (1626 * 8 * 10_000 + 5_000_000_000)


def test_without_fragments_hosts_go_by_what_fits(start: Start) -> None:
    with start(pair(tn.gre(key=5, fragment=False))) as lab:
        probe = lab.start(tn.apps.ping("h1", "h2", count=3, payload="1430 B", interval="50 ms"))
        assert lab.wait([probe], until="10 s")
        assert lab.wait([flow := lab.start(tn.apps.tcp_bulk("h1", "h2", size="500 kB"))], until="20 s")
        counters = counters_of(lab, "h1-eth0")
        assert flow.report().bytes == 500_000
    # Segments have 1458 - 40 - 12 bytes: nothing is too long for the underlay, and nothing is cut.
    assert counters["dropped_unfragmentable"] == 0
    assert counters["wire_bytes"] <= counters["link_bytes"] + counters["frames"] * (42 + 24)


def test_a_frame_that_may_not_be_cut_is_dropped_behind_a_switch() -> None:
    network = tn.Network()
    left, right = network.switch("s1"), network.switch("s2")
    network.link(network.host("h1"), left)
    network.link(network.host("h2"), right)
    network.link(left, right, tunnel=tn.vxlan(7, fragment=False))
    with network.simulate() as lab:
        probe = lab.start(tn.apps.ping("h1", "h2", count=4, payload="1472 B", interval="10 ms"))
        lab.run_until("5 s")
        assert probe.report().lost == 4
        assert counters_of(lab, "s1-eth2")["dropped_unfragmentable"] == 4


def test_a_network_file_says_the_same() -> None:
    text = """
hosts: {h1: {}, h2: {}}
links:
  - {between: [h1, h2], rate: 100 Mbit, mtu: 8000, tunnel: {gre: {key: 5, mtu: 1500 B}}}
"""
    [link] = parse_network(text).links
    assert link.tunnel == tn.gre(key=5, mtu=1500)
    assert link.to_spec()["tunnel"] == {"kind": "gre", "key": 5, "checksum": False, "mtu": 1500, "fragment": True}


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        ({"gre": {"key": -1}}, "key of the tunnel is -1"),
        ({"gre": {"vni": 1}}, "no setting 'vni'"),
        ({"vxlan": {}}, "lacks its vni"),
        ({"vxlan": {"vni": 1 << 24}}, "from 0 to 16777215"),
        ({"ipip": {}}, "'ipip' is not known"),
        ({"gre": {}, "vxlan": {"vni": 1}}, "write for example"),
        ({"gre": {"mtu": 60}}, "68 to 65535"),
        ({"gre": {"mtu": 80, "fragment": False}}, "no room"),
        ({"gre": {"fragment": 1}}, "allowed are True and False"),
        ("gre", "write for example"),
    ],
)
def test_what_makes_no_sense_is_refused(tunnel: object, words: str) -> None:
    with pytest.raises(tn.UsageError, match=words):
        pair(tunnel)  # pyright: ignore[reportArgumentType]


def test_a_link_too_long_for_ipv4_is_refused() -> None:
    with pytest.raises(tn.UsageError, match="at most 65489"):
        pair(tn.gre(), mtu=65_521)
