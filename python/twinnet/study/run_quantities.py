"""The value of a measured quantity in one run.

Tables are read when they are first looked at. Of thousands of runs they would fill the memory, so only those of the
runs that were looked at last are kept (`KeptTables`); what follows from them is small, and is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.results.datagrams import datagrams_sent
from twinnet.results.series import Cumulative, flow_bytes, port_bytes, rates_between_arrivals, receivers
from twinnet.study.grain import RunModel, grain_of
from twinnet.study.kept_tables import Filters, KeptTables
from twinnet.study.measured_quantity import DistributionColumn
from twinnet.study.own_metric import OwnMetric, RunData
from twinnet.study.predicate import Aggregate, aggregate_of
from twinnet.study.specification import Measurement
from twinnet.study.store import StoredRun
from twinnet.study.value_functions import needs_values, value_of
from twinnet.study.window import is_span, warm_up_length
from twinnet.study.windowed import in_intervals, samples_within, sent_within, whole_intervals

__all__ = ["RunTables"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_QUANTILES_OF_FLOWS = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_SHARES = np.linspace(0.0, 1.0, 101)
FINEST_SAMPLE_PS = 50_000_000_000
"""Bytes are counted in quarters of the shortest interval, if those are so long."""


class RunTables:
    """The tables of one finished run, read when they are needed, and what follows from them.

    Parameters
    ----------
    run
        The run.
    measurements
        The study's measurements, by name.
    end_s
        The end of the traffic, in seconds from its start.
    kept
        Where tables are kept; without it those of this run are.
    own
        The study's own metrics, by the names of the measurements that are of them.
    model
        What the study's file says of runs under these levels; without it nothing is known of chance.
    """

    def __init__(
        self,
        run: StoredRun,
        measurements: Mapping[str, Measurement],
        end_s: float,
        kept: KeptTables | None = None,
        own: Mapping[str, OwnMetric] | None = None,
        model: RunModel | None = None,
    ) -> None:
        self.run = run
        self.measurements = measurements
        self.end_s = end_s
        self._kept = kept or KeptTables()
        self._own_metrics = own or {}
        self._model = model
        self._values: dict[Aggregate, float | LookupError] = {}
        self._grains: dict[Aggregate, float | None] = {}
        self._rates: dict[tuple[str, Filters, float], tuple[Vector, Vector] | LookupError] = {}
        self._labels: dict[str, frozenset[str]] = {}

    @cached_property
    def fingerprint(self) -> tuple[int, ...]:
        """A hash of what was counted in this run, to tell whether repetitions differ; of this process only."""
        tables = (self.flows, self.intervals, self.port_samples, self.packets)
        return tuple(hash((one.height, *one.hash_rows(seed=1).to_list())) for one in tables)

    @property
    def is_drawn(self) -> bool:
        """True unless the study's file shows that chance has no part in this run, but for which of two frames goes
        first that arrive at one moment."""
        return self._model is None or self._model.is_drawn

    def grain(self, aggregate: Aggregate) -> float | None:
        """The least step by which what was counted changes the value of `aggregate`, in its unit.

        `None` where no step is known: of own metrics, indices, estimates and the quality of video.
        """
        key = replace(aggregate, levels=())
        if key not in self._grains:
            self._grains[key] = grain_of(self, key, self._model)
        return self._grains[key]

    @property
    def flows(self) -> pl.DataFrame:
        """The table `flows`."""
        return self._kept.table(self.run, "flows")

    @property
    def intervals(self) -> pl.DataFrame:
        """The table `intervals`."""
        return self._kept.table(self.run, "intervals")

    @property
    def packets(self) -> pl.DataFrame:
        """The table `packets`; empty when the traffic does not ask for it."""
        return self._kept.table(self.run, "packets")

    @property
    def tcp(self) -> pl.DataFrame:
        """The table `tcp`; empty when the study does not measure the state of TCP."""
        return self._kept.table(self.run, "tcp")

    @property
    def port_samples(self) -> pl.DataFrame:
        """The table `port_samples`."""
        return self._kept.table(self.run, "port_samples")

    def labels(self, name: str) -> frozenset[str]:
        """The protocols, or names of flows, that the measurement `name` distinguishes in this run."""
        if name not in self._labels:
            measurement = self.measurements[name]
            rows = receivers(self.intervals) if measurement.of == "throughput" else self.flows
            column = "name" if measurement.per == "flow" else "protocol"
            self._labels[name] = frozenset(_only(rows, measurement)[column].unique().to_list())
        return self._labels[name]

    def line(self, name: str, filters: Filters = ()) -> Cumulative:
        """The bytes behind the throughput `name` over time; raises `LookupError` when nothing is selected."""
        measurement = self.measurements[name]

        def make() -> Cumulative:
            if measurement.of == "port_throughput":
                given = [value for _, value in filters] or measurement.ports or []
                return port_bytes(self.port_samples, self.ports_meant(given), measurement.layer)
            return flow_bytes(_only(self.intervals, measurement), dict(filters), measurement.layer)

        return self._kept.line(self.run, name, filters, make)

    def ports_meant(self, given: Sequence[str]) -> list[str]:
        """The names in tables of the ports that the study calls `given`, such as `s1 to s2`."""
        known: Mapping[str, str] = self.run.record.get("notes", {}).get("ports", {})
        return [known.get(name, name) for name in given]

    def rates(self, name: str, filters: Filters, interval_s: float) -> tuple[Vector, Vector]:
        """Starts in seconds and rates in bit/s of the whole intervals of the throughput `name`; raises `LookupError`
        when nothing is selected."""
        key = (name, filters, interval_s)
        if key not in self._rates:
            try:
                self._rates[key] = self.line(name, filters).rates_bps(interval_s, self.end_s)
            except LookupError as error:
                self._rates[key] = LookupError(*error.args)
        found = self._rates[key]
        if isinstance(found, LookupError):
            raise found
        return found

    def value(self, aggregate: Aggregate) -> float:
        """The value of `aggregate` in this run.

        Raises
        ------
        LookupError
            Nothing that it selects was measured.
        """
        # The levels say which runs are meant, and not what is measured in them.
        key = replace(aggregate, levels=())
        if key not in self._values:
            try:
                self._values[key] = self._value(aggregate)
            except LookupError as error:
                self._values[key] = LookupError(*error.args)
        found = self._values[key]
        if isinstance(found, LookupError):
            raise found
        return found

    def _value(self, aggregate: Aggregate) -> float:
        measurement = self.measurements[aggregate.measurement]
        quantity = measurement.quantity
        window_s = self.window_s(aggregate)
        if measurement.is_own:
            return value_of(aggregate.function, aggregate.bound, self._own_values(aggregate, window_s))
        if measurement.is_series:
            return self._rate(aggregate, measurement, window_s or (0.0, self.end_s))
        if aggregate.function == "min" and measurement.minimum_after is not None:
            return self._late_minimum(aggregate, measurement, window_s)
        if quantity.window == "samples":
            return self._sampled(aggregate, measurement, window_s)
        if measurement.of == "throughput_fairness":
            window_s = window_s or (0.0, self.end_s)
        if window_s is not None and quantity.window != "flows":
            return self._windowed(aggregate, measurement, window_s)
        if not quantity.has_many_values and aggregate.function not in ("mean", "min", "max"):
            raise LookupError(f"a run has one value of {measurement.of}")
        rows = self.selected(self.flows, aggregate)
        if window_s is not None:
            rows = sent_within(rows.filter(pl.col("start_s").is_not_null()), window_s)
        if not needs_values(aggregate.function, aggregate.bound):
            return quantity.value(rows, aggregate.function)
        if quantity.each is not None:
            return value_of(aggregate.function, aggregate.bound, quantity.each(rows))
        if quantity.column is None:
            raise LookupError(f"a run has one value of {measurement.of}")
        if not measurement.is_of_packets:
            return _reported_percentile(rows, quantity.column, aggregate.function)
        return _of_datagrams(self.datagrams(aggregate), aggregate, quantity.column)

    def _own_values(self, aggregate: Aggregate, window_s: tuple[float, float] | None) -> Vector:
        """What an own metric makes of the tables."""
        flows, intervals, packets, tcp = (
            self.selected(table, aggregate) for table in (self.flows, self.intervals, self.packets, self.tcp)
        )
        levels = self.run.levels
        data = RunData(flows, intervals, packets, tcp, self.port_samples, levels, window_s, self.end_s)
        return self._own_metrics[aggregate.measurement].values(data)

    def _sampled(self, aggregate: Aggregate, measurement: Measurement, window_s: tuple[float, float] | None) -> float:
        """The value of what was looked at again and again: of ports over the time of traffic, of TCP while it lasts."""
        quantity = measurement.quantity
        rows = self.looks(aggregate, measurement, window_s)
        if quantity.share_of is not None:
            part, whole = quantity.share_of(rows)
            if whole == 0:
                raise LookupError("the port sent nothing")
            return part / whole
        if quantity.in_rows is None:
            raise LookupError(f"{measurement.of} has no values")
        return value_of(aggregate.function, aggregate.bound, quantity.in_rows(rows))

    def looks(
        self, aggregate: Aggregate, measurement: Measurement, window_s: tuple[float, float] | None
    ) -> pl.DataFrame:
        """The rows of what was looked at again and again that `aggregate` selects, within `window_s`."""
        if not measurement.is_of_ports:
            return samples_within(self.selected(self.tcp, aggregate), window_s or (-math.inf, math.inf))
        ports = self.ports_meant([value for _, value in aggregate.filters] or measurement.ports or [])
        begin_s, end_s = window_s or (0.0, self.end_s)
        rows = self.port_samples.filter(pl.col("port").is_in(ports))
        return whole_intervals(rows, (begin_s, min(end_s, self.end_s)))

    def window_s(self, aggregate: Aggregate) -> tuple[float, float] | None:
        """The window of time that `aggregate` speaks of, or else its measurement, in seconds from the start of traffic;
        `None` for the whole run.

        Raises
        ------
        LookupError
            It begins after a warm-up, and the values tell of none.
        """
        window = aggregate.during_s or self.measurements[aggregate.measurement].window
        if not is_span(window):
            return None if window is None else (self._warm_up_s(aggregate), math.inf)
        return window

    def _warm_up_s(self, aggregate: Aggregate) -> float:
        """The end of the warm-up in this run, of all that the filters of `aggregate` select."""
        measurement = self.measurements[aggregate.measurement]
        if measurement.is_series:
            interval_s = finest_interval_s(measurement)
            times, values = self.line(aggregate.measurement, aggregate.filters).rates_bps(interval_s, self.end_s)
        elif measurement.quantity.window == "packets":
            sent = sent_within(self.datagrams(aggregate), (-math.inf, math.inf)).sort("sent_s", maintain_order=True)
            column = measurement.quantity.column
            valued = sent if column is None else sent.filter(pl.col(column.of_packets).is_not_null())
            lost = sent["arrived"].not_().cast(pl.Float64)
            times, values = (
                valued["sent_s"].to_numpy(),
                (lost if column is None else valued[column.of_packets]).to_numpy(),
            )
        elif (in_rows := measurement.quantity.in_rows) is not None:
            column = "start_s" if measurement.is_of_ports else "at_s"
            rows = self.looks(aggregate, measurement, None).sort(column, maintain_order=True)
            times, values = rows[column].to_numpy(), in_rows(rows)
            if values.size != times.size:
                raise LookupError(f"{measurement.of} is counted, so that no warm-up shows")
        else:
            raise LookupError(f"{measurement.of} has no values over time, so that no warm-up shows")
        return float(times[warm_up_length(values)])

    def _windowed(self, aggregate: Aggregate, measurement: Measurement, window_s: tuple[float, float]) -> float:
        """The value in a window of time."""
        quantity = measurement.quantity
        if quantity.window == "intervals":
            rows = whole_intervals(self.selected(self.intervals, aggregate), window_s)
            return in_intervals(measurement.of, rows, aggregate.function, aggregate.bound)
        if quantity.window != "packets":
            raise LookupError(f"{measurement.of} is of the whole run, and of no window")
        sent = sent_within(self.datagrams(aggregate), window_s)
        if quantity.column is None:
            return float(sent["arrived"].not_().mean() or 0.0)  # type: ignore[arg-type]
        return _of_datagrams(sent, aggregate, quantity.column)

    def datagrams(self, aggregate: Aggregate) -> pl.DataFrame:
        """All datagrams that `aggregate` selects, one by one, lost ones too."""
        key = ("datagrams", tuple(self.measurements[aggregate.measurement].only or ()), aggregate.filters)
        tables = (lambda: self.selected(self.flows, aggregate)), (lambda: self.selected(self.packets, aggregate))
        return self._kept.made(self.run, key, lambda: datagrams_sent(*(table() for table in tables)))

    def flow_of(self, aggregate: Aggregate) -> str:
        """Name the flow that has the least or greatest value that `aggregate` asks for; empty where there is one flow,
        or where no single one has it."""
        measurement = self.measurements[aggregate.measurement]
        if measurement.is_series or measurement.minimum_after is not None:
            return ""
        rows = self.selected(self.flows, aggregate)
        keys = rows.select("name", "from_host").unique(maintain_order=True).rows()
        if len(keys) < 2:
            return ""
        wanted = self.value(aggregate)
        for name, source in keys:
            own = dict(aggregate.filters) | {"flow": name, "from": source}
            with suppress(LookupError):
                if self.value(replace(aggregate, filters=tuple(own.items()))) == wanted:
                    return f"{name} from {source}"
        return ""

    def values(self, name: str, filters: Filters = ()) -> tuple[Vector, Vector]:
        """Return the times of the values of the measurement `name`, in seconds, and the values.

        There is one of every packet that was kept, or of every whole interval of a throughput.

        Raises
        ------
        LookupError
            Nothing that is selected has values.
        """
        measurement = self.measurements[name]
        if measurement.is_series:
            window_s = self.window_s(aggregate_of(name, filters)) or (0.0, self.end_s)
            return self.interval_rates(name, measurement, filters, window_s)
        column = measurement.quantity.column
        if not measurement.is_of_packets or column is None:
            raise LookupError(f"a run has one value of {measurement.of}")
        rows = self.selected(self.packets, aggregate_of(name, filters))
        rows = rows.filter(pl.col(column.of_packets).is_not_null())
        window_s = self.window_s(aggregate_of(name, filters))
        if window_s is not None:
            rows = sent_within(rows, window_s)
        if rows.is_empty():
            raise LookupError(f"no packet with a {measurement.of} was kept; give the traffic 'record_packets'")
        return rows["arrived_s"].to_numpy(), rows[column.of_packets].to_numpy() * column.size

    def quantiles(self, name: str, filters: Filters = ()) -> tuple[Vector, Vector]:
        """Shares from 0 to 1 and the value of the measurement `name` that so many of its values do not exceed.

        Of every packet where packets were kept. Elsewhere of what each flow gives (its least, median, 90 %, 99 % and
        greatest), averaged over flows by how many values they have.

        Raises
        ------
        LookupError
            The measurement has one value in a run, or none was taken.
        """
        measurement = self.measurements[name]
        if measurement.is_of_packets:
            try:
                _, values = self.values(name, filters)
                return _SHARES, np.quantile(values, _SHARES)
            except LookupError:
                pass
        column = measurement.quantity.column
        if column is None or not column.has_quantiles or measurement.window is not None:
            raise LookupError(f"a run has no quantiles of {measurement.of}, or none in a window")
        rows = self.selected(self.flows, aggregate_of(name, filters))
        seen = column.measured(rows)
        weights = seen[column.of_flows("count")].to_numpy()
        quantiles = [seen[column.of_flows(point)].to_numpy() for point in _QUANTILES_OF_FLOWS]
        averaged = np.array([float((values * weights).sum() / weights.sum()) for values in quantiles])
        return np.array(list(_QUANTILES_OF_FLOWS.values())), averaged * column.size

    def _late_minimum(
        self, aggregate: Aggregate, measurement: Measurement, window_s: tuple[float, float] | None
    ) -> float:
        """The least value of packets after the first ones of their flow."""
        column = measurement.quantity.column
        if column is None:
            raise LookupError(f"a run has one value of {measurement.of}")
        rows = self.selected(self.packets, aggregate)
        later = pl.int_range(pl.len()).over("flow", "from_host") >= measurement.minimum_after
        chosen = rows.filter(later)
        least = (
            (chosen if window_s is None else sent_within(chosen, window_s))[column.of_packets].drop_nulls().to_numpy()
        )
        if least.size == 0:
            raise LookupError(f"no packet came after the first {measurement.minimum_after}")
        return float(least.min()) * column.size

    def _rate(self, aggregate: Aggregate, measurement: Measurement, window_s: tuple[float, float]) -> float:
        line = self.line(aggregate.measurement, aggregate.filters)
        begin_s, end_s = window_s if math.isfinite(window_s[1]) else (window_s[0], self.end_s)
        if begin_s >= end_s:
            raise LookupError(f"traffic had ended at {end_s:g} s, before the window begins")
        if aggregate.function == "mean":
            return line.mean_bps(begin_s, end_s)
        _, rates = self.interval_rates(aggregate.measurement, measurement, aggregate.filters, (begin_s, end_s))
        return value_of(aggregate.function, aggregate.bound, rates)

    def interval_rates(
        self, name: str, measurement: Measurement, filters: Filters, during_s: tuple[float, float]
    ) -> tuple[Vector, Vector]:
        """Starts in seconds and rates in bit/s of the whole intervals in `during_s`."""
        begin_s, end_s = during_s[0], min(during_s[1], self.end_s) if math.isinf(during_s[1]) else during_s[1]
        interval_s = (measurement.interval_ps or 0) / _PS_PER_SECOND
        first = math.ceil(begin_s / interval_s - 1e-6) * interval_s
        if measurement.bounds == "arrivals":
            rows = _only(self.intervals, measurement)
            starts, rates = rates_between_arrivals(
                rows, dict(filters), measurement.layer, interval_s, (first, end_s), self._begun_s()
            )
        else:
            starts, rates = self.line(name, filters).rates_bps(interval_s, end_s, first)
        if rates.size == 0:
            raise LookupError(f"no whole interval of {interval_s:g} s lies between {begin_s:g} s and {end_s:g} s")
        return starts, rates

    def _begun_s(self) -> dict[tuple[int, str], float]:
        """Return the times at which sources began to send, in seconds, by the flow's number and the sending host."""
        rows = self.flows.filter((pl.col("role") == "source") & pl.col("start_s").is_not_null())
        keys = zip(rows["flow"].fill_null(0), rows["from_host"], strict=True)
        return {(int(flow), str(host)): start for (flow, host), start in zip(keys, rows["start_s"], strict=True)}

    def selected(self, table: pl.DataFrame, aggregate: Aggregate) -> pl.DataFrame:
        """The rows of `table` that `aggregate` selects; raises `LookupError` where it selects by what flows lack."""
        rows = _only(table, self.measurements[aggregate.measurement])
        columns = {"protocol": "protocol", "flow": "name", "from": "from_host"}
        for key, value in aggregate.filters:
            if key not in columns:
                raise LookupError(f"{key}={value} selects nothing among flows")
            rows = rows.filter(pl.col(columns[key]) == value)
        return rows


