"""What one run of a simulator gave: the line of JSON that ours and ns-3's programs print alike."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, fields

__all__ = ["Outcome", "growth", "jain_index", "outcome_of"]

_PATIENCE_S = 1800


@dataclass(frozen=True)
class Outcome:
    """One run of a scenario.

    Parameters
    ----------
    packet_hops
        Packets that left a device, over all devices.
    delivered_packets
        Packets that arrived where they were sent to.
    mean_delay_s
        From sender to receiver, of UDP datagrams; 0 for TCP.
    setup_s, run_s
        How long it took to build everything, and then to let the virtual time pass.
    processor_s
        The processor time of that run.
    bare_bytes, built_bytes, ended_bytes, peak_bytes
        The process's resident memory before anything was built, before the run, after it, and at most.
    events
        Events that the simulator handled.
    goodputs_bps
        Payload per virtual second of each flow.
    """

    packet_hops: int
    delivered_packets: int
    mean_delay_s: float
    setup_s: float
    run_s: float
    processor_s: float
    bare_bytes: int
    built_bytes: int
    ended_bytes: int
    peak_bytes: int
    events: int
    goodputs_bps: Sequence[float]

    @classmethod
    def from_text(cls, text: str) -> Outcome:
        """Return the outcome in the last line of `text`; raises `OSError` when there is none."""
        try:
            told = json.loads(text.strip().splitlines()[-1])
            return cls(**{field.name: told[field.name] for field in fields(cls)})
        except (IndexError, KeyError, TypeError, json.JSONDecodeError):
            raise OSError(f"a simulator told no outcome: {text.strip()[-300:]}") from None

    @property
    def hops_per_second(self) -> float:
        """Packet-hops per second of one processor: of real time, when nobody else wants it."""
        return self.packet_hops / self.processor_s if self.processor_s > 0 else 0.0

    @property
    def goodput_bps(self) -> float:
        """The goodput of all flows together."""
        return sum(self.goodputs_bps)


def jain_index(shares: Sequence[float]) -> float:
    """Return how evenly `shares` are shared: 1 when all are equal, 1 / n when one has all.

    R. Jain, D. Chiu, W. Hawe, *A quantitative measure of fairness*, DEC TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def growth(small: float, large: float, small_count: float, large_count: float) -> float:
    """Return by how much a quantity grows for one more of what is counted."""
    return (large - small) / (large_count - small_count)


def outcome_of(command: Sequence[str]) -> Outcome:
    """Run a simulator's `command` and return its outcome; raises `OSError` when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode != 0:
        raise OSError(f"{command[0]} failed with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return Outcome.from_text(done.stdout)
