"""The congestion window of one CUBIC flow over time: Linux's own (TCP_INFO of a real host's socket) and the model's.

``python -m bench.tcp_saw_tooth FILE.svg`` draws both over the same link.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import twinnet as tn
from matplotlib.figure import Figure

from bench.tcp_grid import Cell, network

__all__ = ["peaks", "window_over_time"]

CELL = Cell(rate_mbit=10, rtt_ms=50, buffer_bdp=1.0, loss=0.0, algorithm="cubic")
SECONDS = 60
_START_S = 2


def window_over_time(clock: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return times in seconds after the flow's start, and its congestion window in segments at them."""
    net = network([CELL], seed)
    lab_of: Any = net.emulate() if clock == "wall" else net.simulate(seed=seed)
    with lab_of as lab:
        bulk = tn.apps.tcp_bulk(
            "a0", "b0", duration=f"{SECONDS} s", congestion_control=CELL.algorithm, info_interval="20 ms"
        )
        flow = lab.start(bulk, at=f"{_START_S} s")
        lab.run_until(f"{_START_S + SECONDS} s")
        told = [one.tcp_info for report in flow.reports() for one in report.flows if one.tcp_info is not None]
        if clock == "wall":
            print(f"wall clock: {lab.fidelity().verdict().state}")
    if not told:
        raise OSError(f"the sender on the {clock} clock told nothing of its connection")
    series = told[0]
    return np.asarray(series.at_ps) / 1e12 - _START_S, np.asarray(series.congestion_windows)


def peaks(times: Sequence[float] | np.ndarray, window: Sequence[float] | np.ndarray) -> list[tuple[float, int]]:
    """Return time and height of each peak that a reduction of at least a tenth followed, the first one left out."""
    found: list[tuple[float, int]] = []
    top, at = 0, 0.0
    for time, size in zip(times, window, strict=True):
        if size > top:
            top, at = int(size), float(time)
        elif size < 0.9 * top:
            found.append((at, top))
            top = int(size)
    return found[1:]


def main() -> int:
    """Measure on both clocks, draw, and say how far apart the saw-teeth are."""
    parser = argparse.ArgumentParser(prog="python -m bench.tcp_saw_tooth", description=__doc__)
    parser.add_argument("file", type=Path, help="where the figure goes (.svg or .png)")
    wanted = parser.parse_args()
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    for clock, label, style in (
        ("wall", "Linux, wall clock", {"color": "#d1495b"}),
        ("virtual", "model, virtual clock", {"color": "#00798c"}),
    ):
        times, window = window_over_time(clock)
        axes.step(times, window, where="post", linewidth=1.2, label=label, **style)
        teeth = peaks(times, window)
        spacing = np.diff([time for time, _ in teeth])
        heights = [height for _, height in teeth]
        print(
            f"{label}: {len(teeth)} peaks, {np.mean(heights) if heights else float('nan'):.1f} segments high, "
            f"{np.mean(spacing) if len(spacing) else float('nan'):.2f} s apart"
        )
    axes.set_xlabel("time (s)")
    axes.set_ylabel("congestion window (segments)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(wanted.file, metadata={"Date": None} if wanted.file.suffix == ".svg" else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
