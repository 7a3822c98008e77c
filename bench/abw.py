"""Estimates of available bandwidth on the published rows, beside what the original tools were seen to say.

The rows and errors are those of Aceto, Persico, Pescape, Ventre, *SOMETIME: software defined network-based available
bandwidth measurement in MONROE*, TMA 2017 (slides): public tools in Mininet with Open vSwitch and D-ITG. Ours run on
the virtual clock, against the fabric's own count of bytes over the window of each estimate.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from statistics import fmean

import twinnet as tn
from twinnet import bandwidth
from twinnet.control import AvailableBandwidth
from twinnet.control.events import Statistics

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Available bandwidth: errors on the published rows"
MEASURES = ("bench/abw.py", "crates/apps", "python/twinnet/bandwidth", "python/twinnet/control")

AS_PUBLISHED = ("pathload", "yaz", "assolo", "stab", "pathchirp", "igi", "ptr")
"""Those whose published settings are other than ours."""
METHODS = ("pathload", "yaz", "assolo", "stab", "pathchirp", "spruce", "igi", "ptr", "kalman", "hybrid")
_TARGETS = dict.fromkeys(METHODS, 10.0) | {"hybrid": 5.0}
"""In percent. All have one, those too that are known to be farther off."""
_ETHERNET_FRAME_BYTES = 1538
_PAYLOAD_BYTES = 1472
_FLEET_HOSTS = 100
_FLEET_EDGES = 10
_FLEET_TARGET_PERCENT = 10.0


@dataclass(frozen=True)
class _Row:
    capacity: float
    cross: float


@dataclass(frozen=True)
class _Run:
    """One estimate: its error as a share of the truth (`None` without an estimate), its probes, and its time."""

    error: float | None
    bytes: int
    seconds: float


def published() -> dict[tuple[str, float, float], float]:
    """Return the published errors in percent, by tool, capacity and cross traffic in Mbit/s."""
    folder = resources.files("twinnet") / "studies" / "available-bandwidth"
    found: dict[tuple[str, float, float], float] = {}
    with (folder / "published.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            estimate, capacity, cross = (float(row[name]) for name in ("estimate", "capacity", "cross_traffic"))
            # The sign of what was printed is not always that of the figures beside it.
            found[row["tool"], capacity, cross] = 100 * (estimate / (capacity - cross) - 1)
    return found


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures. Of them only the fleet's depends on how busy the machine is."""
    repetitions = 2 if quick else 5
    theirs = published()
    quiet.wait()
    yield _fleet(5 if quick else 20)
    for capacity, cross in sorted({(capacity, cross) for _, capacity, cross in theirs}):
        for method, preset in [*((one, "ours") for one in METHODS), *((one, "published") for one in AS_PUBLISHED)]:
            runs = [_run(method, preset, _Row(capacity, cross), seed) for seed in range(1, repetitions + 1)]
            yield _figure(method, preset, _Row(capacity, cross), runs, theirs.get((method, capacity, cross)))


def _figure(method: str, preset: str, row: _Row, runs: Sequence[_Run], tool: float | None) -> Figure:
    """Return the errors of `runs` beside that of the published tool. A run without an estimate has no error, and
    misses the goal."""
    name = f"{method}{'' if preset == 'ours' else ' as published'} at {row.capacity:g}/{row.cross:g} Mbit/s"
    errors = [100 * run.error for run in runs if run.error is not None]
    silent = len(runs) - len(errors)
    none = f"no estimate in {silent} of {len(runs)} runs" if silent else ""
    # What was published has no goal: it is what ours stands beside.
    goal = _TARGETS[method] if preset == "ours" else None
    worst = max(map(abs, errors), default=0.0)
    told = f"errors {', '.join(f'{error:+.1f}' for error in errors)} %;" if errors else ""
    spent = f"{fmean(run.bytes for run in runs) / 1e6:.2f} MB, {fmean(run.seconds for run in runs):.1f} s"
    return Figure(
        name=f"{name}, size of the error",
        unit="%",
        ours=[abs(error) for error in errors],
        peers={} if tool is None else {"published tool": [abs(tool)]},
        target="" if goal is None else f"at most {goal:g} in each run",
        met=None if goal is None else bool(not silent and worst <= goal),
        note="; ".join(filter(None, (none, f"{told} {spent}".strip()))),
        summary="worst",
        marks={"ours": none} if none else {},
        goal="" if goal is None else f"{method}: at most {goal:g} % off in each run",
        strain=None if goal is None else max(worst / goal, 1 + silent / len(runs) if silent else 0.0),
        deterministic=True,
    )


