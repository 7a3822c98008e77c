"""Jitter: the delays of a line against the law that was asked for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

from twinnet_validation.confidence import SIGNIFICANCE, distance_from_law, distance_limit
from twinnet_validation.law import Law, Row
from twinnet_validation.port import Source, constant, run_port

__all__ = ["LAW", "LAWS_OF_JITTER", "measured_distance"]

_SCALE_PS = 10**10
_DELAY_PS = 20 * _SCALE_PS
"""So long that no draw of the normal law falls below zero."""
_TABLE_SCALES = (-0.5, 0.0, 0.0, 2.0)
_LONGEST_SCALES = round(32_767 / 8192 * _SCALE_PS) / _SCALE_PS
"""The end of netem's tables, rounded to the picosecond as every delay is: all longer draws have exactly this value."""


def _uniform(scales: float) -> float:
    return min(1.0, max(0.0, (scales + 1) / 2))


def _pareto(scales: float) -> float:
    """Of (X - 3/2) x 4/3 with X Pareto of shape 3: P(X <= x) = 1 - x^-3, and all that is above the end at the end."""
    if scales >= _LONGEST_SCALES:
        return 1.0
    x = scales * 3 / 4 + 1.5
    return 0.0 if x <= 1 else 1 - x**-3


def _pareto_normal(scales: float) -> float:
    """Of a quarter of the normal quantile and three quarters of the Pareto one, by halving the probability."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if not 0 < middle < 1 or _pareto_normal_quantile(middle) > scales:
            high = middle
        else:
            low = middle
    return low


def _pareto_normal_quantile(probability: float) -> float:
    pareto = min(_LONGEST_SCALES, ((1 - probability) ** (-1 / 3) - 1.5) * 4 / 3)
    return 0.25 * NormalDist().inv_cdf(probability) + 0.75 * pareto


def _table(scales: float) -> float:
    return bisect_right(_TABLE_SCALES, scales) / len(_TABLE_SCALES)


_TABLE_PS = [round(scales * _SCALE_PS) for scales in _TABLE_SCALES]
LAWS_OF_JITTER: dict[str, tuple[dict[str, Any], Callable[[float], float]]] = {
    "uniform": ({"distribution": "uniform", "scale_ps": _SCALE_PS}, _uniform),
    "normal": ({"distribution": "normal", "scale_ps": _SCALE_PS}, NormalDist().cdf),
    "pareto": ({"distribution": "pareto", "scale_ps": _SCALE_PS}, _pareto),
    "pareto_normal": ({"distribution": "pareto_normal", "scale_ps": _SCALE_PS}, _pareto_normal),
    "table": ({"distribution": "table", "values_ps": _TABLE_PS}, _table),
}
"""Each distribution as a link is given it, and its distribution function in scales."""


def measured_distance(
    jitter: dict[str, Any], cumulative: Callable[[float], float], frames: int, seed: int = 1
) -> float:
    """Return the distance of the delays of `frames` frames from a law of jitter."""
    run = run_port(
        [Source(frames, constant(10**9), constant(1000))],
        {"kind": "fifo", "limit_frames": 100},
        rate_bps=None,
        records=True,
        seed=seed,
        delay_ps=_DELAY_PS,
        jitter=jitter,
        # Otherwise a frame waits for those before it.
        reorder=True,
    )
    scales = [((one.received_ps or 0) - one.sent_ps - _DELAY_PS) / _SCALE_PS for one in run.records]
    return distance_from_law(scales, cumulative)


def _measure(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    frames = 5000 if quick else 50_000
    limit = distance_limit(frames)
    for seed, (name, (jitter, cumulative)) in enumerate(LAWS_OF_JITTER.items(), 1):
        distance = measured_distance(jitter, cumulative, frames, seed)
        rows.append(
            Row(
                f"{name}, {frames} frames",
                "Kolmogorov-Smirnov distance",
                "",
                0.0,
                distance,
                f"at most {limit:.5f}, which the law itself exceeds once in {round(1 / SIGNIFICANCE)} times",
                distance <= limit and math.isfinite(distance),
            )
        )
    return rows


LAW = Law(
    "jitter",
    "Jitter",
    "The delays of a line, less its constant delay, are draws from the law that was asked for.",
    "Kolmogorov 1933, Smirnov 1948; Massey 1951 for the limit; iproute2 netem/pareto.c, netem/paretonormal.c",
    _measure,
)
