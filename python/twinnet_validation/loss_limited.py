"""NewReno with random loss: the window that the square root of the loss allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import twinnet as tn

from twinnet_validation.confidence import LEVEL, batch_interval
from twinnet_validation.law import Law, Row
from twinnet_validation.tcp_paths import SEGMENT_BYTES, bytes_per_second

__all__ = ["LAW", "expected_window", "measured_windows"]

_RTT_S = 0.05
_SKIPPED_S = 20
_BATCH_S = 20
"""Fifteen of the saw-teeth that 0.1 % makes: 1/p segments at 39 a round trip take 1.3 s."""
_MODEL_ERROR = 0.10
"""The formula leaves out time-outs and recovery, and takes losses to be evenly spaced."""


def expected_window(loss: float) -> float:
    """Return the mean window in segments: sqrt(3/2p).

    The window grows by a segment each round trip although every second segment is acknowledged, because bytes are
    counted (RFC 3465, and Linux): the formula's constant for one acknowledgement a segment.
    """
    return math.sqrt(1.5 / loss)


def measured_windows(loss: float, batches: int) -> list[float]:
    """Return segments received in each round trip on a line that is never full, in batches of :data:`_BATCH_S`."""
    network = tn.Network(seed=1)
    delay = f"{_RTT_S * 500} ms"
    network.link(network.host("a"), network.host("b"), rate="1 Gbit", delay=delay, a_to_b={"loss": f"{100 * loss:g} %"})
    seconds = _SKIPPED_S + batches * _BATCH_S
    with network.simulate(static_neighbours=True) as lab:
        flow = lab.start(tn.apps.tcp_bulk("a", "b", duration=f"{seconds} s", congestion_control="reno"))
        lab.run_until(f"{seconds} s")
        received = bytes_per_second(flow.report().intervals, seconds)
    return [
        sum(received[begin : begin + _BATCH_S]) / SEGMENT_BYTES / _BATCH_S * _RTT_S
        for begin in range(_SKIPPED_S, seconds, _BATCH_S)
    ]


def _measure(quick: bool) -> Sequence[Row]:
    batches = 15 if quick else 60
    rows: list[Row] = []
    for loss in (0.001, 0.01):
        seen, low, high = batch_interval(measured_windows(loss, batches))
        expected = expected_window(loss)
        passed = high >= expected * (1 - _MODEL_ERROR) and low <= expected * (1 + _MODEL_ERROR)
        rows.append(
            Row(
                f"NewReno, {_RTT_S * 1e3:g} ms, {loss * 100:g} % loss, {batches * _BATCH_S} s",
                "mean window",
                "segments",
                expected,
                seen,
                f"its {LEVEL * 100:g} % interval meets {_MODEL_ERROR * 100:g} % about the formula, which leaves out "
                "time-outs",
                passed,
                (low, high),
            )
        )
    return rows


LAW = Law(
    "loss-limited",
    "NewReno and the square root of loss",
    "A window that grows by one each round trip and is halved once in 1/p segments is sqrt(3/2p) in the mean.",
    "Mathis, Semke, Mahdavi and Ott 1997, The macroscopic behavior of the TCP congestion avoidance algorithm",
    _measure,
)
