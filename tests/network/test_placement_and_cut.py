"""The description of a network on several machines, and the parts that it is cut into."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from twinnet.network.cut import cut_network
from twinnet.network.placement import placed_nodes
from twinnet.network.topology_file import parse_network
from twinnet.yaml_source import SourceError

_FILE = """
hosts: {h1: , h2: , h3: }
switches: {s1: , s2: }
links:
  - {between: [h1, s1]}
  - {between: [h2, s1]}
  - {between: [h3, s2]}
  - {between: [s1, s2], rate: 10 Mbit, delay: 2 ms, b_to_a: {delay: 3 ms}}
on: {s1: m1, s2: {ssh: user@m2, address: 10.8.0.2}}
"""


def _chain() -> tn.Network:
    return parse_network(_FILE)


def _cut(net: tn.Network) -> Any:
    return cut_network(net.to_spec(), {name: one.name for name, one in placed_nodes(net, net.placement).items()}, 7)


def test_hosts_go_with_their_switch():
    net = _chain()
    placed = placed_nodes(net, net.placement)
    assert {name: one.ssh for name, one in placed.items()} == {
        "h1": "m1",
        "h2": "m1",
        "h3": "user@m2",
        "s1": "m1",
        "s2": "user@m2",
    }
    assert placed["h3"].address == "10.8.0.2" and placed["h1"].address is None


def test_a_host_that_is_named_has_a_machine_of_its_own():
    net = _chain()
    net.place({"s1": "m1", "s2": "m1", "h3": "m3"})
    assert [link.name for link in _cut(net).links] == ["h3 - s2"]


def test_python_and_file_say_the_same():
    net = tn.Network()
    s1, s2 = net.switch("s1"), net.switch("s2")
    net.link(s1, s2, delay="1 ms")
    net.place({"s1": "m1", "s2": {"ssh": "user@m2", "address": "10.8.0.2"}})
    assert net.placement == _chain().placement


def test_each_direction_of_a_cut_link_stands_where_it_is_sent():
    cut = _cut(_chain())
    [link] = cut.links
    assert (link.name, link.machine_a, link.machine_b, link.key) == ("s1 - s2", "m1", "user@m2", 7)
    for machine, way, other, delay_ps in (("m1", "ab", "ba", 2 * 10**9), ("user@m2", "ba", "ab", 3 * 10**9)):
        mine = cut.parts[machine]["links"][cut.numbers[machine][link.index]]
        assert (mine[way]["delay_ps"], mine[way]["rate_bps"]) == (delay_ps, 10**7)
        # What comes out of the tunnel is at the far node at once, or the link would be passed twice.
        assert (mine[other]["delay_ps"], mine[other]["rate_bps"]) == (0, None)
    cut.connect({"m1": "10.8.0.1", "user@m2": "10.8.0.2"}, 4789, {link.index: False})
    ends = [node for part in cut.parts.values() for node in part["nodes"] if node["kind"] == "tunnel"]
    assert [(end["local"], end["remote"], end["tunnel"]["vni"]) for end in ends] == [
        ("10.8.0.1", "10.8.0.2", 7),
        ("10.8.0.2", "10.8.0.1", 7),
    ]
    assert cut.parts["m1"]["elsewhere"] == {"h3": ["10.0.0.3", "fd00::3"]}


def test_every_link_of_a_cut_has_a_key_of_its_own():
    net = tn.Network()
    s1, s2 = net.switch("s1"), net.switch("s2")
    for _ in range(3):
        net.link(s1, s2, delay="1 ms", parallel=True)
    net.place({"s1": "m1", "s2": "m2"})
    cut = cut_network(net.to_spec(), {"s1": "m1", "s2": "m2"}, (1 << 24) - 1)
    assert [link.key for link in cut.links] == [(1 << 24) - 1, 0, 1]
    assert len({link.tunnel for link in cut.links}) == 3


@pytest.mark.parametrize(
    ("on", "words"),
    [
        ("{s1: m1}", "these switches on none: s2"),
        ("{s1: m1, s3: m2}", "no node 's3'"),
        ("{s1: m1, s2: -oProxyCommand=x}", "no machine that ssh can be told of"),
        ("{s1: m1, s2: {address: 10.8.0.2}}", "ssh"),
        ("{s1: m1, s2: {ssh: m2, address: fd00::1}}", "give an IPv4 address"),
        ("{s1: {ssh: m1, address: 10.8.0.1}, s2: {ssh: m1, address: 10.8.0.2}}", "described in another way"),
    ],
)
def test_a_placement_that_cannot_be_is_told_with_its_place(on: str, words: str):
    text = _FILE.replace("{s1: m1, s2: {ssh: user@m2, address: 10.8.0.2}}", on)
    with pytest.raises((SourceError, tn.errors.BadTopology), match=words):
        net = parse_network(text)
        placed_nodes(net, net.placement)


def test_a_host_between_two_machines_must_be_named():
    net = tn.Network()
    s1, s2, router = net.switch("s1"), net.switch("s2"), net.router("r1")
    net.link(router, s1, address_a="10.1.0.1/24")
    net.link(router, s2, address_a="10.2.0.1/24")
    net.place({"s1": "m1", "s2": "m2"})
    with pytest.raises(tn.errors.BadTopology, match="r1 is linked to nodes on m1 and on m2"):
        placed_nodes(net, net.placement)


def test_what_is_bound_to_one_machine_is_refused_with_the_remedy():
    net = _chain()
    net.interface("eth9")
    net.link("eth9", "s1")
    with pytest.raises(tn.errors.NotAvailable, match="eth9 is bound to the machine"):
        _cut(net)


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (tn.control.LearningSwitch, "the controller of s1 runs in this process"),
        ("tcp:127.0.0.1:6653", "every machine takes for itself"),
        ("tcp:localhost", "every machine takes for itself"),
        ("tcp:[::1]:6653", "every machine takes for itself"),
    ],
)
def test_a_controller_that_other_machines_do_not_reach_is_refused(controller: Any, words: str):
    net = _chain()
    net.controller(controller)
    with pytest.raises(tn.errors.NotAvailable, match=words) as refused:
        _cut(net)
    assert "tcp:10.8.0.9:6653" in refused.value.remedy


def test_a_controller_that_all_machines_reach_is_that_of_each_part():
    net = _chain()
    net.controller("tcp:10.8.0.9:6653")
    switches = [node for part in _cut(net).parts.values() for node in part["nodes"] if node["kind"] == "switch"]
    assert [node["controllers"] for node in switches] == [["tcp:10.8.0.9:6653"]] * 2


def test_changes_that_the_description_schedules_wait_until_the_underlay_is_known():
    net = _chain()
    net.at("9 s").link("s1", "s2").set(delay="5 ms")
    assert [part["schedule"] for part in _cut(net).parts.values()] == [[], []]


def test_the_virtual_clock_takes_no_notice_of_machines():
    with _chain().simulate() as lab:
        flow = lab.start(tn.apps.ping("h1", "h3", count=3, interval="10 ms"))
        assert lab.wait([flow])
