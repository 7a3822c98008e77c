"""Frames of links with a large MTU pass switches whole, and are dropped and counted where a link has a smaller one."""

from __future__ import annotations

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from labs_here import can_run_labs

_JUMBO = "ping -c 1 -W 1 -M do -q -s 8972 10.0.0.2"
_CLOCKS = [
    pytest.param(
        "wall",
        marks=pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor"),
    ),
    pytest.param(
        "programs",
        marks=pytest.mark.skipif(not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock"),
    ),
]


def _through_two_switches(mtu: int) -> tn.Network:
    net = tn.Network()
    h1, h2, s1, s2 = net.host("h1"), net.host("h2"), net.switch("s1"), net.switch("s2")
    for one, other, longest in ((h1, s1, 9000), (s1, s2, mtu), (s2, h2, 9000)):
        net.link(one, other, mtu=longest, rate="1 Gbit")
    return net


def _opened(net: tn.Network, clock: str) -> tn.Lab:
    return net.emulate() if clock == "wall" else net.simulate(hosts="programs", seed=1)


@pytest.mark.parametrize("clock", _CLOCKS)
def test_a_frame_of_nine_thousand_bytes_passes_two_switches(clock: str) -> None:
    with _opened(_through_two_switches(9000), clock) as lab:
        assert ", 0% packet loss" in lab["h1"].run(_JUMBO).stdout
        assert sum(port["counters"]["dropped_oversize"] for port in lab.ports()) == 0


@pytest.mark.parametrize("clock", _CLOCKS)
def test_a_link_with_a_smaller_mtu_drops_and_counts_what_is_too_long(clock: str) -> None:
    with _opened(_through_two_switches(4000), clock) as lab:
        assert ", 100% packet loss" in lab["h1"].run(_JUMBO).stdout
        dropped = {port["port"]: port["counters"]["dropped_oversize"] for port in lab.ports()}
        assert dropped.pop("s1-eth2") == 1
        assert set(dropped.values()) == {0}


def test_model_hosts_send_datagrams_in_as_many_frames_as_the_mtu_of_their_link_takes() -> None:
    frames: dict[int, int] = {}
    for mtu in (9000, 1500):
        net = tn.Network()
        h1, h2, s1 = net.host("h1"), net.host("h2"), net.switch("s1")
        for host in (h1, h2):
            net.link(host, s1, mtu=mtu, rate="1 Gbit")
        with net.simulate(seed=1) as lab:
            lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="10 Mbit", payload="8972 B", packets=10))])
            lab.run_until("1 s")
            frames[mtu] = next(p["counters"]["frames"] for p in lab.ports() if p["port"] == "s1-eth2")
    # Besides an answer to a question for an address, perhaps: 10 datagrams, and 7 fragments of each.
    assert 10 <= frames[9000] <= 12
    assert 70 <= frames[1500] <= 73


def test_the_mtu_of_a_link_in_motion_is_changed_within_what_links_may_have() -> None:
    with _through_two_switches(1500).simulate(seed=1) as lab:
        with pytest.raises(tn.errors.LabError, match="the MTU is 67; it can be 68 to 65521"):
            lab.connection.link_set(link=1, set={"mtu": 67})
        lab.connection.link_set(link=1, set={"mtu": 9000})
