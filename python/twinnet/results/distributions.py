"""The distributions in reports of flows: of times, of values with a sign, of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.results.read_fields import ReportedIfAny
from twinnet.results.shown import ShownInUnits, span

__all__ = ["Lengths", "ReorderDensity", "Spread", "Summary"]


@dataclass(frozen=True, repr=False)
class Summary(ShownInUnits):
    """The distribution of a time, in picoseconds; ``None`` where a program does not say.

    Parameters
    ----------
    count
        How many values.
    mean, min, max, std, p50, p90, p99
        What is said of them.
    """

    count: int
    mean: float
    min: float
    max: float
    std: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Summary | None:
        """Return the summary in the form of the lab protocol, ``None`` when nothing was measured."""
        if not spec or not spec.get("count"):
            return None
        return cls(**{name: spec.get(name) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Return mean, least and greatest with their unit: ``1.31 ms (0.9 to 2.2)``."""
        return span(self.mean, self.min, self.max)


@dataclass(frozen=True)
class Spread(ReportedIfAny):
    """The distribution of a value that has a sign, or of a rate.

    Parameters
    ----------
    count, mean, min, max, std
        What is said of it.
    """

    count: int
    mean: float
    min: float
    max: float
    std: float


@dataclass(frozen=True)
class Lengths(ReportedIfAny):
    """A histogram of lengths, in packets.

    Parameters
    ----------
    count, mean, max
        How many, and of which lengths.
    histogram
        Pairs: a length, and how many are no longer than it but longer than the one before. Up to 8 each has its own.
    """

    count: int
    mean: float
    max: int
    histogram: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ReorderDensity(ReportedIfAny):
    """A histogram of the displacement of packets from their places in the order of sending (reorder density, RFC 5236).

    Parameters
    ----------
    threshold
        The displacement threshold in packets: one that is later than that counts as lost.
    packets
        How many the density is of.
    beyond
        How many were displaced by more than the threshold.
    histogram
        Pairs: a displacement in packets, negative for early ones, and how many packets had it.
    """

    threshold: int
    packets: int
    beyond: int
    histogram: tuple[tuple[int, int], ...]

    @property
    def shares(self) -> dict[int, float]:
        """RD: the share of packets by displacement; empty before the first packet."""
        return {displacement: number / self.packets for displacement, number in self.histogram}
