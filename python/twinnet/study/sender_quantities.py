"""Quantities of senders: how exactly they kept what was asked for, what that cost, how fairly they shared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["SENDER_COLUMNS", "jain_index", "of_senders"]

Vector = npt.NDArray[np.float64]

SENDER_COLUMNS = {
    "rate_error": ("requested_packets_per_second", 1.0),
    "gap_error": ("send_gap_error_p99_ms", 1e-3),
    "processor_time": ("send_processors", 1.0),
    "context_switches": ("send_switches_per_second", 1.0),
    "together": ("send_together_share", 1.0),
}
"""By measurement: the column of the table `flows` that it needs, and its size in the measurement's unit."""


def of_senders(rows: pl.DataFrame, of: str) -> Vector:
    """Return the quantity `of` of each sender in `rows` of the table `flows`.

    Raises
    ------
    LookupError
        No sender told it.
    """
    column, size = SENDER_COLUMNS[of]
    if column not in rows.columns:
        raise LookupError(f"no {of} was counted when this run was made")
    seen = rows.filter(pl.col("role").is_in(["source", "client"]) & pl.col(column).is_not_null())
    if of == "rate_error":
        seen = seen.filter(pl.col("achieved_packets_per_second").is_not_null())
        found = (seen["achieved_packets_per_second"] / seen[column] - 1).to_numpy()
    else:
        found = seen[column].to_numpy() * size
    if found.size == 0:
        raise LookupError(f"no sender told its {of}; 'rate_error' and 'gap_error' need a rate, the rest a 'generator'")
    return found


def jain_index(rates: Vector) -> float:
    """Return the index of Jain, Chiu and Hawe (DEC-TR-301, 1984): 1 when all rates are equal, 1 over their number when
    one has all."""
    return float(rates.sum() ** 2 / (rates.size * (rates**2).sum()))
