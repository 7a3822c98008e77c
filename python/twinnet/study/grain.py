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

import polars as pl

from twinnet.study.network_of import network_of
from twinnet.study.value_functions import NORMALITY
from twinnet.study.what_varies import what_varies
from twinnet.study.windowed import sent_within

if TYPE_CHECKING:
    from twinnet.study.plan import PlannedRun
    from twinnet.study.predicate import Aggregate
    from twinnet.study.run_quantities import RunTables

__all__ = ["FRAME_BYTES", "SHARES_OF_COUNTS", "RunModel", "grain_of"]

_PS_PER_SECOND = 1e12
_STEP_OF_P = 1e-3
"""How exact the p-value of the Anderson-Darling test is, which is by a fitted formula."""
_COUNTED_IN_FLOWS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "loss": ("lost_packets", "packets", ("lost_packets",)),
    "reordering": ("reordered_packets", "packets", ()),
    "duplicates": ("duplicate_packets", "packets", ("duplicate_packets",)),
    "frame_loss": ("frames_complete", "frames_complete", ("frames_damaged", "frames_lost")),
}
"""Of shares of what flows count: the column that flows have that count it, what makes the whole, and what receivers add
to it."""

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


def grain_of(run: RunTables, aggregate: Aggregate, model: RunModel | None) -> float | None:
    """The least step by which what was counted in `run` changes the value of `aggregate`, in its unit; `None` where no
    step is known: of own metrics, indices, estimates and the quality of video.

    Raises
    ------
    LookupError
        Nothing that it selects was measured.
    """
    measurement = run.measurements[aggregate.measurement]
    if aggregate.function == NORMALITY:
        return _STEP_OF_P
    if measurement.is_own:
        return None
    if aggregate.bound is not None or measurement.of in SHARES_OF_COUNTS:
        return 1 / _counted(run, aggregate)
    if measurement.unit == "s":
        frame_s = None if model is None else model.frame_s
        return None if frame_s is None else frame_s / _values_of_time(run, aggregate)
    if measurement.unit == "packets":
        return 1 / _counted(run, aggregate) if aggregate.function == "mean" else 1.0
    if measurement.unit == "B":
        return FRAME_BYTES / (_counted(run, aggregate) if aggregate.function == "mean" else 1)
    begin_s, end_s = run.window_s(aggregate) or (0.0, run.end_s)
    length_s = min(end_s, run.end_s) - begin_s
    if measurement.is_series:
        whole = aggregate.function == "mean" or not measurement.interval_ps
        return FRAME_BYTES * 8 / (length_s if whole else (measurement.interval_ps or 0) / _PS_PER_SECOND)
    return 1 / length_s if measurement.of == "packet_rate" and length_s > 0 else None


def _values_of_time(run: RunTables, aggregate: Aggregate) -> int:
    """How many times `aggregate` is of, of datagrams, round trips or flows: at least 1."""
    rows, column = run.selected(run.flows, aggregate), run.measurements[aggregate.measurement].quantity.column
    if column is None:
        return max(1, rows.height)
    return max(1, int(column.measured(rows)[column.of_flows("count")].sum()))


def _counted(run: RunTables, aggregate: Aggregate) -> int:
    """How many datagrams, intervals, looks or flows the value of `aggregate` is of: at least 1."""
    measurement, window_s = run.measurements[aggregate.measurement], run.window_s(aggregate)
    quantity = measurement.quantity
    if measurement.is_series:
        window_s = window_s or (0.0, run.end_s)
        return run.interval_rates(aggregate.measurement, measurement, aggregate.filters, window_s)[1].size
    if quantity.window == "samples":
        rows = run.looks(aggregate, measurement, window_s)
        return max(1, rows.height if quantity.share_of is None else quantity.share_of(rows)[1])
    if quantity.window == "packets" and (aggregate.bound is not None or window_s is not None):
        sent = run.datagrams(aggregate)
        return max(1, (sent if window_s is None else sent_within(sent, window_s)).height)
    rows = run.selected(run.flows, aggregate)
    if aggregate.bound is not None or measurement.unit in ("packets", "B"):
        return max(1, rows.height)
    told, everywhere, received = _COUNTED_IN_FLOWS[measurement.of]
    counted = rows.filter(pl.col(told).is_not_null())
    # Who sends and hears the answer counts what it sent; who receives, what arrived.
    there = counted.filter(pl.col("role") != "source")
    return max(1, int(counted[everywhere].sum()) + sum(int(there[name].sum()) for name in received))
