"""What a capture costs: the same traffic on the virtual clock with captures and without, by turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import twinnet as tn

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Captures: processor time for each frame that is written"

TARGET_NS = 1000.0


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    packets, rounds = (20_000, 3) if quick else (200_000, 5)
    kinds: dict[str, dict[str, Any]] = {
        "headers to one file": {},
        "headers to a ring of files of 1 MB": {"ring": (4, "1 MB")},
    }
    costs: dict[str, list[float]] = {name: [] for name in kinds}
    without: list[float] = []
    quiet.wait()
    for _ in range(rounds):
        bare_ns = _frame_ns(packets, None)
        without.append(bare_ns)
        for name, settings in kinds.items():
            costs[name].append(_frame_ns(packets, settings) - bare_ns)
    for name, samples in costs.items():
        yield Figure(
            f"cost of a capture, {name}",
            "ns/frame",
            samples,
            target=f"at most {TARGET_NS:.0f}",
            met=median(samples) <= TARGET_NS,
            note=f"a frame through one switch costs {median(without):.0f} ns without",
        )


def _frame_ns(packets: int, capture: dict[str, Any] | None) -> float:
    """Return the processor time of a packet through a switch, with a capture at its port or without."""
    with tempfile.TemporaryDirectory() as folder, tn.templates.single(2).simulate(static_neighbours=True) as lab:
        flow = tn.apps.udp("h1", "h2", rate="800 Mbit", packets=packets, payload="1000 B")
        handle = lab.start(flow)
        begin_s = time.process_time()
        if capture is None:
            lab.wait([handle])
        else:
            with lab.capture("s1-eth2", str(Path(folder) / "out.pcapng"), direction="out", **capture):
                lab.wait([handle])
        return (time.process_time() - begin_s) * 1e9 / packets
