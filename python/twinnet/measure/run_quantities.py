"""The value of a measured quantity in one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import polars as pl

from twinnet.measure.series import Cumulative, flow_bytes, port_bytes
from twinnet.study.predicate import Aggregate
from twinnet.study.specification import Measurement
from twinnet.study.store import StoredRun

__all__ = ["RunTables", "unit_of"]

_PS_PER_SECOND = 1e12
_DISTRIBUTIONS = {
    "rtt": "rtt",
    "delay": "delay",
    "gap": "gap",
    "jitter_rfc4689": "jitter_rfc4689",
    "jitter_rfc3550": "rtp_jitter",
}
"""Columns of the table `flows` by measurement."""
_NOTHING = {"rtt": "no round trip was measured"}


def unit_of(measurement: Measurement) -> str:
    """The unit in which a measurement's values are: `bit/s`, `s` or `1`."""
    if measurement.of in ("throughput", "port_throughput"):
        return "bit/s"
    return "1" if measurement.of == "loss" else "s"


class RunTables:
    """The tables of one finished run, read when they are first needed, and what follows from them."""

    def __init__(self, run: StoredRun, measurements: Mapping[str, Measurement], end_s: float) -> None:
        self.run = run
        self.measurements = measurements
        self.end_s = end_s
        self._lines: dict[tuple[str, tuple[tuple[str, str], ...]], Cumulative] = {}

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The table `flows`."""
        return self.run.table("flows")

    @cached_property
    def intervals(self) -> pl.DataFrame:
        """The table `intervals`."""
        return self.run.table("intervals")

    @cached_property
    def port_samples(self) -> pl.DataFrame:
        """The table `port_samples`."""
        return self.run.table("port_samples")

    def line(self, name: str, filters: tuple[tuple[str, str], ...] = ()) -> Cumulative:
        """The bytes behind the throughput `name` over time; raises `LookupError` when nothing is selected."""
        key = (name, filters)
        if key not in self._lines:
            measurement = self.measurements[name]
            if measurement.of == "port_throughput":
                ports = [value for _, value in filters] or measurement.ports or []
                self._lines[key] = port_bytes(self.port_samples, ports, measurement.layer)
            else:
                rows = _only(self.intervals, measurement)
                self._lines[key] = flow_bytes(rows, dict(filters), measurement.layer)
        return self._lines[key]

    def value(self, aggregate: Aggregate) -> float:
        """The value of `aggregate` in this run.

        Raises
        ------
        LookupError
            Nothing that it selects was measured.
        """
        measurement = self.measurements[aggregate.measurement]
        if measurement.of in ("throughput", "port_throughput"):
            return self._rate(aggregate, measurement)
        rows = self._selected(aggregate)
        if measurement.of == "loss":
            return self._loss(rows)
        if measurement.of in _DISTRIBUTIONS:
            return _of_distribution(rows, _DISTRIBUTIONS[measurement.of], aggregate.function)
        times = (rows["end_s"] - rows["start_s"]).drop_nulls().to_numpy()
        if times.size == 0:
            raise LookupError("no transfer ended")
        return float({"mean": times.mean, "min": times.min, "max": times.max}[aggregate.function]())

    def _rate(self, aggregate: Aggregate, measurement: Measurement) -> float:
        line = self.line(aggregate.measurement, aggregate.filters)
        begin_s, end_s = aggregate.during_s or (0.0, self.end_s)
        if aggregate.function == "mean":
            return line.mean_bps(begin_s, end_s)
        interval_s = (measurement.interval_ps or 0) / _PS_PER_SECOND
        first = math.ceil(begin_s / interval_s - 1e-6) * interval_s
        _, rates = line.rates_bps(interval_s, end_s, first)
        if rates.size == 0:
            raise LookupError(f"no whole interval of {interval_s:g} s lies between {begin_s:g} s and {end_s:g} s")
        return float(rates.min() if aggregate.function == "min" else rates.max())

    def _selected(self, aggregate: Aggregate) -> pl.DataFrame:
        rows = _only(self.flows, self.measurements[aggregate.measurement])
        columns = {"protocol": "protocol", "flow": "name", "from": "from_host"}
        for key, value in aggregate.filters:
            if key not in columns:
                raise LookupError(f"{key}={value} selects nothing among flows")
            rows = rows.filter(pl.col(columns[key]) == value)
        return rows

    def _loss(self, rows: pl.DataFrame) -> float:
        counted = rows.filter(pl.col("lost_packets").is_not_null() & pl.col("packets").is_not_null())
        lost, arrived = (int(counted["lost_packets"].sum()), int(counted["packets"].sum()))
        if lost + arrived == 0:
            raise LookupError("no datagram was counted")
        return lost / (lost + arrived)


def _of_distribution(rows: pl.DataFrame, name: str, function: str) -> float:
    """The mean over all values, or the extreme, of a distribution that each row tells, in seconds."""
    seen = rows.filter(pl.col(f"{name}_count") > 0)
    if seen.is_empty():
        raise LookupError(_NOTHING.get(name, f"no {name} was measured"))
    if function == "mean":
        weighted = (seen[f"{name}_mean_ms"] * seen[f"{name}_count"]).sum()
        return float(weighted) / float(seen[f"{name}_count"].sum()) / 1000
    column = seen[f"{name}_{function}_ms"].to_numpy()
    return float(column.min() if function == "min" else column.max()) / 1000


def _only(rows: pl.DataFrame, measurement: Measurement) -> pl.DataFrame:
    """The rows of the traffic that `measurement` is limited to."""
    return rows if measurement.only is None else rows.filter(pl.col("name").is_in(measurement.only))
