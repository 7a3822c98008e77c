"""Proportional integral controller enhanced (RFC 8033): a probability that holds the delay at its target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames, Span, Switch
from twinnet.settings import duration

__all__ = ["Pie"]


@dataclass(frozen=True)
class Pie(Queue):
    """Arriving frames are dropped with a probability that follows the delay and where it goes.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    target
        The delay that is aimed at, with unit.
    update
        How often the probability is set; at least 1 ms.
    burst
        For so long after a quiet time nothing is dropped.
    ecn
        Frames whose sender understands marks are marked instead while the probability is below 10 %.
    """

    kind: Literal["pie"] = field(default="pie", kw_only=True, repr=False)
    limit_frames: Frames = 1000
    target: Span = "15 ms"
    update: Annotated[str, duration(10**9, 10**15, BadQueue)] = "15 ms"
    burst: Annotated[str, duration(10**6, 10**15, BadQueue, or_zero=True)] = "150 ms"
    ecn: Switch = False
