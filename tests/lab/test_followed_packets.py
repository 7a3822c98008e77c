"""The way of a packet, worked out: what is told is what a packet that is sent then does."""

from __future__ import annotations

import re

import pytest
import twinnet as tn
from twinnet.errors import BadValue, UnknownNode


def routed() -> tn.Network:
    net = tn.Network()
    net.host("h1", ip="10.0.0.1/24", gateway="10.0.0.254")
    net.host("h2", ip="10.0.1.1/24", gateway="10.0.1.254")
    net.switch("s1", fail_mode="secure")
    net.router("r1")
    net.link("h1", "s1", rate="10 Mbit", delay="1 ms")
    net.link("s1", "r1", rate="10 Mbit", address_b="10.0.0.254/24")
    net.link("r1", "h2", rate="2 Mbit", delay="5 ms", address_a="10.0.1.254/24")
    net.switches["s1"].flows = [
        "priority=9,udp,tp_dst=5001,actions=mod_nw_tos:184,output:2",
        "priority=5,arp,actions=flood",
        "priority=5,icmp,in_port=1,actions=output:2",
        "priority=5,icmp,in_port=2,actions=output:1",
    ]
    return net


def test_a_packet_is_followed_through_flows_routes_and_lines() -> None:
    with routed().simulate() as lab:
        way = lab.follow("h1", "h2")
        assert way.arrives and way.whole and way.destination == "10.0.1.1"
        assert [(hop.node, hop.interface, hop.depth) for hop in way.hops] == [
            ("h1", "", 0), ("s1", "s1-eth1", 1), ("r1", "r1-eth0", 2), ("h2", "h2-eth0", 3)
        ]  # fmt: skip
        said = [[str(step) for step in hop.steps] for hop in way.hops]
        assert said[0] == ["0.0.0.0/0 via 10.0.0.254 by h1-eth0"]
        assert said[1][0].startswith("table 0: cookie=0x0, table=0, priority=9,udp,tp_dst=5001")
        assert said[1][1:] == ["changed: nw_tos=184"]
        assert said[2:] == [["10.0.1.0/24 is at r1-eth1"], ["arrived"]]
        # 64 bytes with the headers of UDP, IPv4 and Ethernet, and 24 bytes of framing, over 2 Mbit/s.
        slow = way.hops[2].exits[0]
        assert (slow.sends_ps, slow.delay_ps, slow.waits_ps) == ((64 + 42 + 24) * 4 * 10**6, 5 * 10**9, 0)
        assert str(way).splitlines()[-1] == "it arrives"
        counters = [int(flow.split("n_packets=")[1].split(",")[0]) for flow in lab.switch("s1").dump_flows()]
        assert counters == [0] * 4, "nothing was counted"


def test_where_a_packet_ends_is_said_with_the_reason() -> None:
    with routed().simulate() as lab:
        way = lab.follow("h1", "h2", "tcp", port=80)
        assert not way.arrives
        assert [str(step) for step in way.hops[-1].steps] == ["table 0: no flow matches", "dropped: no_flow"]
        assert [str(step) for step in lab.follow("h1", "10.9.9.9").hops[-1].steps] == ["dropped: no route to 10.9.9.9"]
        nobody = [str(step) for step in lab.follow("h1", "10.0.1.77").hops[-1].steps]
        assert nobody == ["10.0.1.0/24 is at r1-eth1", "dropped: nobody has the address 10.0.1.77"]
        lab.link("r1", "h2").set(up=False)
        way = lab.follow("h1", "h2")
        assert not way.arrives and str(way.hops[-1].exits[0]) == "r1-eth1 to h2-eth0: the link is down"


def test_a_flood_is_followed_to_all_its_ends_and_a_queue_is_waited_for() -> None:
    with tn.templates.single(3, rate="1 Mbit").simulate() as lab:
        before = lab.follow("h1", "h3", "icmp")
        assert [hop.node for hop in before.hops] == ["h1", "s1", "h2", "h3"] and before.arrives
        assert str(before.hops[2].steps[0]) == "dropped: it is for another station"
        for sender, receiver in (("h1", "h3"), ("h2", "h3"), ("h3", "h1")):
            lab.start(tn.apps.udp(sender, receiver, rate="1 Mbit", duration="1 s"))
        lab.run_until("500 ms")
        after = lab.follow("h1", "h3", "icmp")
        assert [hop.node for hop in after.hops] == ["h1", "s1", "h3"], "the switch has learnt"
        waits = after.hops[1].exits[0]
        assert waits.frames > 10 and waits.waits_ps > 100 * 10**9
        assert re.search(r"waits [0-9.]+ ms behind [0-9]+ frames", str(after))


def test_a_loop_ends() -> None:
    net = tn.Network()
    for name in ("h1", "h2"):
        net.host(name)
    for name in ("s1", "s2"):
        net.switch(name, fail_mode="secure", flows=["in_port=1,actions=output:2", "in_port=2,actions=output:2"])
    net.link("h1", "s1")
    net.link("h2", "s2")
    net.link("s1", "s2")
    net.switches["s1"].flows = ["actions=output:2"]
    net.switches["s2"].flows = ["actions=in_port"]
    with net.simulate() as lab:
        way = lab.follow("h1", "h2")
        assert not way.arrives and str(way.hops[-1].steps[-1]) == "dropped: to_ingress"
        lab.switch("s1").delete_flows()
        lab.switch("s1").add_flow("in_port=1,actions=output:2")
        lab.switch("s1").add_flow("in_port=2,actions=in_port")
        way = lab.follow("h1", "h2")
        assert not way.arrives and str(way.hops[-1].steps[-1]) == "dropped: a loop"


def test_what_is_sent_goes_where_it_was_said_to_go() -> None:
    """The ports that a ping's request leaves by count one frame each; no others do."""
    with routed().simulate() as lab:
        lab.wait([lab.start(tn.apps.ping("h1", "h2", count=1))])
        before = {row["port"]: row["counters"]["frames"] for row in lab.ports()}
        request = {one.interface for hop in lab.follow("h1", "h2", "icmp").hops for one in hop.exits}
        reply = {one.interface for hop in lab.follow("h2", "h1", "icmp").hops for one in hop.exits}
        lab.wait([lab.start(tn.apps.ping("h1", "h2", count=1))])
        sent = {row["port"] for row in lab.ports() if row["counters"]["frames"] > before[row["port"]]}
        assert sent == request | reply and len(sent) == 6


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("h1", "h2", "sctp"), BadValue),
        (("h9", "h2"), UnknownNode),
        (("h1", "h9"), UnknownNode),
        (("s1", "h1"), UnknownNode),
    ],
)
def test_what_cannot_be_followed_is_refused(arguments: tuple[str, ...], error: type[Exception]) -> None:
    with tn.templates.single(2).simulate() as lab, pytest.raises(error):
        lab.follow(*arguments)


def test_values_out_of_range_are_refused() -> None:
    with tn.templates.single(2).simulate() as lab:
        for port, size in ((65536, 64), (-1, 64), (5001, 9001)):
            with pytest.raises(BadValue):
                lab.follow("h1", "h2", port=port, size=size)
        assert lab.follow("h1", "h2", "tcp", ip6=True).destination == "fd00::2"
