"""The networks and the traffic that are simulated here and with ns-3: the same pairs, rates and moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import twinnet as tn

__all__ = [
    "Planned",
    "Scenario",
    "dumbbell",
    "fat_tree",
    "fat_tree_delay_s",
    "fat_tree_hosts",
    "flows_of_two",
    "line_share",
    "partner_of",
    "tree",
    "udp_dumbbell_delay_s",
]

PAIRS = 10
UDP_PAYLOAD = 1000
DUMBBELL_PACKETS_PER_SECOND = 1055
"""Of each of the ten flows: together 90 % of 100 Mbit/s, with Ethernet's framing."""
TCP_STAGGER_PS = 100_000_000_000
FAT_TREE_PACKETS_PER_SECOND = 125
PS_PER_SECOND = 1_000_000_000_000
SUBNET_HOSTS = 200
LEAST_SUBNETS = 5
"""Hosts behind one access switch of the tree."""

_HEADERS = 14 + 20 + 8
_PREAMBLE_AND_FCS = 8 + 4
_MASK = (1 << 64) - 1
_FIRST_HOST = 16
"""The last octet of a fat tree's first host in each subnet: a multiple of any number of hosts that it can have."""


@dataclass(frozen=True)
class Planned:
    """Traffic, and the moment at which it begins."""

    traffic: tn.apps.Flow
    at_ps: int


@dataclass(frozen=True)
class Scenario:
    """A network and what is sent over it until the virtual time `seconds`."""

    network: tn.Network
    traffic: Sequence[Planned]
    seconds: float


def dumbbell(traffic: str, seconds: float, stagger_ps: int = TCP_STAGGER_PS) -> Scenario:
    """Return ten hosts that send to ten others over two switches and one bottleneck of 100 Mbit/s and 5 ms, by ``udp``
    or by ``tcp``, whose flows begin `stagger_ps` after each other."""
    net = tn.Network()
    left = net.switch("s1", fail_mode="secure", flows=dumbbell_flows(0))
    right = net.switch("s2", fail_mode="secure", flows=dumbbell_flows(1))
    net.link(left, right, rate="100 Mbit", delay="5 ms", queue=tn.qos.Fifo(limit_frames=100))
    plan: list[Planned] = []
    lasting = tn.units.Picoseconds(round(seconds * PS_PER_SECOND))
    for number in range(1, PAIRS + 1):
        sender = net.host(f"a{number}", ip=f"10.0.0.{number}/8", ip6=False)
        receiver = net.host(f"b{number}", ip=f"10.0.1.{number}/8", ip6=False)
        net.link(sender, left, rate="1 Gbit")
        net.link(receiver, right, rate="1 Gbit")
        if traffic == "udp":
            flow = tn.apps.udp(
                sender.name,
                receiver.name,
                packets_per_second=DUMBBELL_PACKETS_PER_SECOND,
                payload=tn.units.Bytes(UDP_PAYLOAD),
                duration=lasting,
            )
            at_ps = round((number - 1) * PS_PER_SECOND / DUMBBELL_PACKETS_PER_SECOND / PAIRS)
        else:
            flow = tn.apps.tcp_bulk(sender.name, receiver.name, duration=lasting, congestion_control="cubic")
            at_ps = (number - 1) * stagger_ps
        plan.append(Planned(flow, at_ps))
    return Scenario(net, plan, seconds)


def dumbbell_flows(side: int) -> list[str]:
    """Return the flows of the switch on the left (0) or right (1): to its own hosts, and over the bottleneck."""
    own = [f"ip,nw_dst=10.0.{side}.{number},actions=output:{number + 1}" for number in range(1, PAIRS + 1)]
    return [*own, f"ip,nw_dst=10.0.{1 - side}.0/24,actions=output:1"]


def udp_dumbbell_delay_s() -> float:
    """Return what the links alone take for a datagram over the dumbbell: three transmissions, and 5 ms.

    A frame has arrived with its last bit, so the gap that follows it does not count. The flows' moments are spread such
    that no datagram meets another.
    """
    bits = 8 * (UDP_PAYLOAD + _HEADERS + _PREAMBLE_AND_FCS)
    return 2 * bits / 1e9 + bits / 1e8 + 0.005


