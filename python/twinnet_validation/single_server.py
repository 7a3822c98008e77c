"""M/D/1 and M/M/1: Poisson arrivals at one line with room for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet_validation.confidence import LEVEL, batch_interval, lag_one_correlation
from twinnet_validation.law import Law, Row
from twinnet_validation.port import LEAST_BYTES, Source, constant, exponential, run_port

__all__ = ["BATCHES", "LAW", "LOADS", "RATE_BPS", "MeanWait", "exponential_sizes", "measured_wait", "size_moments"]

LOADS = (0.3, 0.5, 0.8, 0.9, 0.95)
RATE_BPS = 80_000_000
MEAN_BYTES = 10_000
BATCHES = 31
"""The first is left out: the queue begins empty."""
MOST_BYTES = 300_000
"""Thirty times the mean: longer ones would be one in 10^13."""


@dataclass(frozen=True)
class MeanWait:
    """A mean wait in seconds, with its interval and how much neighbouring batches have in common."""

    mean_s: float
    low_s: float
    high_s: float
    correlation: float


def exponential_sizes() -> dict[str, Any]:
    """Return the law of sizes of M/M/1: exponential, but in whole bytes and no shorter than a frame can be."""
    return exponential(MEAN_BYTES, LEAST_BYTES, MOST_BYTES)


def size_moments(law: Mapping[str, Any]) -> tuple[float, float]:
    """Return mean and mean square of a law of sizes, summed over its whole numbers.

    An exponential variable rounded up is n with probability q^(n-1) (1-q), q = exp(-1/mean); the limits take what lies
    beyond them.
    """
    if law["law"] == "constant":
        return float(law["value"]), float(law["value"]) ** 2
    q = math.exp(-1 / law["mean"])
    least, most = int(law["least"]), int(law["most"])
    first = second = 0.0
    for size in range(least, most + 1):
        if size == least:
            probability = 1 - q**least
        elif size == most:
            probability = q ** (most - 1)
        else:
            probability = q ** (size - 1) * (1 - q)
        first += size * probability
        second += size * size * probability
    return first, second


def frames_for(load: float, quick: bool) -> int:
    """Return how many frames are sent.

    A queue forgets in about 1/(1 - sqrt(load))^2 service times (Kleinrock 1975, 2.12: the relaxation time of M/M/1):
    1560 at a load of 0.95. A batch of a thirtieth of two million frames is 43 times that.
    """
    if quick:
        return 60_000
    return 2_000_000 if load > 0.9 else 1_000_000


def measured_wait(sizes: Mapping[str, Any], load: float, quick: bool) -> MeanWait:
    """Return the mean wait at a load that `sizes` and Poisson arrivals make together."""
    mean_bytes, _ = size_moments(sizes)
    gap_ps = mean_bytes * 8e12 / RATE_BPS / load
    frames = frames_for(load, quick)
    run = run_port(
        [Source(frames, exponential(gap_ps), sizes)],
        {"kind": "fifo", "limit_frames": frames},
        rate_bps=RATE_BPS,
        batches=BATCHES,
        # Each row draws its own numbers: those that share them would be wrong together.
        seed=round(load * 1000) + (sizes["law"] == "exponential"),
    )
    means = [batch.mean_wait_s for batch in run.batches[1:]]
    return MeanWait(*batch_interval(means), lag_one_correlation(means))


def expected_wait_s(sizes: Mapping[str, Any], load: float) -> float:
    """Return the mean wait by Pollaczek and Khinchine: load / (1 - load) times E[S^2] / 2 E[S]."""
    first, second = size_moments(sizes)
    return load / (1 - load) * second / (2 * first) * 8 / RATE_BPS


def _measure(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    for name, sizes in (("M/D/1", constant(MEAN_BYTES)), ("M/M/1", exponential_sizes())):
        for load in (0.5, 0.8) if quick else LOADS:
            found = measured_wait(sizes, load, quick)
            expected_us = expected_wait_s(sizes, load) * 1e6
            rows.append(
                Row(
                    f"{name}, load {load:g}, {frames_for(load, quick)} frames",
                    "mean wait",
                    "us",
                    expected_us,
                    found.mean_s * 1e6,
                    f"its {LEVEL * 100:g} % interval; batches correlate by {found.correlation:.2f}",
                    found.low_s * 1e6 <= expected_us <= found.high_s * 1e6,
                    (found.low_s * 1e6, found.high_s * 1e6),
                )
            )
    return rows


LAW = Law(
    "single-server",
    "M/D/1 and M/M/1",
    "Poisson arrivals find the server busy with probability rho, and a frame waits for the rest of that service and "
    "for those before it: W = rho/(1-rho) x E[S^2]/2E[S]. Exponential sizes are whole bytes here and at least 8; the "
    "moments are summed over that law, and differ from the exponential's by less than 0.01 %.",
    "Pollaczek 1930, Khinchine 1932; Kleinrock 1975, Queueing Systems I, 5.6",
    _measure,
)
