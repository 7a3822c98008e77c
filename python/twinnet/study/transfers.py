"""Transfers that end when all has arrived: how long they took; one that has not ended is infinitely long.

What had not ended when the run did is longer than what had (it is censored), and how much longer is not known. Left
out, or counted until the run's end, it would make times shorter the more transfers fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = ["completion_times", "transfer_times"]


def completion_times(rows: pl.DataFrame) -> Vector:
    """The times from the start of each transfer to the arrival of its last byte, in seconds; infinite for one that had
    not ended.

    Raises
    ------
    LookupError
        No transfer has an end of its own.
    """
    import polars as pl

    if "completed" not in rows.columns:
        raise LookupError("the ends of transfers were not recorded when this run was made")
    meant = rows.filter(pl.col("completed").is_not_null())
    if meant.is_empty():
        raise LookupError("no transfer has an end of its own: give TCP 'bytes', or HTTP no 'duration'")
    each = meant.group_by("name", "from_host", maintain_order=True).agg(
        (pl.col("end_s").max() - pl.col("start_s").min()).alias("time"), pl.col("completed").all()
    )
    return _infinite_unless_ended(each)


def transfer_times(rows: pl.DataFrame) -> Vector:
    """The time from the first to the last byte at each end of a transfer, in seconds; infinite for one that has an end
    of its own and had not reached it.

    Raises
    ------
    LookupError
        There was no transfer.
    """
    import polars as pl

    ended = pl.col("completed") if "completed" in rows.columns else pl.lit(None, pl.Boolean)
    each = rows.select(
        (pl.col("end_s") - pl.col("start_s")).alias("time"), ended.fill_null(value=True).alias("completed")
    )
    times = _infinite_unless_ended(each.filter(pl.col("time").is_not_null() | ~pl.col("completed")))
    if times.size == 0:
        raise LookupError("no transfer ended")
    return times


def _infinite_unless_ended(each: pl.DataFrame) -> Vector:
    import polars as pl

    time = pl.when(pl.col("completed")).then(pl.col("time")).otherwise(float("inf"))
    return each.select(time.cast(pl.Float64)).to_series().to_numpy()
