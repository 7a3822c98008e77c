"""Controlled delay (RFC 8289): drops by how long frames have waited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames, Span, Switch

__all__ = ["Codel"]


@dataclass(frozen=True)
class Codel(Queue):
    """Drops when the delay has lain above a target for an interval, and more often as long as it does.

    Parameters
    ----------
    limit_frames
        The most frames that wait.
    target
        The standing delay that is accepted, with unit.
    interval
        For how long more is accepted: about the longest usual round trip.
    ecn
        Frames whose sender understands marks are marked instead.
    """

    kind: Literal["codel"] = field(default="codel", kw_only=True, repr=False)
    limit_frames: Frames = 1000
    target: Span = "5 ms"
    interval: Span = "100 ms"
    ecn: Switch = False
