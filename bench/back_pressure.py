"""The round trip that one TCP flow makes for itself over its own slow access link."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import twinnet as tn

from bench.figure import Figure
from bench.line_rate import htb_as_mininet
from bench.machine import missing
from bench.quiet import Quiet
from bench.rounds import SiteFactory, rounds
from bench.sites import kernel_site, lab_site
from bench.tcp_flow import tcp_flow

TITLE = "Back-pressure: one CUBIC flow over its own 10 Mbit/s access link"
MEASURES = ("bench/back_pressure.py", "crates/fabric", "crates/linux", "crates/queue")

_DEFAULTS = "kernel HTB, defaults"
_MININET = "HTB as Mininet"


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    if absent := missing("iperf3"):
        yield Figure("round trip", "", [], note=absent)
        return
    seconds, repetitions = (2, 1) if quick else (5, 3)
    sites: dict[str, SiteFactory] = {"ours": lambda: lab_site("ours", access_network())}
    if missing("kernel") is None:
        # What `tc class add ... htb rate 10mbit` gives when nothing more is said.
        default = [
            "qdisc add dev DEV root handle 1: htb default 1",
            "class add dev DEV parent 1: classid 1:1 htb rate 10mbit",
        ]
        sites[_DEFAULTS] = lambda: kernel_site(_DEFAULTS, default)
        sites[_MININET] = lambda: kernel_site(_MININET, htb_as_mininet(10_000_000))
    peers = rounds(sites, repetitions, quiet, lambda site: tcp_flow(site, seconds))
    ours = peers.pop("ours")
    rtt = {name: [flow.rtt_us / 1000 for flow in flows] for name, flows in peers.items()}
    ours_rtt = [flow.rtt_us / 1000 for flow in ours]
    met = median(ours_rtt) < median(rtt[_DEFAULTS]) if rtt else None
    strain = median(ours_rtt) / median(rtt[_DEFAULTS]) if rtt else None
    yield Figure("mean round trip", "ms", ours_rtt, rtt, "below the kernel's HTB with defaults", met, strain=strain)
    yield Figure(
        "throughput meanwhile",
        "Mbit/s",
        [flow.received_bps / 1e6 for flow in ours],
        {name: [flow.received_bps / 1e6 for flow in flows] for name, flows in peers.items()},
    )


def access_network() -> tn.Network:
    """Return two hosts on a switch, the sender's link 10 Mbit/s."""
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch, rate="10 Mbit")
    net.link(net.host("h2"), switch)
    return net
