"""The same policy on our switches (virtual clock) and on Open vSwitch's kernel datapath: the same shares."""

from __future__ import annotations

import functools
from typing import Literal

import pytest
import twinnet as tn
from open_vswitch_here import needs_kernel, needs_ovs
from policy_networks import Classes
from twinnet.network import Network
from twinnet.policies import Enforcement, Match, TrafficClass, compile_policy
from twinnet.traffic import apps

ON_OPEN_VSWITCH = (needs_ovs, needs_kernel, pytest.mark.quiet)

SCHEDULER_BPS = 1e6
"""Little, so that a virtual machine with one processor keeps every class backlogged."""
SHARES = {"a": 0.5, "b": 0.3, "c": 0.15}
PORTS = {"a": 6001, "b": 6002, "c": 6003}
SECONDS = 20
_FRAME_OVER_PAYLOAD = 1042 / 1000
"""A payload of 1000 bytes is a frame of 1042: UDP 8, IPv4 20, Ethernet 14. Linux counts these bytes, and so do we."""
_TOLERANCE = 0.02
"""Of each class's rate. Our switches promise 1 %, and have it on the virtual clock. The rest is for the other side: a
sink counts from its first packet to its last, so a frame more or less is 0.3 % of the smallest class (360 frames in
20 s); Linux's HTB lets a class send a burst of 1.6 kB at once beyond its rate, 0.5 % of that class; and the virtual
machine's interrupts are late by milliseconds, of which its tokens hold 13 ms and more."""


def network(kind: Literal["own", "ovs"]) -> Network:
    net = Network()
    switch = net.switch("s1", kind=kind, datapath="system" if kind == "ovs" else None)
    for number in range(1, 4):
        net.link(net.host(f"h{number}"), switch, rate="10 Mbit")
    return net


@functools.cache
def rates(kind: Literal["own", "ovs"]) -> dict[str, float]:
    """Bits of frames a second that h3 gets of each class, while each is offered 0.7 Mbit/s of payload."""
    net = network(kind)
    policy = Classes(
        *(
            TrafficClass(name, [Match("udp", destination_port=PORTS[name])], minimum=share, maximum=share)
            for name, share in SHARES.items()
        )
    )
    compiled = compile_policy(net, policy, Enforcement(["s1-eth3"], f"{SCHEDULER_BPS / 1e6:g} Mbit"))
    compiled.write_into(net)
    with net.simulate(seed=1) if kind == "own" else net.emulate() as lab:
        flows: dict[str, tn.AppHandle] = {}
        for name, port in PORTS.items():
            source = "h1" if name == "a" else "h2"
            flow = apps.udp(source, "h3", rate="700 kbit", duration=f"{SECONDS} s", port=port, payload="1000 B")
            flows[name] = lab.start(flow)
        lab.run_until(f"{SECONDS + 4} s")
        return {name: one.report().throughput_bps * _FRAME_OVER_PAYLOAD for name, one in flows.items()}


@pytest.mark.parametrize(("kind", "tolerance"), [("own", 0.01), pytest.param("ovs", _TOLERANCE, marks=ON_OPEN_VSWITCH)])
def test_backlogged_classes_get_their_rates(kind: Literal["own", "ovs"], tolerance: float) -> None:
    found = rates(kind)
    print(kind, {name: f"{rate / 1e6:.4f} Mbit/s" for name, rate in found.items()})
    for name, share in SHARES.items():
        assert found[name] == pytest.approx(share * SCHEDULER_BPS, rel=tolerance), found


@needs_ovs
@needs_kernel
@pytest.mark.quiet
def test_both_give_the_same_shares() -> None:
    ours, theirs = rates("own"), rates("ovs")
    for name in SHARES:
        assert theirs[name] == pytest.approx(ours[name], rel=_TOLERANCE)
