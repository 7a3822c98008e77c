"""Strict priority: the first band that has a frame sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from twinnet.errors import BadQueue
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue, checked_count, checked_inner
from twinnet.qos.queue_settings import MOST_CLASSES

__all__ = ["Priority"]


@dataclass(frozen=True)
class Priority(Queue):
    """Bands served in order; band N takes the frames with OpenFlow queue number N, others go to band 0.

    Parameters
    ----------
    bands
        The queue of each band, first the one that is always served first. 1 to 1024.
    """

    kind: Literal["priority"] = field(default="priority", kw_only=True, repr=False)
    bands: Sequence[Queue] = field(default_factory=lambda: (Fifo(), Fifo(), Fifo()))

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        checked_count(len(self.bands), f"a priority queue has {len(self.bands)} bands", MOST_CLASSES)
        for number, band in enumerate(self.bands):
            if band is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise BadQueue(f"band {number} is None", "give a queue such as tn.qos.Fifo()")
            checked_inner(band, f"band {number}")
        return {"kind": self.discipline, "bands": [band.to_spec() for band in self.bands]}
