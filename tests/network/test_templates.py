"""Topologies with a name: their sizes, their wiring, their limits."""

from __future__ import annotations

import pytest
import twinnet as tn
from twinnet.errors import BadTemplate


@pytest.mark.parametrize(
    ("text", "hosts", "switches", "links"),
    [
        ("single", 2, 1, 2),
        ("single:4", 4, 1, 4),
        ("single,4", 4, 1, 4),
        ("linear:3", 3, 3, 5),
        ("linear:3,2", 6, 3, 8),
        ("tree:2,3", 9, 4, 12),
        ("tree,4,4", 256, 85, 340),
        ("dumbbell:2,3", 5, 2, 6),
        ("fat-tree:4", 16, 20, 48),
        ("fat_tree:4", 16, 20, 48),
        ("mesh:4", 4, 4, 10),
    ],
)
def test_sizes(text: str, hosts: int, switches: int, links: int) -> None:
    net = tn.templates.from_text(text)
    assert (len(net.hosts), len(net.switches), len(net.links)) == (hosts, switches, links)


@pytest.mark.parametrize("name", ["single:3", "linear:3,2", "tree:3,2", "dumbbell", "fat-tree:4", "mesh:4"])
def test_every_topology_is_connected_and_hosts_are_numbered(name: str) -> None:
    net = tn.templates.from_text(name)
    neighbours: dict[str, set[str]] = {node: set() for node in net.nodes}
    for link in net.links:
        neighbours[link.a.node].add(link.b.node)
        neighbours[link.b.node].add(link.a.node)
    reached, frontier = {"s1"}, ["s1"]
    while frontier:
        new = neighbours[frontier.pop()] - reached
        reached |= new
        frontier += new
    assert reached == set(net.nodes)
    assert [host.name for host in net.hosts] == [f"h{n}" for n in range(1, len(net.hosts) + 1)]


def test_a_fat_tree_uses_k_ports_of_every_switch() -> None:
    net = tn.templates.fat_tree(4)
    assert {len(switch.ports) for switch in net.switches} == {4}


def test_link_settings_reach_every_link_and_the_bottleneck_its_own() -> None:
    net = tn.templates.dumbbell(2, rate="1 Gbit", bottleneck={"rate": "10 Mbit", "delay": "20 ms"})
    assert [link.ab["rate_bps"] for link in net.links] == [10**9] * 4 + [10**7]
    assert net.find_link("s1", "s2").ab["delay_ps"] == 20_000_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("singel:4", "did you mean 'single'?"),
        ("single:x", "'x' is not a whole number"),
        ("single:4,5", "write single:hosts"),
        ("single:0", "allowed are whole numbers from 1"),
        ("tree:64,64", "at most 20000"),
        ("tree:1,99999999", "at most 20000"),
        ("linear:99999", "at most 20000"),
        ("fat-tree:5", "it must be even"),
        ("mesh:300", "at most 200"),
        ("", "there is no topology template ''"),
    ],
)
def test_wrong_templates_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadTemplate) as caught:
        tn.templates.from_text(text)
    assert message in str(caught.value)
