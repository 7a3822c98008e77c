"""Links by LLDP and hosts by their frames: the network as its switches tell it, without its description."""

from __future__ import annotations

import pytest
import twinnet as tn
from hypothesis import given
from hypothesis import strategies as st
from twinnet.control import AvailableBandwidth, LearningSwitch, LinkDiscovery, PortAdvertisement, Together
from twinnet.errors import BadValue

FULL_FRAMES_PAYLOAD_SHARE = 1472 / 1538


def ring(discovery: LinkDiscovery, counters: AvailableBandwidth | None = None) -> tn.Network:
    """h1 at s1, h2 and x2 at s3; s1 reaches s3 directly by 10 Mbit/s. s2 is a dead end at s1."""
    net = tn.Network(seed=1)
    s1, s2, s3 = (net.switch(name) for name in ("s1", "s2", "s3"))
    net.link(net.host("h1"), s1, rate="100 Mbit")
    net.link(net.host("h2"), s3, rate="100 Mbit")
    net.link(s1, s2, rate="20 Mbit")
    net.link(s1, s3, rate="10 Mbit")
    parts = [discovery, *([counters] if counters is not None else []), LearningSwitch()]
    net.controller(Together(*parts))
    return net


def described(net: tn.Network) -> set[frozenset[tuple[str, int]]]:
    """The links between switches as the description has them."""
    spec = net.to_spec()
    kinds = {node["name"]: node for node in spec["nodes"]}
    found: set[frozenset[tuple[str, int]]] = set()
    for link in spec["links"]:
        ends = [link["a"], link["b"]]
        if all(kinds[end["node"]]["kind"] == "switch" for end in ends):
            found.add(frozenset((end["node"], kinds[end["node"]]["ports"][end["port"]]["number"]) for end in ends))
    return found


def test_links_between_switches_are_found_in_both_directions() -> None:
    discovery = LinkDiscovery("1 s")
    net = ring(discovery)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("2 s")
        links = discovery.links
    assert {frozenset((one.switch, one.port) for one in link) for link in links} == described(net)
    assert len(links) == 2 * len(described(net))
    assert all((there, here) in links for here, there in links)


def test_a_link_that_goes_down_is_forgotten_and_found_again() -> None:
    discovery = LinkDiscovery("1 s")
    net = ring(discovery)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("2 s")
        lab.link("s1", "s3").set(up=False)
        lab.run_until("3 s")
        without = {here.switch + there.switch for here, there in discovery.links}
        lab.link("s1", "s3").set(up=True)
        lab.run_until("6 s")
        again = {here.switch + there.switch for here, there in discovery.links}
    assert without == {"s1s2", "s2s1"}
    assert again == {"s1s2", "s2s1", "s1s3", "s3s1"}


def test_counters_estimate_a_path_that_discovery_has_found() -> None:
    discovery, counters = LinkDiscovery("1 s"), AvailableBandwidth("500 ms")
    net = ring(discovery, counters)
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.start(tn.apps.udp("h1", "h2", rate=f"{4e6 * FULL_FRAMES_PAYLOAD_SHARE:.0f} bit", duration="1 min"))
        lab.start(tn.apps.ping("h2", "h1", count=1))
        lab.run_until("8 s")
        found = discovery.path("10.0.0.1", "10.0.0.2")
        told = counters.estimate(found, since_s=2.0, until_s=7.0)
    assert [link.switch for link in found] == ["s1", "s1", "s3"]
    assert [link.capacity_bps for link in found] == [100e6, 10e6, 100e6]
    assert told.available_bps == pytest.approx(6e6, rel=0.01)


def test_what_is_not_known_is_told() -> None:
    discovery = LinkDiscovery("1 s")
    with ring(discovery).simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("2 s")
        with pytest.raises(BadValue, match=r"no host '10\.0\.0\.9' has been seen"):
            discovery.path("10.0.0.9", "10.0.0.2")


def test_an_interval_below_a_second_is_refused() -> None:
    with pytest.raises(BadValue, match="in seconds"):
        LinkDiscovery("100 ms")


def test_an_advertisement_is_read_as_it_was_written() -> None:
    told = PortAdvertisement(0xABCDEF, 4_000_000, 15)
    assert PortAdvertisement.parse(told.frame("00:00:00:00:00:07")) == told


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    told = PortAdvertisement.parse(b"\x01" * 12 + b"\x88\xcc" + data)
    assert told is None or told.port is not None


@given(st.integers(0, 59), st.integers(0, 255))
def test_a_damaged_advertisement_is_nothing_or_another(at: int, byte: int) -> None:
    frame = bytearray(PortAdvertisement(5, 3, 15).frame("00:00:00:00:00:07"))
    frame[at] = byte
    told = PortAdvertisement.parse(bytes(frame))
    assert told is None or isinstance(told.dpid, int)
