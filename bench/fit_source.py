"""Fit a video source to what was published of one cable, for the study ``multimedia-fitted``.

``python -m bench.fit_source`` reads the row of the real cable (topology 1) of the study's published.csv and no other,
writes frame-sizes.txt beside it, and prints the rest of the fit and what it leaves.

The source is that of a streamer which spreads the packets of a window evenly over it (`shaping` of an RTP source): its
only free numbers are the window's length and how many packets each window of 50 s has. They are found by local search
from a random start with a fixed seed: a packet is moved from one window to another, two windows change places, or the
length changes a little, and what does not lower the sum of squared relative errors is undone.

What the hosts add has two parts. The receiver takes the time for each frame that `bench.host_turnaround` measured of
another host; that is not fitted. How late the sender sends is fitted to the jitter of the same row: one packet in so
many is late by milliseconds. The row's greatest jitter is left out: `last_packets` shows that it belongs to one event
in the stream's last packets, which the stream before it says nothing about.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = [
    "Lateness",
    "Source",
    "cable_row",
    "fitted",
    "fitted_lateness",
    "jitter",
    "jitter_before_event",
    "last_packets",
    "statistics",
]

FOLDER = Path(__file__).resolve().parent.parent / "python" / "twinnet" / "studies" / "multimedia-fitted"
STREAM_S = 50.0
PACKET_BITS = 8 * 1356
"""A packet with the headers of RTP, UDP and IPv4."""
CONTENT_BYTES = 7 * 184
"""What a packet of RTP carries of a frame."""
LINE_MS = 1394 * 8 / 1e6
"""A packet on a cable of 1 Gbit/s."""
RECEIVER_US = (30.0, 20.0)
"""Mean and standard deviation of what a receiving host takes for a frame: bench/records/host-turnaround.csv."""
FORGETS = 15 / 16
"""What is left of a jitter of RFC 3550 after one more packet."""
SEED = 2015
STEPS = 40_000


@dataclass
class Source:
    """Length of the windows in milliseconds, and the packets of each."""

    window_ms: float
    packets: np.ndarray = field(repr=False)

    def due_s(self) -> np.ndarray:
        """Return when each packet is due."""
        width = self.window_ms / 1e3
        return np.concatenate([width * (at + np.arange(count) / count) for at, count in enumerate(self.packets)])


def cable_row() -> dict[tuple[str, str], float]:
    """Return the figures of the real cable by metric and statistic, and none of any other network."""
    lines = [line for line in (FOLDER / "published.csv").read_text().splitlines() if not line.startswith("#")]
    found: dict[tuple[str, str], float] = {}
    for row in csv.DictReader(lines):
        if row["topology"] == "1" and row["network"] == "real":
            for name in ("mean", "min", "max", "variance", "std"):
                if row[name] and not row[name].startswith("<"):
                    found[row["metric"], name] = float(row[name])
    return found


def statistics(arrivals_s: np.ndarray) -> dict[tuple[str, str], float]:
    """Return what the study measures of arrivals: the bandwidth of the second that ends with each, and their gaps."""
    first = np.searchsorted(arrivals_s, arrivals_s - 1.0, side="right")
    bandwidth = (np.arange(len(arrivals_s)) - first + 1) * PACKET_BITS / 1e3
    gaps = np.diff(arrivals_s) * 1e3
    found: dict[tuple[str, str], float] = {}
    for name, values, late in (("bandwidth", bandwidth, bandwidth[20:]), ("delay", gaps, gaps)):
        found |= {(name, "mean"): float(values.mean()), (name, "max"): float(values.max())}
        found |= {(name, "min"): float(late.min()), (name, "variance"): float(values.var(ddof=1))}
        found[name, "std"] = float(values.std(ddof=1))
    return found


def error(source: Source, row: dict[tuple[str, str], float]) -> float:
    """Return the sum of the squared relative errors of all figures that the source alone decides."""
    found = statistics(source.due_s())
    # The least gap is the hosts', and the published deviations are the roots of the variances.
    wanted = [key for key in row if key[0] != "jitter" and key != ("delay", "min") and key[1] != "std"]
    return sum((found[key] / row[key] - 1) ** 2 for key in wanted)


def fitted(
    row: dict[tuple[str, str], float], seed: int = SEED, steps: int = STEPS, fullest: int | None = None
) -> Source:
    """Return the source that local search finds, with at most `fullest` packets in a window.

    Without that, no window is busier than the busiest second: the row shows no greater rate.
    """
    draws = np.random.default_rng(seed)
    count = round(STREAM_S * 1e3 / (2 * row["delay", "max"]))
    window_ms = STREAM_S * 1e3 / count
    most = fullest or math.ceil(row["bandwidth", "max"] * 1e3 / PACKET_BITS * window_ms / 1e3)
    total = STREAM_S * 1e3 / row["delay", "mean"]
    # A start with the right mean and slow changes: busy seconds exist.
    slow = np.repeat(draws.gamma(2.0, 1.0, count // 5 + 1), 5)[:count]
    shares = slow * draws.gamma(2.0, 1.0, count)
    source = Source(window_ms, np.clip(np.round(shares / shares.sum() * total), 2, most).astype(int))
    least = error(source, row)
    for _ in range(steps):
        packets = source.packets.copy()
        kind = draws.integers(3)
        one, other = draws.integers(len(packets), size=2)
        if kind == 0:
            packets[one] -= 1
            packets[other] += 1
        elif kind == 1:
            packets[[one, other]] = packets[[other, one]]
        else:
            packets[one] += draws.integers(-2, 3)
        tried = Source(window_ms, np.clip(packets, 2, most))
        if (now := error(tried, row)) <= least:
            source, least = tried, now
    return source


@dataclass(frozen=True)
class Lateness:
    """One packet in `one_in` is late by `late_ms`, the others evenly by 0 to `usual_us`."""

    one_in: int
    late_ms: float
    usual_us: int

    def values_us(self) -> list[int]:
        """Return `one_in` times of which each is as likely: the values of the jitter in study.yaml."""
        usual = np.linspace(0, self.usual_us, self.one_in - 1)
        return [*(round(value) for value in usual), round(self.late_ms * 1e3)]


def jitter(source: Source, lateness: Lateness, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the receiver's stamps on the cable in seconds, order kept, and the jitter of RFC 3550 after each in ms."""
    draws = np.random.default_rng(seed)
    due = source.due_s()
    ready = due + draws.choice(lateness.values_us(), len(due)) / 1e6
    place = np.arange(len(due)) * LINE_MS / 1e3
    arrivals = np.maximum.accumulate(ready - place) + place + LINE_MS / 1e3
    taken = np.maximum(draws.normal(*RECEIVER_US, len(due)), 0) / 1e6
    stamps = np.maximum.accumulate(arrivals + taken)
    apart = np.abs(np.diff(stamps) - np.diff(due)) * 1e3
    found = [0.0]
    for one in apart:
        found.append(found[-1] + (one - found[-1]) / 16)
    return stamps, np.asarray(found)


