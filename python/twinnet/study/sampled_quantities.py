"""Quantities that are looked at again and again in a run: the queues of ports, and the state of a sender's TCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from twinnet.study.measured_quantity import SHARE, MeasuredQuantity

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = ["SAMPLED"]

_BY_THE_QUEUE = ("dropped_overlimit", "dropped_early", "dropped_unclassified")
"""Drops of a queue; the others are of the line."""


def _column(name: str, size: float = 1.0) -> Callable[[pl.DataFrame], Vector]:
    def values(rows: pl.DataFrame) -> Vector:
        return rows[name].drop_nulls().to_numpy().astype(float) * size

    return values


def _sampled(
    unit: str, meaning: str, table: Literal["port_samples", "tcp"], values: Callable[[pl.DataFrame], Vector]
) -> MeasuredQuantity:
    protocols = ("tcp",) if table == "tcp" else ()
    return MeasuredQuantity(
        unit, meaning, _not_of_flows, window="samples", table=table, in_rows=values, protocols=protocols
    )


def _share(meaning: str, counts: Callable[[pl.DataFrame], tuple[int, int]]) -> MeasuredQuantity:
    return MeasuredQuantity(
        "1", meaning, _not_of_flows, window="samples", table="port_samples", share_of=counts, ends=SHARE
    )


def _not_of_flows(rows: pl.DataFrame, function: str) -> float:
    raise LookupError("it has values at moments of a run, and none of whole flows")


def _dropped(rows: pl.DataFrame) -> tuple[int, int]:
    dropped = sum(int(rows[name].sum()) for name in _BY_THE_QUEUE)
    return dropped, dropped + int(rows["frames"].sum())


def _marked(rows: pl.DataFrame) -> tuple[int, int]:
    return int(rows["marked"].sum()), int(rows["frames"].sum())


def _retransmitted(rows: pl.DataFrame) -> Vector:
    """Segments that each flow retransmitted from its first row to its last, and what it had before in the first."""
    import polars as pl

    each = (
        rows.sort("at_s")
        .group_by("name", "from_host", maintain_order=True)
        .agg((pl.col("retransmitted_packets").last() - pl.col("before").first()).alias("count"))
    )
    return each["count"].to_numpy().astype(float)


SAMPLED: Mapping[str, MeasuredQuantity] = {
    "backlog": _sampled(
        "B",
        "Bytes that waited in the queues of a port at the end of each interval.",
        "port_samples",
        _column("backlog_bytes"),
    ),
    "queue_length": _sampled(
        "packets",
        "Frames that waited in the queues of a port at the end of each interval.",
        "port_samples",
        _column("backlog_frames"),
    ),
    "queue_drops": _share(
        "The share of frames that the queues of a port dropped, of those that it was to send.", _dropped
    ),
    "queue_marks": _share(
        "The share of frames that the queues of a port marked (ECN), of those that it sent.", _marked
    ),
    "congestion_window": _sampled(
        "packets", "The congestion window of a sender of TCP, in segments.", "tcp", _column("congestion_window_packets")
    ),
    "smoothed_rtt": _sampled(
        "s", "The smoothed round-trip time of a sender of TCP (RFC 6298).", "tcp", _column("smoothed_rtt_ms", 1e-3)
    ),
    "retransmissions": _sampled("packets", "Segments that each sender of TCP sent again.", "tcp", _retransmitted),
}
"""These measurements by the names that studies give them."""
