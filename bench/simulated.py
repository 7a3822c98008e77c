"""``python -m bench.simulated SCENARIO ...``: one scenario on the virtual clock, told in the form of `Outcome`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from twinnet.results.flow_report import FlowReport
from twinnet.units import Picoseconds

from bench.outcome import Outcome
from bench.scenarios import Scenario, dumbbell, fat_tree, flows_of_two, tree


def main() -> int:
    """Simulate what the arguments name and print the outcome."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulated", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="virtual time that passes")
    kinds = parser.add_subparsers(dest="kind", required=True)
    bell = kinds.add_parser("dumbbell")
    bell.add_argument("--traffic", choices=("udp", "tcp"), default="udp")
    bell.add_argument("--stagger-ms", type=int, default=100, help="between the beginnings of TCP flows")
    fat = kinds.add_parser("fat_tree")
    fat.add_argument("--k", type=int, default=8, choices=(4, 8, 16))
    fat.add_argument("--delay", default="0 s", help="propagation delay of every link")
    large = kinds.add_parser("tree")
    large.add_argument("--hosts", type=int, default=1000)
    large.add_argument("--packets-per-second", type=float, default=4.0)
    several = kinds.add_parser("flows")
    several.add_argument("--protocol", choices=("udp", "tcp"), default="udp")
    several.add_argument("--flows", type=int, default=10)
    wanted = parser.parse_args()
    bare_bytes = memory_bytes("VmRSS")
    begin_s = time.perf_counter()
    if wanted.kind == "dumbbell":
        scenario = dumbbell(wanted.traffic, wanted.seconds, wanted.stagger_ms * 10**9)
    elif wanted.kind == "fat_tree":
        scenario = fat_tree(wanted.k, wanted.seconds, wanted.delay)
    elif wanted.kind == "flows":
        scenario = flows_of_two(wanted.protocol, wanted.flows, wanted.seconds)
    else:
        scenario = tree(wanted.hosts, wanted.packets_per_second, wanted.seconds)
    print(json.dumps(asdict(simulate(scenario, bare_bytes, begin_s))))
    return 0


def simulate(scenario: Scenario, bare_bytes: int, begin_s: float) -> Outcome:
    """Return the outcome of `scenario`, whose building began at `begin_s`, when the process had `bare_bytes`."""
    with scenario.network.simulate(seed=1, static_neighbours=True) as lab:
        for planned in scenario.traffic:
            lab.start(planned.traffic, at=Picoseconds(planned.at_ps))
        built_s, built_bytes = time.perf_counter(), memory_bytes("VmRSS")
        processor_s = time.process_time()
        lab.run_until(f"{scenario.seconds} s")
        processor_s = time.process_time() - processor_s
        ended_s, ended_bytes, peak_bytes = time.perf_counter(), memory_bytes("VmRSS"), memory_bytes("VmHWM")
        flows = [flow for report in lab.reports() for flow in report.flows if flow.role == "sink"]
        record = lab.connection.fidelity()
        return Outcome(
            packet_hops=sum(_left(link) for link in lab.links()),
            delivered_packets=sum(flow.packets or 0 for flow in flows),
            mean_delay_s=mean_delay_s(flows),
            setup_s=built_s - begin_s,
            run_s=ended_s - built_s,
            processor_s=processor_s,
            bare_bytes=bare_bytes,
            built_bytes=built_bytes,
            ended_bytes=ended_bytes,
            peak_bytes=peak_bytes,
            events=int(record["events"]),
            goodputs_bps=[8 * (flow.bytes or 0) / scenario.seconds for flow in flows],
        )


def mean_delay_s(flows: list[FlowReport]) -> float:
    """Return the mean one-way delay of all datagrams of `flows`; 0 when none was measured."""
    measured = [flow.delay for flow in flows if flow.delay is not None]
    count = sum(delay.count for delay in measured)
    return sum(delay.mean * delay.count for delay in measured) / count / 1e12 if count else 0.0


def _left(link: Mapping[str, Any]) -> int:
    """Return the frames that left both ends of a link."""
    return sum(int(link[way]["counters"]["frames"]) for way in ("ab", "ba"))


def memory_bytes(what: str) -> int:
    """Return the line `what` of this process's status, which is in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())
