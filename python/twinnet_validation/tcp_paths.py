"""Networks for the laws of TCP, and what is read off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import twinnet as tn
from twinnet.results.flow_report import FlowReport
from twinnet.results.flow_series import Intervals
from twinnet.units import Bytes

__all__ = ["Bottleneck", "Stream", "bytes_per_second", "jain_index", "run_streams"]

_FRAME_BYTES = 1514
SEGMENT_BYTES = 1448
"""Payload of a full segment with timestamps."""
_WIRE_BYTES = 1538
"""The same with headers and Ethernet's framing."""


@dataclass(frozen=True)
class Bottleneck:
    """Switch to switch: rate, round trip, buffer in bandwidth-delay products."""

    rate_mbit: int
    rtt_ms: int
    buffer_bdp: float

    @property
    def buffer_bytes(self) -> int:
        """The buffer, in link-layer bytes."""
        return round(self.rate_mbit * 1e3 / 8 * self.rtt_ms * self.buffer_bdp)

    @property
    def capacity_segments(self) -> float:
        """Full segments that line and buffer hold."""
        return self.rate_mbit * 1e3 / 8 * self.rtt_ms / _WIRE_BYTES + self.buffer_bytes / _FRAME_BYTES

    def __str__(self) -> str:
        return f"{self.rate_mbit} Mbit/s, {self.rtt_ms} ms, buffer {self.buffer_bdp:g} BDP"


@dataclass(frozen=True)
class Stream:
    """One TCP stream: its congestion control and when it starts."""

    algorithm: str
    start_s: int = 0


def run_streams(
    link: Bottleneck, streams: Sequence[Stream], seconds: int, seed: int = 1, info_interval: str | None = None
) -> list[tuple[FlowReport, FlowReport]]:
    """Return the sender's and the receiver's report of each stream over a dumbbell; all end together."""
    network = tn.Network(seed=seed)
    left, right = network.switch("s1"), network.switch("s2")
    for number, _ in enumerate(streams, 1):
        network.link(network.host(f"a{number}"), left, rate="1 Gbit")
        network.link(network.host(f"b{number}"), right, rate="1 Gbit")
    network.link(
        left,
        right,
        rate=f"{link.rate_mbit} Mbit",
        delay=f"{link.rtt_ms / 2} ms",
        queue_a=tn.qos.Fifo(limit=Bytes(link.buffer_bytes)),
    )
    with network.simulate(static_neighbours=True) as lab:
        flows = [
            lab.start(
                tn.apps.tcp_bulk(
                    f"a{number}",
                    f"b{number}",
                    duration=f"{seconds - stream.start_s} s",
                    congestion_control=stream.algorithm,
                    info_interval=info_interval,
                ),
                at=f"{stream.start_s} s",
            )
            for number, stream in enumerate(streams, 1)
        ]
        lab.run_until(f"{seconds} s")
        return [(flow.reports()[0].flows[0], flow.report()) for flow in flows]


def bytes_per_second(intervals: Intervals | None, seconds: int) -> list[int]:
    """Return the bytes received in each second from 0 on, nought where there were none."""
    counts = [0] * seconds
    if intervals is not None:
        for place, count in enumerate(intervals.bytes, intervals.first):
            if 0 <= place < seconds:
                counts[place] += count
    return counts


def jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index of fairness: 1 when all are equal, 1/n when one has all (Jain, Chiu and Hawe 1984)."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / len(shares) / squares if squares else 0.0