def _of_datagrams(sent: pl.DataFrame, aggregate: Aggregate, column: DistributionColumn) -> float:
    values = sent[column.of_packets].drop_nulls().to_numpy() * column.size
    lost = int((~sent["arrived"]).sum()) if column.lost_counts else 0
    return value_of(aggregate.function, aggregate.bound, values, lost)


def finest_interval_s(measurement: Measurement) -> float:
    """The shortest interval in which the bytes of a throughput are surely counted, in seconds."""
    interval_ps = measurement.interval_ps or 0
    return (interval_ps / 4 if interval_ps // 4 >= FINEST_SAMPLE_PS else interval_ps) / _PS_PER_SECOND


def _reported_percentile(rows: pl.DataFrame, column: DistributionColumn, function: str) -> float:
    """A percentile that a flow itself gives; raises `LookupError` where it gives none such, or there are several."""
    part = "p50" if function == "median" else function
    seen = column.measured(rows)
    if part not in _QUANTILES_OF_FLOWS or column.of_flows(part) not in seen.columns:
        raise LookupError(f"flows keep median, p90 and p99 of {column.name}, and no single values for {function}")
    if seen.height > 1:
        raise LookupError(f"percentiles of {seen.height} flows do not make one: select a flow by 'flow' and 'from'")
    if "lost_packets" in seen.columns and seen["lost_packets"][0]:
        raise LookupError(f"{seen['lost_packets'][0]} requests had no reply, and so no {column.name} for {function}")
    return float(seen[column.of_flows(part)][0]) * column.size


def _only(rows: pl.DataFrame, measurement: Measurement) -> pl.DataFrame:
    """The rows of the traffic that `measurement` is limited to."""
    return rows if measurement.only is None else rows.filter(pl.col("name").is_in(measurement.only))
