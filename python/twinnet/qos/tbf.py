"""Token bucket: a long-run rate and the burst that may exceed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.qos.queue import Queue, checked_inner, optional_spec
from twinnet.qos.queue_settings import Burst, Rate

__all__ = ["Tbf"]


@dataclass(frozen=True)
class Tbf(Queue):
    """A token bucket before a queue.

    Parameters
    ----------
    rate
        The rate of tokens, with unit.
    burst
        The bucket's depth, with unit; at least one full frame with a VLAN tag, 1518 B.
    queue
        Where frames wait for tokens; default: a FIFO of 1000 frames.
    """

    kind: Literal["tbf"] = field(default="tbf", kw_only=True, repr=False)
    rate: Rate
    burst: Burst
    queue: Queue | None = None

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        checked_inner(self.queue, "the queue")
        return super().to_spec() | {"queue": optional_spec(self.queue)}
