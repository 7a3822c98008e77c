"""A stand-in for the lab: a fluid model of TCP and UDP at one port, shared or separate; it gives tables at once."""

import random
from collections.abc import Callable
from typing import Any

from fidelity_sources import SOURCES
from twinnet.results.tables import table
from twinnet.study.judgement import judged_record
from twinnet.study.plan import PlannedRun
from twinnet.study.runner import Progress
from twinnet.study.store import Measured

STEP_S = 0.125
PAYLOAD_SHARE = {"tcp": 1448 / 1538, "udp": 1470 / 1536, "http": 1448 / 1538}


def fluid_shares(level: str, udp_sends: bool, http_sends: bool) -> dict[str, float]:
    """The share of the link that each protocol has on the wire."""
    if level == "shared":
        if udp_sends:
            return {"udp": 0.995, "tcp": 0.004, "http": 0.001 if http_sends else 0.0}
        return {"udp": 0.0, "tcp": 0.75 if http_sends else 1.0, "http": 0.25 if http_sends else 0.0}
    http = 0.004 if http_sends else 0.0
    return {"udp": 0.498 if udp_sends else 0.0, "tcp": 0.498 if udp_sends else 0.512, "http": http}


class FluidLab:
    """An executor of the study tcp-udp-queues without a network."""

    def __init__(
        self,
        verdict: str = "valid",
        before: Callable[[PlannedRun, Progress], None] | None = None,
        share: Callable[[str, str, float], float] = lambda clock, protocol, time_s: 1.0,
    ) -> None:
        self.verdict = verdict
        self.share = share
        self.before = before
        self.made: list[str] = []

    def expected_s(self, run: PlannedRun) -> float:
        return 0.01

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        if self.before is not None:
            self.before(run, progress)
        self.made.append(run.id)
        noise = random.Random(run.seed)
        specification = run.specification
        by_name = {entry.name: entry for entry in specification.traffic}
        link_bps = 2 * (by_name["udp"].rate_bps or 0) / 1.024
        udp_s, tcp_s = ((by_name[name].duration_ps or 0) / 1e12 for name in ("udp", "tcp"))
        intervals, totals, samples = [], {}, []
        http_left = float(by_name["http"].sends.get("bytes") or 0)
        flows = [("tcp", "h1"), ("tcp", "h3"), ("udp", "h1"), ("udp", "h3"), ("http", "h2")]
        for step in range(round(tcp_s / STEP_S)):
            start_s = step * STEP_S
            shares = fluid_shares(run.levels["queues"], start_s < udp_s, http_left > 0)
            wire = 0.0
            for number, (protocol, host) in enumerate(flows, 1):
                senders = 1 if protocol == "http" else 2
                bps = link_bps * shares[protocol] / senders * PAYLOAD_SHARE[protocol] * noise.gauss(1, 0.003)
                bps *= self.share(specification.clock, protocol, start_s)
                size = round(max(0.0, bps) * STEP_S / 8)
                if protocol == "http":
                    size = min(size, round(http_left))
                    http_left -= size
                totals[number] = totals.get(number, 0) + size
                wire += size / PAYLOAD_SHARE[protocol]
                packets = size // 1470 if protocol == "udp" else None
                intervals.append(
                    {"flow": number, "name": protocol, "protocol": protocol, "from_host": host, "start_s": start_s}
                    | {"role": "client" if protocol == "http" else "sink", "length_s": STEP_S}
                    | {"payload_bytes": size, "packets": packets}
                )
            samples.append(
                {"port": "s1-eth4", "start_s": start_s, "length_s": STEP_S, "frames": round(wire / 1538)}
                | {"link_bytes": round(wire * 1514 / 1538), "wire_bytes": round(wire), "drops": 0, "backlog_bytes": 0}
            )
        rows = [
            {"flow": number, "name": protocol, "tool": "fluid", "protocol": protocol}
            | {"from_host": host, "to_host": "h4"}
            | {"role": "client" if protocol == "http" else "sink", "start_s": 0.0}
            | {"end_s": udp_s if protocol == "udp" else tcp_s, "payload_bytes": totals[number]}
            | {"packets": totals[number] // 1470 if protocol == "udp" else None}
            | {"lost_packets": totals[number] // 20000 if protocol == "udp" else None}
            for number, (protocol, host) in enumerate(flows, 1)
        ]
        record, looks = self._record(tcp_s), _looks(tcp_s)
        if specification.clock == "virtual":
            record = {"clock": "virtual", "elapsed_ps": round(tcp_s * 1e12), "events": 5000, "trace_hash": "0" * 16}
            looks = []
        fidelity = judged_record(record, specification.fidelity)
        return Measured(
            table("flows", rows),
            table("intervals", intervals),
            table("port_samples", samples),
            fidelity,
            {"fake": True},
            table("fidelity", looks),
        )

    def _record(self, duration_s: float) -> dict[str, Any]:
        p999_ns = {"valid": 60_000, "doubtful": 2_000_000, "invalid": 20_000_000}[self.verdict]
        lateness = {"p50": 900, "p90": 4000, "p99": 20_000, "p999": p999_ns, "max": 2 * p999_ns, "mean": 1500.0}
        record = {"elapsed_ps": round(duration_s * 1e12), "handed_over": 100_000, "lateness_ns": lateness, "cores": 2}
        return {**record, "sources": dict(SOURCES)}


def _looks(duration_s: float) -> list[dict[str, Any]]:
    return [
        {"start_s": second * 0.5, "length_s": 0.5, "slipped_ms": 3.0 * second, "lost_frames": second, "steal_ms": 0.5}
        | {"handed_over": 1000, "lateness_p99_ms": 0.1 * second, "lateness_max_ms": 1.0, "slips": 1}
        for second in range(round(2 * duration_s))
    ]
