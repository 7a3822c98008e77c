"""The grain of a value, the least step by which what a run counts can change it; and what a file says of chance.

A loss changes by one datagram of those that were sent, a throughput by one frame in its interval, a time by that of one
frame on the slowest link in one of the datagrams or flows that it is of. Where chance has a part in runs and all have
one value, they differ by less than a grain, and not by nothing: a sample has at least the spread of its grain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from twinnet.study.network_of import network_of
from twinnet.study.what_varies import what_varies

if TYPE_CHECKING:
    from twinnet.study.plan import PlannedRun

__all__ = ["FRAME_BYTES", "SHARES_OF_COUNTS", "RunModel"]

FRAME_BYTES = 1538
"""A full frame of Ethernet on the wire, with preamble and gap (IEEE 802.3)."""
SHARES_OF_COUNTS = ("loss", "frame_loss", "reordering", "duplicates", "queue_drops", "queue_marks")
"""Measurements whose value is a share of what was counted."""


@dataclass(frozen=True)
class RunModel:
    """What the study's file says of the runs under one combination of levels.

    Parameters
    ----------
    planned
        One of these runs.
    """

    planned: PlannedRun

    @cached_property
    def is_drawn(self) -> bool:
        """True if chance has a part in the runs, by more than which of two frames goes first that arrive at one
        moment."""
        return bool(what_varies(self.planned))

    @cached_property
    def frame_s(self) -> float | None:
        """The time that a full frame takes on the slowest link, in seconds; `None` where no link has a rate."""
        network = network_of(self.planned.specification, self.planned.levels, self.planned.seed)
        rates = list(_rates(network.to_spec()))
        return FRAME_BYTES * 8 / min(rates) if rates else None


def _rates(spec: Any) -> Iterator[float]:
    """Every rate of a line, in bit/s, in a network's form of the lab protocol."""
    if isinstance(spec, Mapping):
        for key, value in cast("Mapping[str, Any]", spec).items():
            if key == "rate_bps" and value:
                yield float(value)
            yield from _rates(value)
    elif isinstance(spec, list | tuple):
        for one in cast("list[Any]", spec):
            yield from _rates(one)
