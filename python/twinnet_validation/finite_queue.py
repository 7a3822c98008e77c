"""M/M/1/K: Poisson arrivals, exponential sizes, room for K frames with the one in service."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet_validation.confidence import LEVEL, batch_interval
from twinnet_validation.law import Law, Row
from twinnet_validation.port import Source, exponential, run_port
from twinnet_validation.single_server import BATCHES, LOADS, RATE_BPS, exponential_sizes, size_moments

__all__ = ["LAW", "expected"]

_ROOM = 5


def expected(load: float, room: int) -> tuple[float, float]:
    """Return the share that is lost, and the mean wait of the others in mean service times.

    The chance of n frames is load^n over the sum of all; an arrival that finds `room` is lost. By Little's law the time
    in the system is the mean number over the rate of those admitted.
    """
    weights = [load**number for number in range(room + 1)]
    total = sum(weights)
    lost = weights[room] / total
    inside = sum(number * weight for number, weight in enumerate(weights)) / total
    return lost, inside / (load * (1 - lost)) - 1


def _measure(quick: bool) -> Sequence[Row]:
    rows: list[Row] = []
    frames = 60_000 if quick else 1_000_000
    sizes = exponential_sizes()
    mean_bytes, _ = size_moments(sizes)
    service_s = mean_bytes * 8 / RATE_BPS
    for load in (0.8,) if quick else LOADS:
        run = run_port(
            [Source(frames, exponential(service_s * 1e12 / load), sizes)],
            {"kind": "fifo", "limit_frames": _ROOM - 1},
            rate_bps=RATE_BPS,
            batches=BATCHES,
            seed=round(load * 1000) + 2,
        )
        lost, waited = expected(load, _ROOM)
        setting = f"M/M/1/{_ROOM}, load {load:g}, {frames} frames"
        for quantity, unit, wanted, samples in (
            ("lost", "%", lost * 100, [batch.lost_share * 100 for batch in run.batches[1:]]),
            ("mean wait", "us", waited * service_s * 1e6, [batch.mean_wait_s * 1e6 for batch in run.batches[1:]]),
        ):
            mean, low, high = batch_interval(samples)
            passed = low <= wanted <= high
            tolerance = f"its {LEVEL * 100:g} % interval"
            rows.append(Row(setting, quantity, unit, wanted, mean, tolerance, passed, (low, high)))
    return rows


LAW = Law(
    "finite-queue",
    "M/M/1/K",
    "With room for K frames the numbers in the system are a geometric law cut off at K; Poisson arrivals see that law, "
    "so its last term is the share that is lost.",
    "Kleinrock 1975, Queueing Systems I, 3.6; Little 1961 for the wait",
    _measure,
)