def line_share(goodput_bps: float, framing_bytes: int) -> float:
    """Return `goodput_bps` as a share of what TCP can carry over the bottleneck when each segment of 1448 bytes is a
    packet of 1500 and costs `framing_bytes` more on the wire."""
    return goodput_bps / (100e6 * 1448 / (1500 + framing_bytes))


def fat_tree_hosts(k: int) -> int:
    """Return how many hosts a fat tree of `k`-port switches has."""
    return k**3 // 4


def fat_tree_delay_s(mean_hops: float, delay_s: float = 0.0) -> float:
    """Return what `mean_hops` links of 1 Gbit/s take for a datagram."""
    return mean_hops * (8 * (UDP_PAYLOAD + _HEADERS + _PREAMBLE_AND_FCS) / 1e9 + delay_s)


def mixed(value: int) -> int:
    """Return the output of SplitMix64 for `value`: the same number in every language."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def partner_of(host: int, hosts: int) -> int:
    """Return to whom `host` of `hosts` sends: some other."""
    return (host + 1 + mixed(host) % (hosts - 1)) % hosts


def fat_tree(k: int, seconds: float, delay: str = "0 s") -> Scenario:
    """Return a fat tree of `k`-port switches (`k` a power of two from 4) whose hosts send 1 Mbit/s each to another.

    M. Al-Fares, A. Loukissas, A. Vahdat, *A scalable, commodity data center network architecture*, SIGCOMM 2008. Each
    destination has one way down from one core; the cores have equally many destinations.
    """
    half = k // 2
    net = tn.Network()
    line = {"rate": "1 Gbit", "delay": delay}
    cores = [net.switch(f"c{number}", fail_mode="secure", flows=core_flows(k)) for number in range(half * half)]
    names: list[str] = []
    for pod in range(k):
        aggregations = [
            net.switch(f"g{pod}x{place}", fail_mode="secure", flows=aggregation_flows(k, pod)) for place in range(half)
        ]
        for edge in range(half):
            switch = net.switch(f"e{pod}x{edge}", fail_mode="secure", flows=edge_flows(k, pod, edge))
            for place in range(half):
                names.append(f"h{len(names)}")
                net.link(net.host(names[-1], ip=f"{fat_tree_address(pod, edge, place)}/8", ip6=False), switch, **line)
            for aggregation in aggregations:
                net.link(switch, aggregation, **line)
        for place, aggregation in enumerate(aggregations):
            for core in cores[place * half : (place + 1) * half]:
                net.link(aggregation, core, **line)
    return Scenario(net, list(_each_to_another(names, FAT_TREE_PACKETS_PER_SECOND, seconds)), seconds)


def fat_tree_address(pod: int, edge: int, place: int) -> str:
    """Return the address of a fat tree's host."""
    return f"10.{pod}.{edge}.{_FIRST_HOST + place}"


def edge_flows(k: int, pod: int, edge: int) -> list[str]:
    """Return the flows of an edge switch: its hosts at ports 1 to k/2, and up by the destination's place."""
    half = k // 2
    down = [
        f"priority=2,ip,nw_dst={fat_tree_address(pod, edge, place)},actions=output:{place + 1}" for place in range(half)
    ]
    up = [
        f"priority=1,ip,nw_dst=0.0.0.{place}/0.0.0.{half - 1},actions=output:{half + place + 1}"
        for place in range(half)
    ]
    return down + up


def aggregation_flows(k: int, pod: int) -> list[str]:
    """Return the flows of an aggregation switch: its pod's edges at ports 1 to k/2, up by the destination's edge."""
    half = k // 2
    down = [f"priority=2,ip,nw_dst=10.{pod}.{edge}.0/24,actions=output:{edge + 1}" for edge in range(half)]
    up = [
        f"priority=1,ip,nw_dst=0.0.{edge}.0/0.0.{half - 1}.0,actions=output:{half + edge + 1}" for edge in range(half)
    ]
    return down + up


def core_flows(k: int) -> list[str]:
    """Return the flows of a core switch: pod P is behind port P + 1."""
    return [f"ip,nw_dst=10.{pod}.0.0/16,actions=output:{pod + 1}" for pod in range(k)]


