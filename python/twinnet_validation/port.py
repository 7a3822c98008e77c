"""One port of the fabric fed with arrivals and sizes of known laws."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet import _core
from twinnet.network.link_settings import DEFAULT_DIRECTION

__all__ = ["Batch", "PortRun", "Record", "Source", "constant", "exponential", "run_port"]

_MOST_GAP_PS = 10**14
LEAST_BYTES = 8
"""A frame carries its number; an exponential size below this becomes this."""


def constant(value: int) -> dict[str, Any]:
    """Return the law of a constant."""
    return {"law": "constant", "value": value}


def exponential(mean: float, least: int = 1, most: int = _MOST_GAP_PS) -> dict[str, Any]:
    """Return an exponential law, rounded up to whole numbers and limited to `least` and `most`."""
    return {"law": "exponential", "mean": mean, "least": least, "most": most}


@dataclass(frozen=True)
class Source:
    """A process of arrivals: so many frames, with gaps in picoseconds and sizes in link-layer bytes."""

    frames: int
    gap_ps: Mapping[str, Any]
    size_bytes: Mapping[str, Any]
    queue: int = 0
    start_ps: int = 0


@dataclass(frozen=True)
class Record:
    """One frame; `received_ps` is `None` when it did not arrive."""

    source: int
    bytes: int
    sent_ps: int
    received_ps: int | None


@dataclass(frozen=True)
class Batch:
    """Sums over one part of the frames."""

    offered: int
    delivered: int
    wait_ps: int

    @property
    def mean_wait_s(self) -> float:
        """Mean wait of the frames that arrived."""
        return self.wait_ps / self.delivered / 1e12

    @property
    def lost_share(self) -> float:
        """Share of the frames that did not arrive."""
        return 1 - self.delivered / self.offered


@dataclass(frozen=True)
class PortRun:
    """The result of a run at a port."""

    batches: list[Batch]
    records: list[Record] = field(default_factory=list[Record])

    def rate_bps(self, source: int, from_s: float, until_s: float) -> float:
        """Return the link-layer rate at which frames of `source` came out between two moments."""
        first, last = from_s * 1e12, until_s * 1e12
        arrived = sum(
            one.bytes
            for one in self.records
            if one.source == source and one.received_ps is not None and first < one.received_ps <= last
        )
        return arrived * 8 / (until_s - from_s)


def run_port(
    sources: Sequence[Source],
    queue: Mapping[str, Any],
    *,
    rate_bps: int | None,
    batches: int = 1,
    records: bool = False,
    seed: int = 1,
    **direction: Any,
) -> PortRun:
    """Run the experiment. Frames cost on the wire what they have in bytes (`framing` none) if nothing else is said.

    Parameters
    ----------
    sources, queue
        What arrives, and what it waits in, in the form of the lab protocol.
    rate_bps
        Of the serialiser; `None` when frames leave at once.
    batches, records
        Into how many parts the means are divided; whether every frame is wanted.
    seed
        Of all randomness.
    direction
        Further settings of the line, in the form of the lab protocol.
    """
    experiment = {
        "seed": seed,
        "direction": {**DEFAULT_DIRECTION, "framing": "none", "rate_bps": rate_bps, **direction},
        "queue": queue,
        "sources": [{**vars(source)} for source in sources],
        "batches": batches,
        "records": records,
    }
    report = json.loads(_core.port_experiment(json.dumps(experiment)))
    return PortRun([Batch(**one) for one in report["batches"]], [Record(**one) for one in report["records"]])
