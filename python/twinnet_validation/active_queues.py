"""RED, CoDel and PIE where the load does not yield: what each drops, when, and what then waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from twinnet.qos import Codel, Pie, Red

from twinnet_validation.law import Law, Row, within
from twinnet_validation.port import Record, Source, constant, exponential, run_port

__all__ = ["CODEL", "PIE", "RED", "codel_drop_times_s", "moments_of_drops_s", "red_average_bytes"]

_LINE_BPS = 10_000_000
_FRAME_BYTES = 1000
_FRAME_PS = _FRAME_BYTES * 8 * 10**12 // _LINE_BPS
_BATCHES = 10
_SETTLED_BATCHES = 3
"""The number of batches after which the initial transient of averages and controllers is over."""
_RED = Red(min="20 kB", max="60 kB", max_probability=0.1, rate="10 Mbit")


def _lost_and_wait_s(queue: Mapping[str, Any], gap: Mapping[str, Any], frames: int) -> tuple[float, float]:
    """Return the share of frames that was dropped, and the mean wait of the others in seconds."""
    source = Source(frames, gap, constant(_FRAME_BYTES))
    settled = run_port([source], queue, rate_bps=_LINE_BPS, batches=_BATCHES).batches[_SETTLED_BATCHES:]
    offered, delivered = (sum(getattr(batch, name) for batch in settled) for name in ("offered", "delivered"))
    return 1 - delivered / offered, sum(batch.wait_ps for batch in settled) / delivered / 1e12


def red_average_bytes(load: float, least: float, most: float, most_probability: float) -> float:
    """Return the average queue at which RED drops what is too much of a constant `load`.

    Gaps between drops are uniform over 1 to 1/p_b frames (Floyd and Jacobson 1993, method 2), (1/p_b + 1)/2 in the
    mean; p_b grows linearly from `least` to `most`.
    """
    dropped = 1 - 1 / load
    return least + (most - least) * dropped / (2 - dropped) / most_probability


def _measure_red(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    for load in (1.05,) if quick else (1.02, 1.05, 1.1):
        gap = constant(round(_FRAME_PS / load))
        lost, wait_s = _lost_and_wait_s(_RED.to_spec(), gap, 30_000 if quick else 60_000)
        setting = f"load {load:g}, min 20 kB, max 60 kB, max_p 0.1"
        rows.append(
            within(
                setting,
                "dropped (%)",
                "",
                100 * (1 - 1 / load),
                100 * lost,
                0.02,
                "a queue at rest loses what is too much",
            )
        )
        expected = red_average_bytes(load, 20_000, 60_000, 0.1) / 1000
        seen = wait_s * _LINE_BPS / 8 / 1000
        why = "1 kB: a frame waits for the rest of the one on the line, too, and the queue swings about its average"
        rows.append(Row(setting, "mean queue", "kB", expected, seen, why, abs(seen - expected) <= 1))
    return rows


def codel_drop_times_s(first_s: float, count: int, interval_s: float) -> list[float]:
    """Return when CoDel drops under a load that does not yield: `interval_s` / sqrt(n) after drop n (RFC 8289, 5.5)."""
    found = [first_s]
    for number in range(1, count):
        found.append(found[-1] + interval_s / sqrt(number))
    return found


def moments_of_drops_s(records: Sequence[Record]) -> list[float]:
    """Return when each frame was dropped that did not arrive: when the one before it had left the line."""
    found: list[float] = []
    before_ps = 0
    for record in records:
        if record.received_ps is None:
            found.append(before_ps / 1e12)
        else:
            before_ps = record.received_ps
    return found


def _measure_codel(quick: bool) -> Sequence[Row]:
    load = 1.2
    source = Source(3000 if quick else 6000, constant(round(_FRAME_PS / load)), constant(_FRAME_BYTES))
    queue = Codel(limit_frames=100_000).to_spec()
    seen_s = moments_of_drops_s(run_port([source], queue, rate_bps=_LINE_BPS, records=True).records)
    expected_s = codel_drop_times_s(seen_s[0], len(seen_s), 0.1)
    rows: list[Row] = []
    for number in (2, 10, len(seen_s)):
        seen, expected = seen_s[number - 1] - seen_s[0], expected_s[number - 1] - seen_s[0]
        # A drop waits until a frame leaves, and its successor counts from when it was due.
        late_ms = (seen - expected) * 1e3
        rows.append(
            Row(
                f"load {load:g}, interval 100 ms, target 5 ms",
                f"from drop 1 to drop {number}",
                "ms",
                expected * 1e3,
                seen * 1e3,
                "0 to 0.8 ms late, a frame's time: drops happen when a frame leaves, and do not add up their delays",
                -0.001 <= late_ms <= _FRAME_PS / 1e9 + 0.001,
            )
        )
    return rows


def _measure_pie(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    for load in (1.1,) if quick else (1.05, 1.1, 1.3):
        gap = exponential(_FRAME_PS / load)
        lost, wait_s = _lost_and_wait_s(Pie().to_spec(), gap, 60_000 if quick else 100_000)
        setting = f"load {load:g}, Poisson, target 15 ms"
        why = "the controller is at rest only at its target; it lags chance by some of its updates of 15 ms"
        rows.append(within(setting, "mean wait", "ms", 15.0, wait_s * 1e3, 0.1, why))
        # Of 70,000 arrivals the number has a deviation of 0.38 %, which is one of the load and so of what is too much.
        wide = 4 * 0.38 if not quick else 4 * 0.49
        expected, seen = 100 * (1 - 1 / load), 100 * lost
        rows.append(
            Row(
                setting,
                "dropped (%)",
                "",
                expected,
                seen,
                f"{wide:.2g} points: four deviations of the load that chance made",
                abs(seen - expected) <= wide,
            )
        )
    return rows


RED = Law(
    "red",
    "RED: the queue at which it drops what is too much",
    "Under a load that does not yield, the average queue grows until RED drops what the line cannot carry. With drops "
    "spread evenly the mean gap between two is (1/p + 1)/2 frames, and p grows linearly from min to max.",
    "Floyd and Jacobson 1993, Random early detection gateways for congestion avoidance, 4 and 8",
    _measure_red,
)
CODEL = Law(
    "codel",
    "CoDel: the law of its drops",
    "While the delay stays above the target, the next drop comes interval / sqrt(n) after the n-th.",
    "RFC 8289, 3.3 and 5.5; Nichols and Jacobson 2012",
    _measure_codel,
)
PIE = Law(
    "pie",
    "PIE: the delay at which it rests",
    "The drop probability is integrated from the distance to the target, so it is at rest only where the delay is the "
    "target and what is dropped is what the line cannot carry.",
    "RFC 8033, 4.2; Pan et al. 2013",
    _measure_pie,
)
