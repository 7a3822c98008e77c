"""A delay and losses for what goes through a class alone, as netem has them within another discipline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from twinnet.errors import BadQueue
from twinnet.qos.queue import Queue
from twinnet.qos.queue_settings import Frames
from twinnet.settings import ShareSetting, duration
from twinnet.units import Duration

__all__ = ["Delay"]

_Wait = Annotated[Duration, duration(0, 10**15, BadQueue)]


@dataclass(frozen=True)
class Delay(Queue):
    """A delay and losses: each frame is lost with one probability, or waits.

    Links have delays and losses of their own, for all frames; this is for those of a class.

    Parameters
    ----------
    delay
        How long frames are kept, with unit.
    jitter
        The most that the delay of a frame differs from it, evenly, with unit. It may reorder frames.
    loss
        The share of frames that are lost, such as ``"1 %"``; they count as early drops.
    limit_frames
        The most frames that wait.
    """

    kind: Literal["delay"] = field(default="delay", kw_only=True, repr=False)
    delay: _Wait = "0 s"
    jitter: _Wait = "0 s"
    loss: Annotated[str | Literal[0], ShareSetting(BadQueue)] = 0
    limit_frames: Frames = 1000
