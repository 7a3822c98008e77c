"""What a capture costs: the same traffic with captures and without, by turns, on both clocks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import twinnet as tn

from bench.figure import Figure
from bench.machine import cpu_s, descendants
from bench.quiet import Quiet

TITLE = "Captures: processor time for each frame that is written"
MEASURES = ("bench/captures.py", "crates/capture", "crates/fabric", "crates/linux")

TARGET_NS = 1000.0
_WALL_RATE = 20_000
_WALL_PAYLOAD = "1000 B"


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
            note=f"a frame through one switch costs {median(without):.0f} ns without",
            goal=f"cost of a capture: at most {TARGET_NS:.0f} ns a frame",
        ).at_most(TARGET_NS)
    yield from _on_the_wall_clock(quick, quiet)


def _on_the_wall_clock(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield what a capture adds to the lab's processor time, and what was lost, by the network and by the capture."""
    seconds, rounds = (1, 3) if quick else (3, 7)
    kinds: dict[str, dict[str, Any]] = {"whole frames": {"snap": None}, "96 bytes of each": {"snap": "96 B"}}
    ratios: dict[str, list[float]] = {name: [] for name in kinds}
    lost: dict[str, list[float]] = {name: [] for name in ("no capture", *kinds)}
    missed: dict[str, list[float]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as folder, tn.templates.single(2, rate="1 Gbit").emulate() as lab:
        for _ in range(rounds):
            quiet.wait()
            bare = _wall_run(lab, seconds, None)
            lost["no capture"].append(bare.lost_percent)
            for name, settings in kinds.items():
                quiet.wait()
                seen = _wall_run(lab, seconds, {"path": str(Path(folder) / "out.pcapng"), **settings})
                ratios[name].append(seen.cpu_us / bare.cpu_us)
                lost[name].append(seen.lost_percent)
                missed[name].append(seen.missed_percent)
    for name in kinds:
        yield Figure(
            f"wall clock, {_WALL_RATE:,} frames/s of {_WALL_PAYLOAD}: processor time with a capture of {name}",
            "x that without",
            ratios[name],
            note="all threads of the lab process, for each datagram that arrived, by turns",
        )
        yield Figure(
            f"the same: datagrams lost with a capture of {name}",
            "%",
            lost[name],
            {"without": lost["no capture"]},
            note="as the receiver counts them",
        )
        yield Figure(
            f"the same: frames that a capture of {name} missed",
            "%",
            missed[name],
            target="0",
            met=max(missed[name]) == 0,
            note="of those that it was to write",
            goal="a capture misses no frame",
            strain=1 + max(missed[name]),
        )


@dataclass(frozen=True)
class _WallRun:
    """What one second or more of traffic on the wall clock cost and lost."""

    cpu_us: float
    lost_percent: float
    missed_percent: float


def _wall_run(lab: tn.Lab, seconds: int, capture: dict[str, Any] | None) -> _WallRun:
    processes = descendants()
    begin_s = cpu_s(processes)
    flow = tn.apps.udp("h1", "h2", packets_per_second=_WALL_RATE, duration=f"{seconds} s", payload=_WALL_PAYLOAD)
    dropped = written = 0
    if capture is None:
        handle = lab.start(flow)
        lab.wait([handle])
    else:
        with lab.capture("s1-eth2", direction="out", **capture) as running:
            handle = lab.start(flow)
            lab.wait([handle])
        dropped, written = running.dropped, running.frames
    used_s = cpu_s(processes) - begin_s
    heard = handle.report()
    if not heard.packets:
        raise OSError("nothing arrived on the wall clock")
    lost = heard.lost or 0
    return _WallRun(
        used_s * 1e6 / heard.packets,
        100 * lost / (heard.packets + lost),
        100 * dropped / max(dropped + written, 1),
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
