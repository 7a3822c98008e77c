"""The kernel's stamps of probes that left, beside the times of handing over: ``python -m bench.kernel_stamps``.

``hybrid`` estimates in real hosts of a lab, beside busy programs of another number in each turn. Each estimate records
its trains, which are then replayed with both times of sending.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import twinnet as tn
from twinnet import bandwidth
from twinnet.units import BitsPerSecond

ROWS = {"10/4": (10, 4), "100/74": (100, 74), "1000/74": (1000, 74)}
"""Capacity and cross traffic in Mbit/s, as published."""
_PACKET, _ON_WIRE = 1472, 1538
_FASTEST_MBPS = 10_000
_BEFORE_S = 0.5


@dataclass(frozen=True)
class _Estimate:
    """What one estimate gave: how much later its stamps are, and the relative errors with both times."""

    later_us: np.ndarray[Any, Any]
    trains: int
    stamped: int
    by_kernel: float
    by_handing_over: float


@contextmanager
def _busy(count: int) -> Iterator[None]:
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in programs:
            one.kill()
            one.wait()


def _path(capacity: int, seed: int) -> tn.Network:
    net = tn.Network(seed=seed)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate=f"{min(10 * capacity, _FASTEST_MBPS)} Mbit")
    net.link(left, right, rate=f"{capacity} Mbit")
    return net


def _estimate(capacity: int, cross: int, seed: int) -> _Estimate:
    most = f"{2 * capacity} Mbit"
    with _path(capacity, seed).emulate() as lab:
        ports = bandwidth.path_ports(lab, ["h1", "s1", "s2", "h2"])
        sampler = lab.sample(list(ports), "5 ms")
        lab.start(tn.apps.udp("x1", "x2", rate=BitsPerSecond(round(cross * 1e6 * _PACKET / _ON_WIRE)), duration="1 h"))
        time.sleep(_BEFORE_S)
        flow = lab.start(bandwidth.bandwidth("h1", "h2", "hybrid", most_rate=most, duration="8 s", record=True))
        lab.wait([flow])
        time.sleep(0.05)
        found = flow.reports()[0].flows[0].bandwidth
        assert found is not None
        true_bps = bandwidth.truth(sampler.read(), ports, found).available_bps
    record: list[dict[str, Any]] = [dict(one) for one in found.record]
    later = [np.array(one["sent_ns"]) - np.array(one["handed_over_ns"]) for one in record if one.get("handed_over_ns")]
    handed = [{**one, "sent_ns": one.get("handed_over_ns") or one["sent_ns"], "handed_over_ns": []} for one in record]

    def error(trains: list[dict[str, Any]]) -> float:
        told = bandwidth.replay(trains, "hybrid", most_rate_bps=2e6 * capacity).estimate_bps
        return math.nan if told is None else told / true_bps - 1

    return _Estimate(
        np.concatenate(later) / 1e3 if later else np.array([]),
        found.trains,
        found.kernel_stamped_trains,
        error(record),
        error(handed),
    )


def _row(name: str, busy: int, made: list[_Estimate]) -> str:
    medians = [float(np.median(one.later_us)) for one in made if len(one.later_us)]
    worst = [np.percentile(one.later_us, (99, 100)) for one in made if len(one.later_us)]
    late, most = np.max(worst, axis=0) if worst else (math.nan, math.nan)
    least, greatest = (min(medians), max(medians)) if medians else (math.nan, math.nan)
    packets = sum(len(one.later_us) for one in made)
    rmse = [
        100 * math.sqrt(float(np.nanmean([of(one) ** 2 for one in made])))
        for of in (lambda one: one.by_kernel, lambda one: one.by_handing_over)
    ]
    later = f"{least:.1f} to {greatest:.1f}, {late:.0f}, {most:.0f}"
    return f"| {name} | {busy} | {packets} | {later} | {rmse[0]:.2f} | {rmse[1]:.2f} |"


def _summary(made: list[_Estimate]) -> str:
    changes = [100 * abs(one.by_kernel - one.by_handing_over) for one in made]
    both = sorted(change for change in changes if not math.isnan(change))
    stamped, trains = (sum(of) for of in zip(*((one.stamped, one.trains) for one in made), strict=True))
    small = sum(change <= 0.02 for change in both)
    return (
        f"{stamped} of {trains} trains stamped; of {len(made)} estimates {len(both)} have an answer by both times, and "
        f"{small} of these change by 0.02 percentage points or less, the others by "
        f"{', '.join(f'{change:.2f}' for change in both[small:]) or 'nothing'}"
    )


def main() -> None:
    """Print a row for each network and each number of busy programs, and a summary."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernel_stamps", description=__doc__)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2, 6], help="busy programs beside the lab")
    parser.add_argument("--estimates", type=int, default=5, help="estimates in each row")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    chosen = parser.parse_args()
    print(
        "| row | busy programs | packets | later by (us): median, 99 %, most | RMSE with the kernel's stamps, % |"
        " with times of handing over, % |\n|---|---:|---:|---|---:|---:|"
    )
    every: list[_Estimate] = []
    for busy in chosen.busy:
        with _busy(busy):
            for name in chosen.rows:
                made = [_estimate(*ROWS[name], seed) for seed in range(1, chosen.estimates + 1)]
                print(_row(name, busy, made), flush=True)
                every += made
    print(f"\n{_summary(every)} (n = {chosen.estimates} in each row)")


if __name__ == "__main__":
    main()
