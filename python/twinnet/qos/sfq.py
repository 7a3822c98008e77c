"""Stochastic fairness queueing (McKenney 1990): flows share equally, without configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames, Quantum
from twinnet.settings import Whole, duration

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

    kind: Literal["sfq"] = field(default="sfq", kw_only=True, repr=False)
    limit_frames: Frames = 127
    buckets: Annotated[int, Whole(BadQueue, 127, 65_536)] = 1024
    quantum: Quantum = "1514 B"
    perturb: Annotated[str, duration(10**6, 10**15, BadQueue, or_zero=True)] = "10 s"
