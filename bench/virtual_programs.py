"""How fast real programs run on the virtual clock, in a guest kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import mean

import twinnet as tn
from twinnet.guest import find

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Programs on the virtual clock"
MEASURES = ("bench/virtual_programs.py", "crates/lab", "crates/linux", "python/twinnet/guest")

FLOWS = (
    (1, "10 Mbit", "10 ms", 10),
    (1, "100 Mbit", "1 ms", 5),
    (1, "1 Gbit", "100 us", 1),
    (20, "100 Mbit", "1 ms", 2),
)
"""Flows, rate of each one's line, its delay, and simulated seconds."""
GOALS_S = {"10 Mbit": 0.5, "100 Mbit": 1.0, "1 Gbit": 10.0}
TWENTY_GOAL_S = 4.0
HOSTS = 50
READY_GOAL_S = 2.0
IDLE_S = 1000
IDLE_GOAL_S = 0.1


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures; none where there is no kernel for the guest."""
    if find() is None:
        return
    repetitions = 1 if quick else 5
    for flows, rate, delay, seconds in FLOWS:
        quiet.wait()
        runs = [_flow(flows, rate, delay, seconds) for _ in range(repetitions)]
        goal_s = GOALS_S[rate] if flows == 1 else TWENTY_GOAL_S
        spans = [run[0] / seconds for run in runs]
        traces = len({run[3] for run in runs})
        yield Figure(
            f"{flows} iperf3 of {rate}/s",
            "s a simulated second",
            spans,
            {},
            f"at most {goal_s:g}",
            max(spans) <= goal_s and traces == 1,
            strain=max(spans) / goal_s,
            note=f"{mean(run[1] / run[0] for run in runs):.0f} frames a second, {runs[0][2]:.2f} Mbit/s each, "
            f"{traces} trace in {repetitions} runs",
        )
    quiet.wait()
    ready, idle = zip(*(_idle() for _ in range(repetitions)), strict=True)
    yield Figure(
        f"until {HOSTS} hosts with programs stand", "s", list(ready), {}, f"at most {READY_GOAL_S:g}",
        max(ready) <= READY_GOAL_S, strain=max(ready) / READY_GOAL_S,
    )  # fmt: skip
    yield Figure(
        f"{IDLE_S} simulated seconds of {HOSTS} idle hosts", "s", list(idle), {}, f"at most {IDLE_GOAL_S:g}",
        max(idle) <= IDLE_GOAL_S, strain=max(idle) / IDLE_GOAL_S,
    )  # fmt: skip


def _flow(flows: int, rate: str, delay: str, seconds: int) -> tuple[float, int, float, str]:
    """Return the real seconds, frames that arrived, the mean goodput in Mbit/s, and the trace of iperf3 flows side by
    side, each over a line of its own."""
    net = tn.Network()
    for number in range(flows):
        net.link(net.host(f"a{number}"), net.host(f"b{number}"), rate=rate, delay=delay)
    with net.simulate(hosts="programs", seed=7) as lab:
        for number in range(flows):
            lab[f"b{number}"].popen("iperf3 -s -1", stdout=tn.lab.DEVNULL)
        lab.run_until("1 s")
        began_s = time.perf_counter()
        jobs = [lab[f"a{number}"].popen(f"iperf3 -c b{number} -t {seconds} -f k") for number in range(flows)]
        said = [job.communicate()[0].decode() for job in jobs]
        took_s = time.perf_counter() - began_s
        frames = sum(row["counters"]["received_frames"] for row in lab.ports())
        rates = [float(line.split()[6]) / 1e3 for text in said for line in text.splitlines() if "receiver" in line]
        return took_s, frames, mean(rates), lab.trace_hash


def _idle() -> tuple[float, float]:
    """Return the real seconds until all hosts stand, and those that idle time takes."""
    net = tn.Network()
    s1 = net.switch("s1")
    for number in range(HOSTS):
        net.link(net.host(f"h{number}"), s1, rate="1 Gbit", delay="10 us")
    began_s = time.perf_counter()
    with net.simulate(hosts="programs") as lab:
        stand_s = time.perf_counter()
        lab.run_until(f"{IDLE_S} s")
        return stand_s - began_s, time.perf_counter() - stand_s
