"""What a packet-hop, a host and a flow cost from a dozen model hosts to 100,000, and where that bends."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.figure import Figure
from bench.outcome import Outcome, growth, outcome_of
from bench.quiet import Quiet

TITLE = "Scale: a tree of model hosts on the virtual clock, each sending to another"
MEASURES = ("bench/scale.py", "bench/scenarios.py", "crates/apps", "crates/fabric", "crates/host", "crates/lab")

HOSTS = (12, 100, 1000, 10_000, 30_000, 100_000)
QUICK_HOSTS = (12, 100, 1000)
PACKETS_PER_SECOND = 4.0
LEAST_HOPS = 500_000
"""Packet-hops of a run: small networks run for longer, so that each run lasts long enough to be measured."""
LONGEST_S = 2000.0
HOPS_OF_A_PACKET = 5.5
FLOWS = (10, 2010)
QUICK_FLOWS = (10, 510)
BEND = 1.5
"""A cost bends where it is so many times that of the size before."""


@dataclass(frozen=True)
class Size:
    """What was measured of one size."""

    hosts: int
    outcome: Outcome

    @property
    def hop_ns(self) -> float:
        """Processor time of a packet-hop."""
        return self.outcome.processor_s / max(self.outcome.packet_hops, 1) * 1e9

    def host_kb_since(self, before: Size) -> float:
        """Memory of one more host with its link, flow and share of the rest, after the run."""
        return growth(before.outcome.ended_bytes, self.outcome.ended_bytes, before.hosts, self.hosts) / 1000


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    sizes: list[Size] = []
    for hosts in QUICK_HOSTS if quick else HOSTS:
        quiet.wait()
        sizes.append(Size(hosts, outcome_of(_command("tree", virtual_seconds(hosts), "--hosts", hosts))))
        yield from _of_a_size(sizes[-1], sizes[-2] if len(sizes) > 1 else None)
    slowest, fastest = max(sizes, key=lambda size: size.hop_ns), min(sizes, key=lambda size: size.hop_ns)
    yield Figure(
        "cost of a packet-hop: the dearest size beside the cheapest",
        "",
        [slowest.hop_ns / fastest.hop_ns],
        target="linear: 1",
        note=f"dearest at {slowest.hosts:,}, cheapest at {fastest.hosts:,} hosts; {bend_of(sizes)}",
    )
    for protocol in ("udp", "tcp"):
        yield _of_a_flow(protocol, QUICK_FLOWS if quick else FLOWS, quiet)


def virtual_seconds(hosts: int) -> float:
    """Return how long `hosts` hosts are to send for about `LEAST_HOPS` packet-hops, at least a second."""
    return min(max(LEAST_HOPS / (hosts * PACKETS_PER_SECOND * HOPS_OF_A_PACKET), 1.0), LONGEST_S)


def _command(kind: str, seconds: float, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.simulated", "--seconds", f"{seconds:g}", kind, *map(str, arguments)]


def _of_a_size(size: Size, before: Size | None) -> Iterator[Figure]:
    name, run = f"{size.hosts:,} hosts", size.outcome
    sent = run.packet_hops / max(run.delivered_packets, 1)
    yield Figure(
        f"{name}: a packet-hop", "ns", [size.hop_ns], note=f"{run.packet_hops} packet-hops, {sent:.1f} for a packet"
    )
    yield Figure(f"{name}: building all", "s", [run.setup_s])
    if before is None:
        return
    since = f"growth from {before.hosts:,} hosts"
    yield Figure(
        f"{name}: memory of one more",
        "kB",
        [size.host_kb_since(before)],
        note=f"{since}; {run.ended_bytes / 1e6:.0f} MB after the run, at most {run.peak_bytes / 1e6:.0f} MB by then",
    )


def bend_of(sizes: Sequence[Size]) -> str:
    """Return where the cost of a packet-hop bends upwards, in words."""
    bends = [
        f"it bends between {before.hosts:,} and {after.hosts:,} hosts: {before.hop_ns:.0f} to {after.hop_ns:.0f} ns"
        for before, after in pairwise(sizes)
        if after.hop_ns > BEND * before.hop_ns
    ]
    return "; ".join(bends) or "it bends nowhere"


def _of_a_flow(protocol: str, counts: tuple[int, int], quiet: Quiet) -> Figure:
    """The memory that one more flow takes between two hosts, both of its ends together."""
    few, many = counts
    taken: list[int] = []
    for flows in counts:
        quiet.wait()
        run = outcome_of(_command("flows", 2.0, "--protocol", protocol, "--flows", flows))
        taken.append(run.ended_bytes)
    return Figure(
        f"memory of one {protocol.upper()} flow",
        "kB",
        [(taken[1] - taken[0]) / (many - few) / 1000],
        note=f"sender and receiver, after 2 s; growth from {few} to {many} flows between two hosts",
    )
