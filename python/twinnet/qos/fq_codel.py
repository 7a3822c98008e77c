"""Flow queueing with controlled delay (RFC 8290): a queue and a CoDel for each flow, sparse flows first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames, Quantum, Span, Switch, Threshold
from twinnet.settings import Whole

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

    kind: Literal["fq_codel"] = field(default="fq_codel", kw_only=True, repr=False)
    limit_frames: Frames = 10_240
    limit: Threshold = "32 MiB"
    flows: Annotated[int, Whole(BadQueue, 1, 65_536)] = 1024
    quantum: Quantum = "1514 B"
    target: Span = "5 ms"
    interval: Span = "100 ms"
    ecn: Switch = True
