"""One network moved by one thread of the fabric and by several, by turns.

``python -m bench.fabric_threads [--rounds N]`` prints a table: two rows of switches with pairs of hosts, each pair
offering twice what its links carry, with all traffic inside a part (``local``), or all of it over the one link between
the rows (``crossing``). On a machine with two processors it shows that nothing is lost by it, not what it gains.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import twinnet as tn
from twinnet.lab.lab import Lab

from bench.machine import describe

__all__ = ["Outcome", "Scenario", "measure", "network"]

_PAIRS = 10
_LINK = "10 Mbit"
_SENDERS = "20 Mbit"
_DURATION_S = 3
_PAYLOAD_BYTES = 1470


@dataclass(frozen=True)
class Scenario:
    """Where the traffic goes: within the parts, or between them."""

    name: str
    crossing: bool


@dataclass(frozen=True)
class Outcome:
    """What one run came to.

    Parameters
    ----------
    rate_off
        By what share of the line rate the flows were off, on average.
    lateness_p99_us
        Of hand-overs.
    cpu_us
        Time of the fabric's threads for each frame that was handed over, in microseconds.
    largest_share, messages, messages_late, dropped
        As the record tells them.
    verdict
        As the record has it.
    """

    rate_off: float
    lateness_p99_us: float
    cpu_us: float
    largest_share: float
    messages: int
    messages_late: int
    dropped: int
    verdict: str


def network() -> tn.Network:
    """Return two switches with ten pairs of hosts' ends each, and a link of 1 Gbit/s and 1 ms between them."""
    net = tn.Network(seed=5)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, letter in ((left, "l"), (right, "r")):
        for number in range(1, 2 * _PAIRS + 1):
            net.link(net.host(f"{letter}{number}"), switch, rate=_LINK)
    net.link(left, right, rate="1 Gbit", delay="1 ms")
    return net


def _carried(lab: Lab) -> list[int]:
    """Return the bytes on the wire to each receiver so far."""
    receivers = {f"s{switch}-eth{_PAIRS + number}" for switch in (1, 2) for number in range(1, _PAIRS + 1)}
    return [row["counters"]["wire_bytes"] for row in lab.ports() if row["port"] in receivers]


def measure(threads: int, scenario: Scenario) -> Outcome:
    """Run the scenario once with so many threads."""
    with network().emulate(fabric_threads=threads) as lab:
        pairs = []
        for number in range(1, _PAIRS + 1):
            for here, there in (("l", "r"), ("r", "l")):
                receiver = f"{there if scenario.crossing else here}{_PAIRS + number}"
                pairs.append((f"{here}{number}", receiver))
        flows = [
            lab.start(tn.apps.udp(a, b, rate=_SENDERS, payload=f"{_PAYLOAD_BYTES} B", duration=f"{_DURATION_S} s"))
            for a, b in pairs
        ]
        lab.run_until("500 ms")
        lab.fidelity(reset=True)
        begun_s, before = lab.now(), _carried(lab)
        lab.run_until(f"{_DURATION_S - 0.5} s")
        ended_s, after = lab.now(), _carried(lab)
        record = lab.fidelity()
        lab.wait(flows)
    best_bps = 1e7
    rates = [(now - then) * 8 / (ended_s - begun_s) for then, now in zip(before, after, strict=True)]
    return Outcome(
        rate_off=statistics.mean(rates) / best_bps - 1,
        lateness_p99_us=record.lateness_ns.p99 / 1e3,
        cpu_us=record.cpu_s["fabric"] / max(record.handed_over, 1) * 1e6,
        largest_share=record.parts.largest_share,
        messages=record.parts.messages,
        messages_late=record.parts.messages_late,
        dropped=record.parts.frames_dropped + record.machine_losses,
        verdict=record.verdict().state,
    )


def _row(scenario: Scenario, threads: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    def spread(name: str, digits: int) -> str:
        values = sorted(getattr(outcome, name) for outcome in outcomes)
        return f"{statistics.median(values):.{digits}f} ({values[0]:.{digits}f} to {values[-1]:.{digits}f})"

    return {
        "traffic": scenario.name,
        "threads": threads,
        "n": len(outcomes),
        "rate off %": " · ".join(f"{outcome.rate_off * 100:+.2f}" for outcome in outcomes),
        "lateness p99 us": spread("lateness_p99_us", 0),
        "fabric us/frame": spread("cpu_us", 2),
        "largest share": spread("largest_share", 2),
        "messages": spread("messages", 0),
        "late": spread("messages_late", 0),
        "lost": sum(outcome.dropped for outcome in outcomes),
        "verdicts": ", ".join(outcome.verdict for outcome in outcomes),
    }


def main() -> None:
    """Print the machine and a row for each scenario and number of threads."""
    parser = argparse.ArgumentParser(prog="python -m bench.fabric_threads", description="One and several threads.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    print(json.dumps(describe(), default=str))
    scenarios = (Scenario("local", crossing=False), Scenario("crossing", crossing=True))
    outcomes: dict[tuple[Scenario, int], list[Outcome]] = {}
    for _ in range(asked.rounds):
        for scenario in scenarios:
            for threads in asked.threads:
                outcomes.setdefault((scenario, threads), []).append(measure(threads, scenario))
    for (scenario, threads), several in outcomes.items():
        print(json.dumps(_row(scenario, threads, several), ensure_ascii=False))


if __name__ == "__main__":
    main()
