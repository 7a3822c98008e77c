"""Transfers that end when all has arrived: how long they took, and how many have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinnet.study.value_functions import value_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = ["completion_time", "completion_times", "unfinished"]


def completion_times(rows: pl.DataFrame) -> Vector:
    """The times from the start of each transfer to the arrival of its last byte, in seconds; of those that ended."""
    import polars as pl

    ended = _transfers(rows).filter(pl.col("completed"))
    return (ended["end"] - ended["start"]).to_numpy()


def unfinished(rows: pl.DataFrame) -> int:
    """How many transfers had not ended when the run did."""
    return int((~_transfers(rows)["completed"]).sum())


def completion_time(rows: pl.DataFrame, function: str) -> float:
    """The mean or another function of the times; raises `LookupError` where a transfer has not ended."""
    missing = unfinished(rows)
    if missing:
        raise LookupError(
            f"{missing} of {_transfers(rows).height} transfers had not ended; percentiles and shares count them, as "
            f"infinitely long, and {function} cannot"
        )
    return value_of(function, None, completion_times(rows))


def _transfers(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each transfer: when its source began, when its receiver ended, and whether all had arrived."""
    import polars as pl

    if "completed" not in rows.columns:
        raise LookupError("the ends of transfers were not recorded when this run was made")
    meant = rows.filter(pl.col("completed").is_not_null())
    if meant.is_empty():
        raise LookupError("no transfer has an end of its own: give TCP 'bytes', or HTTP no 'duration'")
    return meant.group_by("name", "from_host", maintain_order=True).agg(
        pl.col("start_s").min().alias("start"), pl.col("end_s").max().alias("end"), pl.col("completed").first()
    )
