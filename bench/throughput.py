"""One TCP flow as fast as it goes, and the ping through one switch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import twinnet as tn
from twinnet.network import templates

from bench.figure import Figure
from bench.machine import missing
from bench.quiet import Quiet
from bench.rounds import SiteFactory, rounds
from bench.sites import Site, bare_loop_site, lab_site, switch_site
from bench.tcp_flow import tcp_flow

TITLE = "One TCP flow without rate limit, and ping"
MEASURES = ("bench/throughput.py", "crates/fabric", "crates/linux", "crates/queue", "crates/switch")

SINGLE_TARGET_GBPS = 10.0
PING_TARGET_US = 60.0
_PACKET_SOCKETS = "veth + packet socket"


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    if absent := missing("iperf3") or missing("ping"):
        yield Figure("one TCP flow, ping", "", [], note=absent)
        return
    seconds, repetitions, pings = (1, 1, 200) if quick else (3, 5, 1000)
    sites: dict[str, SiteFactory] = {
        "ours": lambda: lab_site("ours", templates.single(2)),
        _PACKET_SOCKETS: lambda: lab_site(_PACKET_SOCKETS, templates.single(2), interface="veth"),
        "ten": lambda: lab_site("ten", ten_switches()),
    }
    if missing("ovs") is None:
        sites["OVS user space"] = lambda: switch_site("OVS user space")
    if missing("bare") is None:
        sites["bare loop"] = lambda: bare_loop_site("bare loop", 600)
    gbps = rounds(sites, repetitions, quiet, lambda site: tcp_flow(site, seconds).received_bps / 1e9)
    rtts = rounds(sites, repetitions, quiet, lambda site: median(round_trips_us(site, pings)))
    ten = gbps.pop("ten")
    rtts.pop("ten")
    ours, ours_rtt = gbps.pop("ours"), rtts.pop("ours")
    bare = rtts.get("bare loop")
    bound_us = min(PING_TARGET_US, 1.1 * median(bare)) if bare else PING_TARGET_US
    yield Figure(
        "one TCP flow, one switch",
        "Gbit/s",
        ours,
        gbps,
        "at least 10",
        median(ours) >= SINGLE_TARGET_GBPS,
        note="sender, switch and receiver share the machine's cores",
        strain=SINGLE_TARGET_GBPS / median(ours),
    )
    yield Figure(
        "one TCP flow, ten switches",
        "Gbit/s",
        ten,
        {"one switch": ours},
        "at least half of one switch",
        median(ten) >= SINGLE_TARGET_GBPS / 2 and median(ten) >= median(ours) / 2,
        strain=max(SINGLE_TARGET_GBPS, median(ours)) / 2 / median(ten),
    )
    yield Figure(
        "ping, one switch, median",
        "us",
        ours_rtt,
        rtts,
        "at most 60, and 1.1 x the bare loop",
        median(ours_rtt) <= bound_us,
        note=f"{pings} pings 1 ms apart, {repetitions} times; the bare loop takes a third as long when the kernel "
        "happens to wake it on the processor of ping, where nothing else runs",
        strain=median(ours_rtt) / bound_us,
    )


def ten_switches() -> tn.Network:
    """Return ten switches in a row with a host at either end."""
    net = tn.Network()
    row = [net.switch(f"s{number}") for number in range(1, 11)]
    for left, right in pairwise(row):
        net.link(left, right)
    net.link(net.host("h1"), row[0])
    net.link(net.host("h2"), row[-1])
    return net


def round_trips_us(site: Site, count: int) -> list[float]:
    """Return the round-trip times of `count` pings 1 ms apart."""
    told = site.run(1, ["ping", "-i", "0.001", "-c", str(count), site.target])
    found = [float(time) * 1000 for time in re.findall(r"time=([0-9.]+) ms", told)]
    if not found:
        raise OSError(f"ping in {site.name} had no answer: {told.strip()[-200:]}")
    return found
