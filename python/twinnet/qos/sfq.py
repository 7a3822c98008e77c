"""Stochastic fairness queueing (McKenney 1990): flows share equally, without configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.qos.queue import Queue
from twinnet.qos.queue_ranges import MOST_FRAMES, quantum_bytes, span_ps, whole_number
from twinnet.units import duration_ps

__all__ = ["Sfq"]


@dataclass(frozen=True)
class Sfq(Queue):
    """Flows are hashed into buckets that take turns; when all is full, the longest bucket pays.

    Parameters
    ----------
    limit_frames
        The most frames that wait in all buckets together.
    buckets
        How many there are, 127 to 65536.
    quantum
        What a bucket may send in a turn, with unit.
    perturb
        How often the hash changes, so that flows that share a bucket part; ``"0 s"`` is never.
    """

    limit_frames: int = 127
    buckets: int = 1024
    quantum: str = "1514 B"
    perturb: str = "10 s"

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        never = duration_ps(self.perturb, "perturb") == 0
        return {
            "kind": "sfq",
            "limit_frames": whole_number(self.limit_frames, "limit_frames", 1, MOST_FRAMES),
            "buckets": whole_number(self.buckets, "buckets", 127, 65_536),
            "quantum_bytes": quantum_bytes(self.quantum),
            "perturb_ps": 0 if never else span_ps(self.perturb, "perturb"),
        }
