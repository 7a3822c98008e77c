"""How fast real programs run on the virtual clock, in a guest kernel, and how exact it is."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import polars as pl
import twinnet as tn
from twinnet.guest import find
from twinnet.results.captures import analyze_capture

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Programs on the virtual clock"
MEASURES = ("bench/virtual_programs.py", "crates/lab", "crates/linux", "python/twinnet/guest")

REPETITIONS = 5
FLOWS = (
    (1, "10 Mbit", "10 ms", 10),
    (1, "100 Mbit", "1 ms", 5),
    (1, "1 Gbit", "100 us", 1),
    (20, "100 Mbit", "1 ms", 2),
)
"""Flows, rate of each one's line, its delay, and simulated seconds that are measured."""
ROWS = (
    *(f"{flows} iperf3 of {rate}/s" for flows, rate, _, _ in FLOWS),
    "hosts",
    "labs in a row",
    "idle",
    "line",
    "half an hour",
)
"""What can be measured by itself."""
GOALS_S = {"10 Mbit": 0.5, "100 Mbit": 1.0, "1 Gbit": 10.0}
TWENTY_GOAL_S = 4.0
FRAMES_GOALS = {"10 Mbit": 20_000, "100 Mbit": 50_000, "1 Gbit": 50_000}
"""Frames of a second of real time, with one flow: at 10 Mbit/s segments are hardly joined."""
GOODPUT_MBPS, GOODPUT_SHARE = 94.1, 0.005
HOSTS, FEW_HOSTS, MANY_HOSTS = 50, 2, 500
READY_GOALS_S = {FEW_HOSTS: 1.0, HOSTS: 2.0, MANY_HOSTS: 15.0}
MEMORY_GOAL_MB = 1.0
IDLE_S, IDLE_GOAL_S = 1000, 0.1
EXACT_GOAL_US = 1.0
RATE_GOAL_PERCENT = 0.01
LONG_S = 1800
LABS_IN_A_ROW = 200
_WIRE_BYTES, _GAP_BYTES = 24, 12
"""Preamble, checksum and gap of a frame, and the gap alone."""


def measure(quick: bool, quiet: Quiet, rows: Sequence[str] = ROWS) -> Iterator[Figure]:
    """Yield the figures of `rows`; none where there is no kernel for the guest."""
    if find() is None:
        return
    repetitions = 1 if quick else REPETITIONS
    for name, flow in zip(ROWS, FLOWS, strict=False):
        if name in rows:
            quiet.wait()
            yield from _of_flows(name, *flow, [_flow(*flow) for _ in range(repetitions)])
    others = {
        "hosts": _of_hosts,
        "labs in a row": _of_labs_in_a_row,
        "idle": _of_idle,
        "line": _of_line,
        "half an hour": _of_half_an_hour,
    }
    for name, figures in others.items():
        if name in rows:
            quiet.wait()
            yield from figures(repetitions)


@dataclass(frozen=True)
class _Run:
    took_s: float
    frames: int
    goodputs_mbps: Sequence[float]
    trace: str


def _of_flows(name: str, flows: int, rate: str, delay: str, seconds: int, runs: Sequence[_Run]) -> Iterator[Figure]:
    spans = [run.took_s / (seconds + 1) for run in runs]
    traces = len({run.trace for run in runs})
    goal_s = GOALS_S[rate] if flows == 1 else TWENTY_GOAL_S
    yield Figure(
        f"{name}", "s a simulated second", spans, {}, f"at most {goal_s:g}", max(spans) <= goal_s and traces == 1,
        strain=max(spans) / goal_s, note=f"{traces} trace in {len(runs)} runs, over {delay}",
    )  # fmt: skip
    if flows == 1:
        counts, least = [run.frames / run.took_s for run in runs], FRAMES_GOALS[rate]
        yield Figure(
            f"{name}: frames", "1/s of real time", counts, {}, f"at least {least}", min(counts) >= least,
            strain=least / min(counts),
        )  # fmt: skip
        return
    # The same in all runs of one trace: its flows are what differs.
    goodputs = runs[0].goodputs_mbps
    off = max(abs(one / GOODPUT_MBPS - 1) for one in goodputs)
    yield Figure(
        f"{name}: goodput of each", "Mbit/s", goodputs, {}, f"{GOODPUT_MBPS} within {100 * GOODPUT_SHARE} %",
        off <= GOODPUT_SHARE, strain=off / GOODPUT_SHARE,
        note="over IPv4, in whole seconds at the receivers; n is the number of flows", deterministic=True,
    )  # fmt: skip


