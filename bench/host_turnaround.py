"""How long a real host takes from an acknowledgement that it receives to the segment that this lets go.

``python -m bench.host_turnaround`` measures it in labs on the wall clock: one flow of NewReno over 10 Mbit/s, captured
where the sender's line meets its switch; tshark reads the capture. With ``--read`` it tells mean and spread of what the
file holds. The grid of TCP flows gives its model hosts about these (`bench.tcp_grid.PROCESSING`).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import twinnet as tn

from bench.machine import describe
from bench.tcp_grid import Cell, network

__all__ = ["Frame", "turnarounds_us"]

CELL = Cell(rate_mbit=10, rtt_ms=10, buffer_bdp=1.0, loss=0.0, algorithm="reno")
SECONDS, REPETITIONS = 3, 3
FILE = Path(__file__).resolve().parent / "records" / "host-turnaround.csv"
_LINE_US = 1538 * 8 / 1e3
"""What a full frame takes of the sender's line of 1 Gbit/s, which is no time of the host's."""
_LONGEST_US = 1000.0
"""A segment this long after an acknowledgement was let go by something else, such as a timer."""


@dataclass(frozen=True)
class Frame:
    """A segment of the flow in the capture: when it passed, whether the sender sent it, its payload."""

    at_s: float
    sent: bool
    payload_bytes: int


def turnarounds_us(frames: Iterable[Frame]) -> list[tuple[float, float]]:
    """Return the moment of each acknowledgement that a full segment follows at once, and the host's time between.

    Of several segments only the first counts, and no acknowledgement that another one follows first.
    """
    found: list[tuple[float, float]] = []
    for first, second in pairwise(frames):
        if not first.sent and first.payload_bytes == 0 and second.sent and second.payload_bytes == 1448:
            between_us = (second.at_s - first.at_s) * 1e6 - _LINE_US
            if 0 < between_us < _LONGEST_US:
                found.append((first.at_s, between_us))
    return found


def measured() -> tuple[list[tuple[float, float]], str]:
    """Run the flow and return its turnarounds with the lab's verdict."""
    with tempfile.TemporaryDirectory() as folder, network([CELL], 1).emulate() as lab:
        path = Path(folder) / "sender.pcapng"
        capture = lab.capture("l0-eth1", str(path), snap="96 B")
        flow = lab.start(tn.apps.tcp_bulk("a0", "b0", duration=f"{SECONDS} s", congestion_control=CELL.algorithm))
        lab.wait([flow])
        capture.stop()
        verdict = lab.fidelity().verdict().state
        address = str(lab["a0"].ip)
        return turnarounds_us(_frames(path, address)), verdict


def _frames(path: Path, sender: str) -> list[Frame]:
    fields = ["frame.time_epoch", "ip.src", "tcp.len"]
    command = [
        "tshark",
        "-r",
        str(path),
        "-Y",
        "tcp",
        "-T",
        "fields",
        *(word for one in fields for word in ("-e", one)),
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    begin = float(rows[0][0])
    return [Frame(float(at) - begin, source == sender, int(payload)) for at, source, payload in rows]


def told(values: Sequence[float]) -> str:
    """Return what the turnarounds come to, in a line."""
    low, quarter, half, three, high = np.percentile(values, [1, 25, 50, 75, 99])
    return (
        f"{len(values)} acknowledgements: mean {np.mean(values):.1f} us, standard deviation {np.std(values):.1f} us, "
        f"quartiles {quarter:.1f}, {half:.1f}, {three:.1f} us, 98 % from {low:.1f} to {high:.1f} us"
    )


def main() -> int:
    """Measure and write, or read what was written."""
    parser = argparse.ArgumentParser(prog="python -m bench.host_turnaround", description="Time a real host's answers.")
    parser.add_argument("file", type=Path, nargs="?", default=FILE, metavar="FILE.csv")
    parser.add_argument("--read", action="store_true", help="measure nothing")
    wanted = parser.parse_args()
    if not wanted.read:
        runs = [measured() for _ in range(REPETITIONS)]
        machine = describe()
        with wanted.file.open("w", encoding="utf-8", newline="") as file:
            kept = ("date", "cpu", "kernel", "load")
            verdicts = ", ".join(verdict for _, verdict in runs)
            file.write(f"# {'; '.join(f'{name}: {machine[name]}' for name in kept)}; the labs were {verdicts}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["run", "acknowledged_at_s", "turnaround_us"])
            for number, (found, _) in enumerate(runs, start=1):
                writer.writerows((number, f"{at:.4f}", f"{us:.1f}") for at, us in found)
    for number, values in read(wanted.file).items():
        print(f"run {number}: {told(values)}")
    return 0


def read(path: Path) -> dict[int, list[float]]:
    """Return the turnarounds of each run in a file, in microseconds."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found: dict[int, list[float]] = {}
    for row in csv.DictReader(lines):
        found.setdefault(int(row["run"]), []).append(float(row["turnaround_us"]))
    return found


if __name__ == "__main__":
    sys.exit(main())
