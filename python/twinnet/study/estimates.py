"""Estimates of available bandwidth that are answers: one that was cut off is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = ["NOT_ESTIMATED", "NO_ESTIMATE", "of_answers"]

NOT_ESTIMATED = "available bandwidth was not estimated when this run was made"
NO_ESTIMATE = "no estimator of available bandwidth had an answer"
_CUT_OFF = ("the time that was allowed is over", "the next train would exceed the budget of bytes", "it was stopped")
"""Why the prober (crates/apps/src/bandwidth/prober.rs) ends before its method is done. What a method has found by then
is of fewer trains than it asks for, and how long it would have taken is not known."""


def of_answers(values: Callable[[pl.DataFrame], Vector], silent_too: bool = False) -> Callable[[pl.DataFrame], Vector]:
    """Return `values` of rows of the table `flows`, where every estimator among them has an answer or, by
    `silent_too`, came to its end without one.

    What it returns raises `LookupError` where one has none, or was cut off: the others alone would flatter the method.
    """

    def checked(rows: pl.DataFrame) -> Vector:
        import polars as pl

        if "available_bandwidth_bps" not in rows.columns:
            raise LookupError(NOT_ESTIMATED)
        asked = rows.filter(pl.any_horizontal(pl.col("available_bandwidth_bps", "probe_window_s").is_not_null()))
        cut = (
            asked.filter(pl.col("probe_gave_up").is_in(_CUT_OFF)) if "probe_gave_up" in rows.columns else asked.clear()
        )
        silent = asked.filter(pl.col("available_bandwidth_bps").is_null())
        if not cut.is_empty():
            raise LookupError(f"{cut.height} of {asked.height} estimates were cut off: {cut['probe_gave_up'][0]}")
        if silent_too:
            return values(rows)
        if silent.height == asked.height:
            raise LookupError(NO_ESTIMATE)
        if not silent.is_empty():
            raise LookupError(f"{silent.height} of {asked.height} estimators of available bandwidth had no answer")
        return values(rows)

    return checked