def last_packets(row: dict[tuple[str, str], float]) -> float:
    """Return how many packets at most can follow the event that made the row's greatest jitter.

    After k packets a jitter of x is x (15/16)^k. Those of all packets that follow it, squared, are part of the sum that
    the row's deviation and mean give, and that is soon full.
    """
    packets = STREAM_S * 1e3 / row["delay", "mean"]
    squares = packets * (row["jitter", "std"] ** 2 + row["jitter", "mean"] ** 2)
    # x^2 (1 - f^2k) / (1 - f^2) = squares, the event's own packet included.
    share = 1 - squares / row["jitter", "max"] ** 2 * (1 - FORGETS**2)
    return math.inf if share <= 0 else math.log(share) / math.log(FORGETS**2)


def jitter_before_event(row: dict[tuple[str, str], float]) -> tuple[float, float]:
    """Return the mean and the deviation of the row's jitter in ms without its greatest value, that of one packet."""
    packets = round(STREAM_S * 1e3 / row["delay", "mean"])
    total = packets * row["jitter", "mean"] - row["jitter", "max"]
    squares = packets * (row["jitter", "std"] ** 2 + row["jitter", "mean"] ** 2) - row["jitter", "max"] ** 2
    mean = total / (packets - 1)
    return mean, math.sqrt(squares / (packets - 1) - mean**2)


def fitted_lateness(source: Source, row: dict[tuple[str, str], float]) -> Lateness:
    """Return what gives the row's jitter before its event best, by the squared logarithms of the ratios, over eight
    draws.

    The row's least delay is 0: packets arrived together, so a late one is at least as late as the next is apart.
    """
    closest_ms = float(np.diff(source.due_s()).min()) * 1e3
    mean, deviation = jitter_before_event(row)
    best = (float("inf"), Lateness(2, 0.0, 0))
    late = [step for step in np.arange(1.0, 10.5, 0.5) if step >= closest_ms]
    for one_in, late_ms, usual_us in itertools.product(range(100, 1000, 100), late, range(0, 105, 15)):
        tried = Lateness(one_in, float(late_ms), usual_us)
        runs = [jitter(source, tried, seed)[1] for seed in range(8)]
        seen = (np.mean([one.mean() for one in runs]), np.mean([one.std() for one in runs]))
        apart = float(np.log(seen[0] / mean) ** 2 + np.log(seen[1] / deviation) ** 2)
        best = min(best, (apart, tried), key=lambda one: one[0])
    return best[1]


def main() -> int:
    """Fit and write; or show the residuals of what is written."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_source", description="Fit a source to one cable.")
    parser.add_argument(
        "--fullest", type=int, help="packets of the fullest window (else the busiest second's rate; at most 239)"
    )
    row = cable_row()
    source = fitted(row, fullest=parser.parse_args().fullest)
    late = fitted_lateness(source, row)
    arrivals, jitters = jitter(source, late, 1)
    found = statistics(arrivals)
    found |= {("jitter", name): float(value) for name, value in (("mean", jitters.mean()), ("max", jitters.max()))}
    found |= {("jitter", "min"): 0.0, ("jitter", "std"): float(jitters.std())}
    text = "".join(f"{count * CONTENT_BYTES} B\n" for count in source.packets)
    (FOLDER / "frame-sizes.txt").write_text(text, encoding="utf-8")
    before = jitter_before_event(row)
    print(f"windows of {source.window_ms:.3f} ms, the fullest with {max(source.packets)} packets; {late}")
    print(f"the greatest jitter belongs to one of the last {last_packets(row):.1f} packets; without it the jitter")
    print(f"has a mean of {before[0]:.4f} ms and a deviation of {before[1]:.4f} ms: fitted {jitters.mean():.4f} and")
    print(f"{jitters.std():.4f} ms")
    print("| figure of the cable | published | fitted | residual |\n|---|---:|---:|---:|")
    for key, value in row.items():
        apart = f"{found[key] / value - 1:+.2%}" if value else f"{found[key] - value:+.3f}"
        print(f"| {key[0]}, {key[1]} | {value:g} | {found[key]:.5g} | {apart} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
