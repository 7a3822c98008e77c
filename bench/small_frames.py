"""How many frames of 64 bytes arrive each second, when one program sends and one receives with plain calls."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from twinnet.network import templates

from bench.figure import Figure
from bench.machine import BARE, missing
from bench.quiet import Quiet
from bench.rounds import SiteFactory, rounds
from bench.sites import Site, bare_loop_site, kernel_site, lab_site, switch_site

TITLE = "Frames of 64 bytes"
MEASURES = ("bench/small_frames.py", "crates/fabric", "crates/linux", "crates/queue", "crates/switch")

TARGET_RATIO = 1.2


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figure."""
    if absent := missing("bare"):
        yield Figure("64-byte UDP received", "frames/s", [], note=absent)
        return
    seconds, repetitions = (1, 1) if quick else (2, 5)
    sites: dict[str, SiteFactory] = {
        "ours": lambda: lab_site("ours", templates.single(2)),
        "ours, veth + packet socket": lambda: lab_site("ours by veth", templates.single(2), interface="veth"),
        "bare loop": lambda: bare_loop_site("bare loop", 600),
    }
    if missing("ovs") is None:
        sites["OVS user space"] = lambda: switch_site("OVS user space")
    if missing("kernel") is None:
        sites["veth pair alone"] = lambda: kernel_site("veth pair alone")
    rates = rounds(sites, repetitions, quiet, lambda site: received_per_second(site, seconds))
    ours = rates.pop("ours")
    switch = rates.get("OVS user space")
    yield Figure(
        "64-byte UDP received",
        "frames/s",
        ours,
        rates,
        "at least 1.2 times OVS user space",
        median(ours) >= TARGET_RATIO * median(switch) if switch else None,
        note="sender, switch and receiver share the machine's cores",
        strain=TARGET_RATIO * median(switch) / median(ours) if switch else None,
    )


def received_per_second(site: Site, seconds: int) -> float:
    """Send as fast as plain calls go, and return the rate of arrivals in `seconds`."""
    receiver = site.start_ready(2, [str(BARE), "receive", str(seconds)])
    sender = site.start(1, [str(BARE), "send", str(seconds + 1), site.target])
    told = receiver.communicate()[0]
    sender.kill()
    sender.communicate()
    return int(told) / seconds
