"""The links that the spanning tree of stand-alone switches leaves out, and a network without IPv6."""

from __future__ import annotations

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet.network.spanning_tree import unused_links
from twinnet.network.topology_file import parse_network


def triangle(**settings: object) -> tn.Network:
    net = tn.Network()
    for name in ("s1", "s2", "s3"):
        net.switch(name, **settings)  # type: ignore[arg-type]
    for a, b in (("s1", "s2"), ("s2", "s3"), ("s1", "s3")):
        net.link(a, b)
    for number in (1, 2, 3):
        net.link(net.host(f"h{number}"), f"s{number}")
    return net


def names(net: tn.Network) -> list[tuple[str, str]]:
    return [(link.a.name, link.b.name) for link in unused_links(net)]


def test_a_triangle_leaves_out_the_link_farthest_from_the_first_switch() -> None:
    assert names(triangle()) == [("s2-eth2", "s3-eth1")]


def test_links_that_are_down_and_switches_that_do_not_learn_leave_nothing_out() -> None:
    down = triangle()
    down.links[0].up = False
    led = triangle()
    led.controller("tcp:127.0.0.1:6653")
    for net in (down, led, triangle(fail_mode="secure"), triangle(flows=["actions=flood"])):
        assert names(net) == []


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_the_fabric_leaves_out_the_same_links() -> None:
    net = triangle()
    unused = {port for link in unused_links(net) for port in (link.a.name, link.b.name)}
    with net.emulate() as lab:
        lab.wait([lab.start(tn.apps.ping(a, b, count=2, interval="20 ms")) for a, b in (("h1", "h2"), ("h2", "h3"))])
        frames = {row["port"]: row["counters"]["frames"] for row in lab.ports()}
    assert all(frames[port] == 0 for port in unused)
    assert frames["s1-eth1"] > 0


def test_without_ip6_addresses_routes_and_kernels_are_ip4_alone() -> None:
    net = tn.templates.single(2)
    net.without_ip6()
    assert [host.ip6 for host in net.hosts] == [None, None]
    assert all(":" not in one for host in net.hosts for port in host.ports for one in port.addresses)
    assert net.hosts[0].sysctls["net.ipv6.conf.all.disable_ipv6"] == "1"
    again = parse_network("template: single:2\nip6: false\n")
    assert again.hosts[1].ip6 is None
    assert parse_network("template: single:2\n").hosts[1].ip6 == "fd00::2"


@pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
def test_a_lab_without_ip6_sends_no_frame_of_it_and_names_mean_ip4() -> None:
    net = tn.templates.single(2)
    net.without_ip6()
    with net.emulate() as lab:
        told = lab["h1"].run("ping -c1 -W2 h2 && cat /proc/net/if_inet6 && ip -6 addr", shell=True).stdout
        assert "PING h2 (10.0.0.2)" in told
        assert "inet6" not in told
        frames = {row["port"]: row["counters"]["frames"] for row in lab.ports()}
    # An ARP question, the echo request, and at most what ARP verifies later.
    assert frames["h1-eth0"] <= 4


def test_models_of_hosts_without_ip6_have_none_of_its_addresses_and_routes() -> None:
    net = tn.templates.linear(2)
    given = tn.Network()
    six = given.host("h1", sysctls={"net.ipv6.conf.all.disable_ipv6": 1}), given.host("h2")
    given.link(*six)
    net.without_ip6()
    with net.simulate() as lab:
        ping = lab.start(tn.apps.ping("h1", "h2", count=2))
        lab.wait([ping])
        assert ping.report().lost == 0
        # Two questions of ARP at most, and two echo requests.
        assert {row["port"]: row["counters"]["frames"] for row in lab.ports()}["h1-eth0"] <= 4
    with given.simulate() as lab:
        pings = [lab.start(tn.apps.ping("h2", to, count=2, interval="10 ms")) for to in ("10.0.0.1", "fd00::1")]
        lab.wait(pings)
        assert [ping.report().lost for ping in pings] == [0, 2]
