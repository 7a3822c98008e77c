"""Flow queueing with controlled delay (RFC 8290): a queue and a CoDel for each flow, sparse flows first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinnet.qos.queue import Queue
from twinnet.qos.queue_ranges import MOST_FRAMES, judged_bytes, quantum_bytes, span_ps, switch, whole_number

__all__ = ["FqCodel"]


@dataclass(frozen=True)
class FqCodel(Queue):
    """Flows take turns, each under a CoDel of its own.

    Parameters
    ----------
    limit_frames
        The most frames that wait in all queues together.
    limit
        The most data that waits in all queues together, with unit.
    flows
        Queues that flows are hashed into, 1 to 65536.
    quantum
        What a queue may send in a turn, with unit.
    target
        CoDel's standing delay that is accepted.
    interval
        CoDel's interval.
    ecn
        Frames whose sender understands marks are marked instead.
    """

    limit_frames: int = 10_240
    limit: str = "32 MiB"
    flows: int = 1024
    quantum: str = "1514 B"
    target: str = "5 ms"
    interval: str = "100 ms"
    ecn: bool = True

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {
            "kind": "fq_codel",
            "limit_frames": whole_number(self.limit_frames, "limit_frames", 1, MOST_FRAMES),
            "limit_bytes": judged_bytes(self.limit, "limit"),
            "flows": whole_number(self.flows, "flows", 1, 65_536),
            "quantum_bytes": quantum_bytes(self.quantum),
            "target_ps": span_ps(self.target, "target"),
            "interval_ps": span_ps(self.interval, "interval"),
            "ecn": switch(self.ecn, "ecn"),
        }
