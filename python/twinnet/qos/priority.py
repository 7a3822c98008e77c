"""Strict priority: the first band that has a frame sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import BadQueue
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue, checked_inner

__all__ = ["Priority"]


@dataclass(frozen=True)
class Priority(Queue):
    """Bands served in order; band N takes the frames with OpenFlow queue number N, others go to band 0.

    Parameters
    ----------
    bands
        The queue of each band, first the one that is always served first. 1 to 64.
    """

    bands: Sequence[Queue] = field(default_factory=lambda: (Fifo(), Fifo(), Fifo()))

    def __post_init__(self) -> None:
        if not 1 <= len(self.bands) <= 64:
            raise BadQueue(f"a priority queue has {len(self.bands)} bands; allowed are 1 to 64")
        for number, band in enumerate(self.bands):
            if band is None:
                raise BadQueue(f"band {number} is None", "give a queue such as tn.qos.Fifo()")
            checked_inner(band, f"band {number}")

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {"kind": "priority", "bands": [band.to_spec() for band in self.bands]}