def tree(hosts: int, packets_per_second: float, seconds: float) -> Scenario:
    """Return `hosts` hosts in at least five subnets of up to 200, each behind a switch and a router, the routers behind
    others with prefix routes; every host sends to some other. Small networks have small subnets, so that packets take
    the same ways in them as in large ones: hosts, switches and routers do not cost the same."""
    net = tn.Network()
    each = min(SUBNET_HOSTS, max(1, -(-hosts // LEAST_SUBNETS)))
    subnets = -(-hosts // each)
    root = net.router("root", routes=[(f"10.{block}.0.0/16", f"172.31.{block}.2") for block in range(_blocks(subnets))])
    names: list[str] = []
    for subnet in range(subnets):
        block, place = divmod(subnet, _SUBNETS_OF_A_BLOCK)
        if place == 0:
            inside = [
                (f"10.{block}.{one}.0/24", f"172.16.{block}.{4 * one + 2}")
                for one in range(min(_SUBNETS_OF_A_BLOCK, subnets - subnet))
            ]
            middle = net.router(f"m{block}", routes=[("default", f"172.31.{block}.1"), *inside])
            net.link(
                root,
                middle,
                rate="100 Gbit",
                delay="1 ms",
                address_a=f"172.31.{block}.1/30",
                address_b=f"172.31.{block}.2/30",
            )
        gateway = f"10.{block}.{place}.254"
        router = net.router(f"r{subnet}", routes=[("default", f"172.16.{block}.{4 * place + 1}")])
        net.link(
            middle,
            router,
            rate="40 Gbit",
            delay="100 us",
            address_a=f"172.16.{block}.{4 * place + 1}/30",
            address_b=f"172.16.{block}.{4 * place + 2}/30",
        )
        members = min(each, hosts - subnet * each)
        flows = [f"ip,nw_dst=10.{block}.{place}.{host + 1},actions=output:{host + 2}" for host in range(members)]
        switch = net.switch(f"s{subnet}", fail_mode="secure", flows=["priority=1,ip,actions=output:1", *flows])
        net.link(router, switch, rate="10 Gbit", address_a=f"{gateway}/24")
        for host in range(members):
            names.append(f"h{len(names)}")
            address = f"10.{block}.{place}.{host + 1}/24"
            net.link(net.host(names[-1], ip=address, ip6=False, gateway=gateway), switch, rate="1 Gbit", delay="10 us")
    return Scenario(net, list(_each_to_another(names, packets_per_second, seconds)), seconds)


def flows_of_two(protocol: str, flows: int, seconds: float) -> Scenario:
    """Return two hosts at one switch with `flows` flows of ``udp`` (ten datagrams a second) or ``tcp`` between them."""
    net = tn.Network()
    switch = net.switch("s1")
    for name in ("a", "b"):
        net.link(net.host(name, ip6=False), switch, rate="1 Gbit", delay="1 ms")
    lasting = tn.units.Picoseconds(round(seconds * PS_PER_SECOND))
    plan: list[Planned] = []
    for number in range(flows):
        if protocol == "udp":
            flow = tn.apps.udp("a", "b", packets_per_second=10, payload=tn.units.Bytes(UDP_PAYLOAD), duration=lasting)
        else:
            flow = tn.apps.tcp_bulk("a", "b", duration=lasting)
        plan.append(Planned(flow, round(number * 0.1 * PS_PER_SECOND / flows)))
    return Scenario(net, plan, seconds)


_SUBNETS_OF_A_BLOCK = 60
"""Routers below one of the middle: their links of /30 fit into one /24."""


def _blocks(subnets: int) -> int:
    return -(-subnets // _SUBNETS_OF_A_BLOCK)


def _each_to_another(names: Sequence[str], packets_per_second: float, seconds: float) -> Iterator[Planned]:
    """Yield the flow of each host to its partner, begun such that their datagrams are spread over the interval."""
    interval_ps = PS_PER_SECOND / packets_per_second
    lasting = tn.units.Picoseconds(round(seconds * PS_PER_SECOND))
    for number, name in enumerate(names):
        flow = tn.apps.udp(
            name,
            names[partner_of(number, len(names))],
            packets_per_second=packets_per_second,
            payload=tn.units.Bytes(UDP_PAYLOAD),
            duration=lasting,
        )
        yield Planned(flow, round(number * interval_ps / len(names)))
