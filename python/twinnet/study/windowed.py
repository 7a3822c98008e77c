"""What a run measured in a window of time, from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.results.series import receivers
from twinnet.study.value_functions import Bound, value_of

__all__ = ["in_intervals", "samples_within", "sent_within", "whole_intervals"]

Vector = npt.NDArray[np.float64]
Span = tuple[float, float]
_SLACK = 1e-6
"""Of an interval: bounds that differ only by floating point count as equal."""


def sent_within(sent: pl.DataFrame, window_s: Span) -> pl.DataFrame:
    """The datagrams that were sent in the window, or flows that began in it; the window's end is outside.

    Raises
    ------
    LookupError
        None was, or packets do not tell when they were sent.
    """
    column = "sent_s" if "sent_s" in sent.columns else "start_s"
    if sent.height and sent[column].is_null().any():
        raise LookupError("packets that do not say when they were sent lie in no window")
    begin, end = window_s
    found = sent.filter((pl.col(column) >= begin) & (pl.col(column) < end))
    if found.is_empty():
        raise LookupError(f"nothing was sent between {begin:g} s and {end:g} s")
    return found


def whole_intervals(rows: pl.DataFrame, window_s: Span) -> pl.DataFrame:
    """The rows of a table of intervals that lie wholly in the window; raises `LookupError` where none does."""
    begin, end = window_s
    slack = _SLACK * pl.col("length_s")
    found = rows.filter((pl.col("start_s") >= begin - slack) & (pl.col("start_s") + pl.col("length_s") <= end + slack))
    if found.is_empty():
        raise LookupError(f"no whole interval lies between {begin:g} s and {end:g} s")
    return found


def samples_within(rows: pl.DataFrame, window_s: Span) -> pl.DataFrame:
    """The looks at the state of TCP in the window, its end outside, with the retransmissions that each flow had
    `before`; raises `LookupError` where there is none."""
    begin, end = window_s
    flow = ("name", "from_host")
    counted = rows.sort("at_s").with_columns(
        pl.col("retransmitted_packets").filter(pl.col("at_s") < begin).last().over(flow).fill_null(0).alias("before")
    )
    found = counted.filter((pl.col("at_s") >= begin) & (pl.col("at_s") < end))
    if found.is_empty():
        raise LookupError(f"no sender reported the state of its TCP between {max(0.0, begin):g} s and {end:g} s")
    return found


def in_intervals(of: str, rows: pl.DataFrame, function: str, bound: Bound | None) -> float:
    """The value of the quantity `of`, which receivers count interval by interval, from `rows` of such intervals.

    Raises
    ------
    LookupError
        They do not tell it, or nothing here counts it from intervals.
    """
    # A `KeyError` would pass for a value that the run lacks.
    if of not in _COUNTED:
        raise LookupError(f"{of} is not counted interval by interval: study/windowed.py counts {', '.join(_COUNTED)}")
    return _COUNTED[of](rows, function, bound)


def _rates(rows: pl.DataFrame) -> Vector:
    """Packets a second of each flow."""
    counted = receivers(rows).filter(pl.col("packets").is_not_null())
    if counted.is_empty():
        raise LookupError("no receiver counted packets interval by interval")
    per_flow = counted.group_by("name", "from_host", maintain_order=True).agg(
        pl.col("packets").sum() / pl.col("length_s").sum()
    )
    return per_flow["packets"].to_numpy()


def _rate(rows: pl.DataFrame, function: str, bound: Bound | None) -> float:
    return value_of(function, bound, _rates(rows))


def _fairness(rows: pl.DataFrame, function: str, bound: Bound | None) -> float:
    return _jain(_rates(rows))


def _payload_fairness(rows: pl.DataFrame, function: str, bound: Bound | None) -> float:
    got = receivers(rows).group_by("name", "from_host", maintain_order=True).agg(pl.col("payload_bytes").sum())
    return _jain(got["payload_bytes"].to_numpy().astype(float))


def _jain(values: Vector) -> float:
    """The index of Jain, Chiu and Hawe (DEC-TR-301, 1984)."""
    if not values.any():
        raise LookupError("nothing arrived")
    return float(values.sum() ** 2 / (values.size * (values**2).sum()))


def _round_trips(rows: pl.DataFrame, function: str, bound: Bound | None) -> float:
    seen = rows.filter(pl.col("rtt_mean_ms").is_not_null())
    if seen.is_empty():
        raise LookupError("no round trip was measured")
    if function in ("min", "max"):
        column = seen[f"rtt_{function}_ms"]
        return float(column.to_numpy().min() if function == "min" else column.to_numpy().max()) * 1e-3
    if function != "mean":
        raise LookupError(f"intervals keep mean, min and max of round trips, and no values for {function}")
    # A client of HTTP counts no packets: its intervals count alike.
    weights = seen["packets"].fill_null(1).to_numpy().astype(float)
    return float(np.average(seen["rtt_mean_ms"].to_numpy(), weights=weights)) * 1e-3


_COUNTED: Mapping[str, Callable[[pl.DataFrame, str, Bound | None], float]] = {
    "packet_rate": _rate,
    "fairness": _fairness,
    "throughput_fairness": _payload_fairness,
    "rtt": _round_trips,
}
