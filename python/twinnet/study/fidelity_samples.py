"""The fidelity of a lab over time: the growth of its fidelity record from one sample to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.results.fidelity import FidelityRecord

__all__ = ["FidelitySamples"]

_PS_PER_MS = 1e9
_NS_PER_MS = 1e6
_PS_PER_SECOND = 1e12


class FidelitySamples:
    """Collects rows for the table `fidelity`.

    Parameters
    ----------
    interval_ps
        The shortest time between two rows; what is seen sooner is passed over.
    begin_ps
        The moment of the lab's clock at which its record began.
    """

    def __init__(self, interval_ps: int, begin_ps: int) -> None:
        self.interval_ps = interval_ps
        self.last_ps: int = begin_ps
        self.last: FidelityRecord = FidelityRecord.from_spec({})
        self.rows: list[dict[str, Any]] = []

    def due(self, now_ps: int) -> bool:
        """Return True if the next sample is due."""
        return now_ps - self.last_ps >= self.interval_ps

    def take(self, record: FidelityRecord, now_ps: int, zero_ps: int) -> None:
        """Add what `record` has grown by since the last look, as a row from then until `now_ps`."""
        if now_ps <= self.last_ps:
            return
        before, self.last = self.last, record
        late = _growth(before.lateness_ns.histogram, record.lateness_ns.histogram)
        self.rows.append(
            {
                "start_s": (self.last_ps - zero_ps) / _PS_PER_SECOND,
                "length_s": (now_ps - self.last_ps) / _PS_PER_SECOND,
                "handed_over": record.handed_over - before.handed_over,
                "lateness_p99_ms": _quantile_ms(late, 0.99),
                "lateness_max_ms": _quantile_ms(late, 1.0),
                "slipped_ms": (record.slipped_ps - before.slipped_ps) / _PS_PER_MS,
                "slips": record.slips - before.slips,
                "lost_frames": record.machine_losses - before.machine_losses,
                "steal_ms": (record.steal_s - before.steal_s) * 1000,
                "cpu_ms": (sum(record.cpu_s.values()) - sum(before.cpu_s.values())) * 1000,
            }
        )
        self.last_ps = now_ps


def _growth(before: tuple[tuple[int, int], ...], after: tuple[tuple[int, int], ...]) -> Mapping[int, int]:
    """Return the number of values that came into each bin, by its upper bound."""
    known = dict(before)
    grown = {upper: count - known.get(upper, 0) for upper, count in after}
    return {upper: count for upper, count in sorted(grown.items()) if count > 0}


def _quantile_ms(bins: Mapping[int, int], share: float) -> float | None:
    """The upper bound of the bin that the quantile lies in; `None` when nothing was handed over."""
    wanted, seen = share * sum(bins.values()), 0
    for upper, count in bins.items():
        seen += count
        if seen >= wanted:
            return upper / _NS_PER_MS
    return None
