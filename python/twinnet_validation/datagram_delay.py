"""The delay of single datagrams over links, switches and routers, added up by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import twinnet as tn
from twinnet.units import BitsPerSecond, Bytes, Picoseconds

from twinnet_validation.law import Law, Row

__all__ = ["LAW", "Hop", "expected_ps"]

_HEADERS = 14 + 20 + 8
_PREAMBLE_AND_FCS = 8 + 4
"""On the wire before a frame has arrived; the gap of 12 bytes behind it is not waited for."""


@dataclass(frozen=True)
class Hop:
    """A link: bits per second and picoseconds."""

    rate_bps: int
    delay_ps: int


FIVE_LINKS = (
    Hop(100_000_000, 1_000_000_001),
    Hop(33_333_333, 7),
    Hop(10_000_019, 2_345_678_912),
    Hop(1_000_000_000, 50_000_003),
    Hop(64_000, 999_999_999),
)
"""Rates that divide nothing, so that each link rounds for itself."""


def expected_ps(hops: Sequence[Hop], payload: int) -> int:
    """Return the delay of a lone datagram: each link's time for the frame, to the nearest picosecond, and its delay."""
    wire_bits = (max(payload + _HEADERS, 60) + _PREAMBLE_AND_FCS) * 8
    return sum((2 * wire_bits * 10**12 + hop.rate_bps) // (2 * hop.rate_bps) + hop.delay_ps for hop in hops)


def switched(hops: Sequence[Hop]) -> tn.Network:
    """Return a row of switches between two hosts."""
    network = tn.Network()
    nodes = [network.host("h1"), *(network.switch(f"s{n}") for n in range(1, len(hops))), network.host("h2")]
    for hop, near, far in zip(hops, nodes[:-1], nodes[1:], strict=True):
        network.link(near, far, rate=BitsPerSecond(hop.rate_bps), delay=Picoseconds(hop.delay_ps))
    return network


def routed(hops: Sequence[Hop]) -> tn.Network:
    """Return two hosts with a router in the middle and a switch on each side: four links."""
    network = tn.Network()
    near, far = (network.host(f"h{n}", ip=f"10.{n}.0.10/24", ip6=False, gateway=f"10.{n}.0.1") for n in (1, 2))
    router, left, right = network.router("r1"), network.switch("s1"), network.switch("s2")
    pairs = ((near, left), (left, router), (router, right), (right, far))
    addresses: tuple[dict[str, Any], ...] = ({}, {"address_b": "10.1.0.1/24"}, {"address_a": "10.2.0.1/24"}, {})
    for hop, (a, b), address in zip(hops, pairs, addresses, strict=True):
        network.link(a, b, rate=BitsPerSecond(hop.rate_bps), delay=Picoseconds(hop.delay_ps), **address)
    return network


def measured_ps(network: tn.Network, payload: int, packets: int) -> tuple[int, int]:
    """Return the least and the largest delay of datagrams that go one by one."""
    with network.simulate(static_neighbours=True) as lab:
        flow = lab.start(
            tn.apps.udp("h1", "h2", packets_per_second=1, payload=Bytes(payload), packets=packets),
            # Learning switches flood the first; nothing else is under way, so its delay is that of the others.
            at="1 s",
        )
        lab.run_until(f"{packets + 3} s")
        delay = flow.report().delay
    if delay is None or delay.count != packets:
        return 0, 0
    return round(delay.min), round(delay.max)


def _measure(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    packets = 5 if quick else 50
    for name, network, hops in (
        ("five links, four switches", switched(FIVE_LINKS), FIVE_LINKS),
        ("four links, two switches, a router", routed(FIVE_LINKS[:4]), FIVE_LINKS[:4]),
    ):
        for payload in (16, 1472):
            expected = expected_ps(hops, payload)
            least, largest = measured_ps(network, payload, packets)
            rows.append(
                Row(
                    f"{name}, {payload} B, {packets} datagrams",
                    "delay",
                    "ps",
                    expected,
                    largest,
                    "0, for every datagram",
                    least == largest == expected,
                )
            )
    return rows


LAW = Law(
    "datagram-delay",
    "Delays add up",
    "Store and forward: every link adds the time that the frame's bits take at its rate, and its propagation; switches "
    "and routers of this model take no time.",
    "IEEE 802.3 for what is on the wire; Kurose and Ross, Computer Networking, 1.4",
    _measure,
)