def _flow(flows: int, rate: str, delay: str, seconds: int) -> _Run:
    """Run iperf3 flows side by side, each over a line of its own, by IPv4: a line carries less by IPv6.

    The goodputs are those of the receivers' seconds without the first. iperf3's own sum counts until a receiver hears
    of the end.
    """
    net = tn.Network()
    for number in range(flows):
        net.link(net.host(f"a{number}"), net.host(f"b{number}"), rate=rate, delay=delay)
    with net.simulate(hosts="programs", seed=7) as lab:
        servers = [lab[f"b{number}"].popen("iperf3 -s -1 -J") for number in range(flows)]
        lab.run_until("1 s")
        began_s = time.perf_counter()
        clients = [
            lab[f"a{number}"].popen(f"iperf3 -4 -c b{number} -O 1 -t {seconds}", stdout=tn.lab.DEVNULL)
            for number in range(flows)
        ]
        if any(client.wait().returncode for client in clients):
            raise OSError("a client of iperf3 failed")
        told = [json.loads(server.communicate()[0]) for server in servers]
        took_s = time.perf_counter() - began_s
        frames = sum(row["counters"]["received_frames"] for row in lab.ports())
        goodputs = [_of_whole_seconds(one["intervals"]) for one in told]
        return _Run(took_s, frames, goodputs, lab.trace_hash)


def _of_whole_seconds(intervals: Sequence[dict[str, Any]]) -> float:
    """Return the goodput in Mbit/s; the last interval has what came after the last second."""
    sums = [one["sum"] for one in intervals]
    whole = [one for one in sums if not one["omitted"] and one["seconds"] > 0.9]
    return 8 * sum(one["bytes"] for one in whole) / sum(one["seconds"] for one in whole) / 1e6


def _star(hosts: int) -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    for number in range(hosts):
        net.link(net.host(f"h{number}"), s1, rate="1 Gbit", delay="10 us")
    return net


def _of_hosts(repetitions: int) -> Iterator[Figure]:
    used_kb: dict[int, int] = {}
    for hosts, goal_s in READY_GOALS_S.items():
        ready: list[float] = []
        for _ in range(repetitions):
            began_s = time.perf_counter()
            with _star(hosts).simulate(hosts="programs") as lab:
                ready.append(time.perf_counter() - began_s)
                lines = lab["h0"].run("cat /proc/meminfo", check=True).stdout.splitlines()
                kb = {line.split(":")[0]: int(line.split()[1]) for line in lines}
                used_kb[hosts] = kb["MemTotal"] - kb["MemAvailable"]
        yield Figure(
            f"until {hosts} hosts with programs stand", "s", ready, {}, f"at most {goal_s:g}", max(ready) <= goal_s,
            strain=max(ready) / goal_s,
        )  # fmt: skip
    each_mb = (used_kb[HOSTS] - used_kb[FEW_HOSTS]) / (HOSTS - FEW_HOSTS) / 1000
    yield Figure(
        "memory of a host", "MB", [each_mb], note=f"what {HOSTS} hosts take in the guest beyond {FEW_HOSTS}",
        deterministic=True,
    ).at_most(MEMORY_GOAL_MB)  # fmt: skip