def _fleet(rounds: int) -> Figure:
    """Return the controller's processor time for all pairs of 100 hosts each second, in percent of a core."""
    counters = _TimedCounters("1 s")
    net = tn.Network(seed=1)
    core = net.switch("core")
    hosts: list[str] = []
    for edge in range(_FLEET_EDGES):
        switch = net.switch(f"e{edge}")
        net.link(switch, core, rate="1 Gbit")
        for place in range(_FLEET_HOSTS // _FLEET_EDGES):
            hosts.append(f"h{edge}x{place}")
            net.link(net.host(hosts[-1]), switch, rate="100 Mbit")
    net.controller(counters)
    shares: list[float] = []
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.run_until("3 s")
        for second in range(rounds):
            counters.spent_ns = 0
            lab.run_until(f"{4 + second} s")
            begin = time.thread_time_ns()
            found = counters.between_all(hosts)
            estimated_ns = time.thread_time_ns() - begin
            if len(found) != _FLEET_HOSTS * (_FLEET_HOSTS - 1):
                raise ValueError(f"{len(found)} pairs were estimated")
            shares.append(100 * (counters.spent_ns + estimated_ns) / 1e9)
    return Figure(
        name=f"all {_FLEET_HOSTS * (_FLEET_HOSTS - 1):,} pairs of {_FLEET_HOSTS} hosts by counters, each second",
        unit="% of a core",
        ours=shares,
        note=f"{_FLEET_EDGES} edge switches at one core switch; processor time of asking, of keeping the answers and of"
        " estimating; without reading the answers from their bytes",
        summary="worst",
    ).below(_FLEET_TARGET_PERCENT)


class _TimedCounters(AvailableBandwidth):
    """Counts the processor time that it takes."""

    spent_ns = 0

    def _ask(self) -> None:
        begin = time.thread_time_ns()
        super()._ask()
        self.spent_ns += time.thread_time_ns() - begin

    def on_statistics(self, event: Statistics) -> None:
        """Keep the counters."""
        begin = time.thread_time_ns()
        super().on_statistics(event)
        self.spent_ns += time.thread_time_ns() - begin


def _run(method: str, preset: str, row: _Row, seed: int) -> _Run:
    """Return what one estimate gave."""
    net = tn.Network(seed=seed)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate=f"{10 * row.capacity:g} Mbit")
    net.link(left, right, rate=f"{row.capacity:g} Mbit")
    payload_bps = row.cross * 1e6 * _PAYLOAD_BYTES / _ETHERNET_FRAME_BYTES
    with net.simulate() as lab:
        ports = bandwidth.path_ports(lab, ["h1", "s1", "s2", "h2"])
        sampler = lab.sample(list(ports), "5 ms")
        lab.start(tn.apps.udp("x1", "x2", rate=tn.units.BitsPerSecond(round(payload_bps)), duration="1 h"))
        lab.run_until("1 s")
        capacity = f"{row.capacity:g} Mbit" if method == "spruce" else None
        most_rate = f"{2 * row.capacity:g} Mbit"
        flow = bandwidth.bandwidth("h1", "h2", method, capacity=capacity, preset=preset, most_rate=most_rate)
        handle = lab.start(flow)
        lab.wait([handle])
        lab.run_until(f"{lab.now() + 0.01:.6f} s")
        told = handle.reports()[0].flows[0].bandwidth
        if told is None or told.estimate_bps is None:
            return _Run(None, told.probe_bytes + told.control_bytes if told is not None else 0, lab.now() - 1)
        true = bandwidth.truth(sampler.read(), ports, told).available_bps
        return _Run(told.estimate_bps / true - 1, told.probe_bytes + told.control_bytes, told.window_s)
