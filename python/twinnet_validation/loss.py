"""Loss models: the share of frames lost, and how long bursts are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from twinnet_validation.confidence import LEVEL, batch_interval
from twinnet_validation.law import Law, Row
from twinnet_validation.port import Source, constant, run_port

__all__ = ["LAW"]

_BATCHES = 30


def _measure(quick: bool) -> Sequence[Row]:
    frames = 60_000 if quick else 600_000
    rows: list[Row] = []
    to_bad, to_good = 0.01, 0.25
    elliott = {"model": "gilbert_elliott", "to_bad": to_bad, "to_good": to_good, "loss_good": 0.0, "loss_bad": 1.0}
    for name, model, share, burst in (
        ("Bernoulli 2 %", {"model": "bernoulli", "probability": 0.02}, 0.02, 1 / (1 - 0.02)),
        (f"Gilbert-Elliott p = {to_bad:g}, r = {to_good:g}", elliott, to_bad / (to_bad + to_good), 1 / to_good),
    ):
        run = run_port(
            [Source(frames, constant(10**6), constant(1000))],
            {"kind": "fifo", "limit_frames": 100},
            rate_bps=None,
            batches=_BATCHES,
            records=True,
            loss=model,
        )
        setting = f"{name}, {frames} frames"
        lost = (one.received_ps is None for one in run.records)
        bursts = [float(sum(1 for _ in group)) for is_lost, group in groupby(lost) if is_lost]
        for quantity, unit, wanted, samples in (
            ("lost", "%", share * 100, [batch.lost_share * 100 for batch in run.batches]),
            ("mean burst", "frames", burst, bursts),
        ):
            mean, low, high = batch_interval(samples)
            tolerance = f"its {LEVEL * 100:g} % interval"
            rows.append(Row(setting, quantity, unit, wanted, mean, tolerance, low <= wanted <= high, (low, high)))
    return rows


LAW = Law(
    "loss",
    "Loss models",
    "Independent losses of probability p have bursts of 1/(1-p) frames. A chain that goes from good to bad with "
    "probability p and back with r is bad for p/(p+r) of the time and 1/r frames at once.",
    "Gilbert 1960, BSTJ 39; Elliott 1963, BSTJ 42",
    _measure,
)