def _of_labs_in_a_row(repetitions: int) -> Iterator[Figure]:
    """Make a lab again and again; each answers one request over TCP while a program of it still runs."""
    spans: list[float] = []
    traces: set[str] = set()
    held: list[Sequence[int]] = []
    for _ in range(LABS_IN_A_ROW if repetitions > 1 else LABS_IN_A_ROW // 10):
        began_s = time.perf_counter()
        with _star(FEW_HOSTS).simulate(hosts="programs", seed=7) as lab:
            lab["h1"].popen("sleep 1000", stdout=tn.lab.DEVNULL)
            lab["h0"].run(["bash", "-c", "echo hello >/dev/tcp/h1/80"])
            traces.add(lab.trace_hash)
        spans.append(time.perf_counter() - began_s)
        held.append(_held())
    yield Figure(
        f"a lab of {FEW_HOSTS} hosts, again and again", "s", spans, {}, "one trace, nothing left",
        len(traces) == 1 and all(last <= first for first, last in zip(held[0], held[-1], strict=True)),
        note=f"{len(traces)} trace; descriptors, threads and processes after the first {held[0]}, "
        f"after the last {held[-1]}",
    )  # fmt: skip


def _held() -> tuple[int, int, int]:
    """Return how many descriptors, threads and processes this process has."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(children)


def _of_idle(repetitions: int) -> Iterator[Figure]:
    spans: list[float] = []
    for _ in range(repetitions):
        with _star(HOSTS).simulate(hosts="programs") as lab:
            began_s = time.perf_counter()
            lab.run_until(f"{IDLE_S} s")
            spans.append(time.perf_counter() - began_s)
    yield Figure(
        f"{IDLE_S} simulated seconds of {HOSTS} idle hosts", "s", spans, {}, f"at most {IDLE_GOAL_S:g}",
        max(spans) <= IDLE_GOAL_S, strain=max(spans) / IDLE_GOAL_S,
    )  # fmt: skip


def _of_line(repetitions: int) -> Iterator[Figure]:
    """Compare what captures of a line hold with arithmetic; it is the same each time."""
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with tempfile.TemporaryDirectory() as text, net.simulate(hosts="programs", seed=7) as lab:
        pings, flow = Path(text, "pings.pcapng"), Path(text, "flow.pcapng")
        with lab.capture("h1-eth0", pings):
            lab["h1"].run("ping -4 -c 100 -i 0.1 h2", check=True)
        lab["h2"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
        lab.run_until("20 s")
        with lab.capture("h2-eth0", flow, direction="in"):
            lab["h1"].run("iperf3 -c h2 -t 20", check=True)
        seen = analyze_capture(pings, list_packets=10_000).packet_list
        came = analyze_capture(flow, list_packets=100_000).packet_list
    echoes = seen.filter(pl.col("protocol") == "ICMP")
    # A stamp is that of the last bit: between the two are both delays, and the reply on the line.
    reply_us = (int(echoes["length"][0]) + _WIRE_BYTES - _GAP_BYTES) * 8 / 10
    off_us = [float(one) / 1e3 - 20_000 - reply_us for one in echoes["time_ns"].diff()[1::2]]
    yield _exact("round trip of a ping beyond arithmetic", off_us)
    full = came.filter(pl.col("length") == came["length"].max())
    # The first second has the slow start.
    times_ns = full["time_ns"].to_list()[1000:]
    frame_ns = (int(full["length"][0]) + _WIRE_BYTES) * 800
    gaps_ns = [later - earlier for earlier, later in itertools.pairwise(times_ns)]
    yield _exact("spacing of full frames beyond arithmetic", [(median(gaps_ns) - frame_ns) / 1e3])
    whole = [gap for gap in gaps_ns if gap < 1.5 * frame_ns]
    off = abs(frame_ns * len(whole) / sum(whole) - 1) * 100
    yield Figure(
        "long-run rate of a line, off", "%", [off], note=f"over {len(whole)} full frames in a row", deterministic=True,
    ).at_most(RATE_GOAL_PERCENT)  # fmt: skip


def _exact(name: str, off_us: Sequence[float]) -> Figure:
    most = max(abs(one) for one in off_us)
    return Figure(
        name, "us", off_us, {}, f"within {EXACT_GOAL_US:g}", most <= EXACT_GOAL_US, strain=most / EXACT_GOAL_US,
        summary="farthest", deterministic=True,
    )  # fmt: skip


def _of_half_an_hour(repetitions: int) -> Iterator[Figure]:
    runs = [_half_an_hour() for _ in range(repetitions)]
    spans, traces = [took_s for took_s, _, _ in runs], {trace for _, _, trace in runs}
    answered = mean(share for _, share, _ in runs)
    yield Figure(
        f"{LONG_S} simulated seconds of a ping a second beside 1 Mbit/s of UDP", "s", spans, {}, "ends, with one trace",
        len(traces) == 1 and answered == 1, note=f"{100 * answered:g} % of the pings answered",
    )  # fmt: skip


def _half_an_hour() -> tuple[float, float, str]:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", delay="10 ms")
    with net.simulate(hosts="programs", seed=7) as lab:
        lab["h2"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
        lab.run_until("1 s")
        began_s = time.perf_counter()
        load = lab["h1"].popen(f"iperf3 -c h2 -u -b 1M -t {LONG_S - 10} -i 0", stdout=tn.lab.DEVNULL)
        said = lab["h2"].run(f"ping -q -c {LONG_S - 10} h1", check=True).stdout
        if load.wait().returncode:
            raise OSError("the client of iperf3 failed")
        lab.run_until(f"{LONG_S} s")
        sent, received = (int(word.split()[0]) for word in said.splitlines()[-2].split(", ")[:2])
        return time.perf_counter() - began_s, received / sent, lab.trace_hash
