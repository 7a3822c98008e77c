"""The value of a measured quantity in one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.results.series import Cumulative, flow_bytes, port_bytes, rates_between_arrivals, receivers
from twinnet.study.predicate import Aggregate
from twinnet.study.sender_quantities import SENDER_COLUMNS, jain_index, of_senders
from twinnet.study.specification import Measurement
from twinnet.study.store import StoredRun

__all__ = ["RunTables"]

Vector = npt.NDArray[np.float64]
_PS_PER_SECOND = 1e12
_DISTRIBUTIONS = {
    "rtt": ("rtt", "ms", 1e-3),
    "delay": ("delay", "ms", 1e-3),
    "gap": ("gap", "ms", 1e-3),
    "jitter_rfc4689": ("jitter_rfc4689", "ms", 1e-3),
    "jitter_rfc3550": ("rtp_jitter", "ms", 1e-3),
    "rtp_bandwidth": ("rtp_bandwidth", "bps", 1.0),
    "delay_variation": ("delay_variation", "ms", 1e-3),
}
"""By measurement: columns of the tables `flows` and `packets`, their unit, and its size in that of the measurement."""
_QUANTILES_OF_FLOWS = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_WITHOUT_QUANTILES = ("jitter_rfc3550", "rtp_bandwidth", "delay_variation")
"""Of these, flows tell no median."""
_SHARES = np.linspace(0.0, 1.0, 101)
_VIEWERS = {"video_rate": "video_rate_bps", "stall_time": "video_stalled_s"}
"""By measurement: columns of the table `flows` of viewers of video."""
_NOTHING = {"rtt": "no round trip was measured"}


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
    def packets(self) -> pl.DataFrame:
        """The table `packets`; empty when the traffic does not ask for it."""
        return self.run.table("packets")

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
        if measurement.is_series:
            return self._rate(aggregate, measurement)
        if aggregate.function == "min" and measurement.minimum_after is not None:
            return self._late_minimum(aggregate, measurement)
        rows = self._selected(self.flows, aggregate)
        if measurement.of == "loss":
            return self._loss(rows)
        if measurement.of == "frame_loss":
            return _frame_loss(rows)
        if measurement.of in _DISTRIBUTIONS:
            return _of_distribution(rows, measurement.of, aggregate.function)
        if measurement.of in ("reordering", "duplicates"):
            return _share_of_arrivals(rows, measurement.of)
        if measurement.of == "loss_burst":
            return _loss_burst(rows, aggregate.function)
        if measurement.of in ("available_bandwidth", "available_bandwidth_error", "probe_bytes"):
            return _of_flows(_bandwidth(rows, measurement.of), aggregate)
        if measurement.of in ("packet_rate", "psnr", "ssim"):
            values = _packet_rates(rows) if measurement.of == "packet_rate" else _video(rows, measurement.of)
            return _of_flows(values, aggregate)
        if measurement.of == "fairness":
            return jain_index(_packet_rates(rows))
        if measurement.of in SENDER_COLUMNS:
            return _of_flows(of_senders(rows, measurement.of), aggregate)
        if measurement.of in _VIEWERS:
            return _of_flows(_viewers(rows, measurement.of), aggregate)
        times = (rows["end_s"] - rows["start_s"]).drop_nulls().to_numpy()
        if times.size == 0:
            raise LookupError("no transfer ended")
        return _of_flows(times, aggregate)

    def values(self, name: str, filters: tuple[tuple[str, str], ...] = ()) -> tuple[Vector, Vector]:
        """Return the times of the values of the measurement `name`, in seconds, and the values.

        There is one of every packet that was kept, or of every whole interval of a throughput.

        Raises
        ------
        LookupError
            Nothing that is selected has values.
        """
        measurement = self.measurements[name]
        if measurement.is_series:
            return self._interval_rates(name, measurement, filters, (0.0, self.end_s))
        if not measurement.is_of_packets:
            raise LookupError(f"a run has one value of {measurement.of}")
        column, unit, size = _DISTRIBUTIONS[measurement.of]
        rows = self._selected(self.packets, Aggregate("mean", name, filters, None, ()))
        rows = rows.filter(pl.col(f"{column}_{unit}").is_not_null())
        if rows.is_empty():
            raise LookupError(f"no packet with a {measurement.of} was kept; give the traffic 'record_packets'")
        return rows["arrived_s"].to_numpy(), rows[f"{column}_{unit}"].to_numpy() * size

    def quantiles(self, name: str, filters: tuple[tuple[str, str], ...] = ()) -> tuple[Vector, Vector]:
        """Shares from 0 to 1 and the value of the measurement `name` that so many of its values do not exceed.

        Of every packet where packets were kept. Elsewhere of what each flow tells (its least, median, 90 %, 99 % and
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
        if measurement.of not in _DISTRIBUTIONS or measurement.of in _WITHOUT_QUANTILES:
            raise LookupError(f"a run has no quantiles of {measurement.of}")
        column, unit, size = _DISTRIBUTIONS[measurement.of]
        rows = self._selected(self.flows, Aggregate("mean", name, filters, None, ()))
        seen = rows.filter(pl.col(f"{column}_count") > 0)
        if seen.is_empty():
            raise LookupError(_NOTHING.get(column, f"no {column} was measured"))
        weights = seen[f"{column}_count"].to_numpy()
        told = [seen[f"{column}_{point}_{unit}"].to_numpy() for point in _QUANTILES_OF_FLOWS]
        averaged = np.array([float((values * weights).sum() / weights.sum()) for values in told])
        return np.array(list(_QUANTILES_OF_FLOWS.values())), averaged * size

    def _late_minimum(self, aggregate: Aggregate, measurement: Measurement) -> float:
        """The least value of packets after the first ones of their flow."""
        column, unit, size = _DISTRIBUTIONS[measurement.of]
        rows = self._selected(self.packets, aggregate)
        later = pl.int_range(pl.len()).over("flow", "from_host") >= measurement.minimum_after
        least = rows.filter(later)[f"{column}_{unit}"].drop_nulls().to_numpy()
        if least.size == 0:
            raise LookupError(f"no packet came after the first {measurement.minimum_after}")
        return float(least.min()) * size

    def _rate(self, aggregate: Aggregate, measurement: Measurement) -> float:
        line = self.line(aggregate.measurement, aggregate.filters)
        begin_s, end_s = aggregate.during_s or (0.0, self.end_s)
        if aggregate.function == "mean":
            return line.mean_bps(begin_s, end_s)
        _, rates = self._interval_rates(aggregate.measurement, measurement, aggregate.filters, (begin_s, end_s))
        return float({"min": rates.min, "max": rates.max, "std": rates.std}[aggregate.function]())

    def _interval_rates(
        self, name: str, measurement: Measurement, filters: tuple[tuple[str, str], ...], during_s: tuple[float, float]
    ) -> tuple[Vector, Vector]:
        """Starts in seconds and rates in bit/s of the whole intervals in `during_s`."""
        begin_s, end_s = during_s
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

    def _selected(self, table: pl.DataFrame, aggregate: Aggregate) -> pl.DataFrame:
        rows = _only(table, self.measurements[aggregate.measurement])
        columns = {"protocol": "protocol", "flow": "name", "from": "from_host"}
        for key, value in aggregate.filters:
            if key not in columns:
                raise LookupError(f"{key}={value} selects nothing among flows")
            rows = rows.filter(pl.col(columns[key]) == value)
        return rows

    def _loss(self, rows: pl.DataFrame) -> float:
        counted = rows.filter(pl.col("lost_packets").is_not_null() & pl.col("packets").is_not_null())
        # Who sends and hears the answer counts what it sent; who receives, what arrived.
        sent_there = pl.col("packets") + pl.when(pl.col("role") == "source").then(0).otherwise(pl.col("lost_packets"))
        lost, sent = int(counted["lost_packets"].sum()), int(counted.select(sent_there.sum()).item())
        if sent == 0:
            raise LookupError("no datagram was counted")
        return lost / sent


def _frame_loss(rows: pl.DataFrame) -> float:
    """The share of video frames that did not arrive whole, of those that receivers know of."""
    counted = rows.filter(pl.col("frames_complete").is_not_null())
    whole, broken = (int(counted["frames_complete"].sum()), 0)
    broken += int(counted["frames_damaged"].sum()) + int(counted["frames_lost"].sum())
    if whole + broken == 0:
        raise LookupError("no video frame was counted")
    return broken / (whole + broken)


def _of_flows(values: Vector, aggregate: Aggregate) -> float:
    """Apply the function of `aggregate` to one value of each flow."""
    return float({"mean": values.mean, "min": values.min, "max": values.max, "std": values.std}[aggregate.function]())


def _packet_rates(rows: pl.DataFrame) -> Vector:
    """Packets a second of each flow at its receiver, from the first arrival to the last: one less than arrived."""
    seen = receivers(rows).filter((pl.col("packets") > 1) & (pl.col("end_s") > pl.col("start_s")))
    if seen.is_empty():
        raise LookupError("no receiver counted two packets or more")
    return ((seen["packets"] - 1) / (seen["end_s"] - seen["start_s"])).to_numpy()


def _video(rows: pl.DataFrame, of: str) -> Vector:
    """The quality of each flow's video."""
    judged = rows["psnr_db" if of == "psnr" else "ssim"].drop_nulls().to_numpy()
    if judged.size == 0:
        raise LookupError("no video was judged; let programs stream it ('using: programs')")
    return judged


def _bandwidth(rows: pl.DataFrame, of: str) -> Vector:
    """Return the estimates of available bandwidth, their relative errors, or the bytes of probes."""
    if "available_bandwidth_bps" not in rows.columns:
        raise LookupError("available bandwidth was not estimated when this run was made")
    if of == "probe_bytes":
        found = rows["probe_bytes"].drop_nulls().to_numpy().astype(float)
    elif of == "available_bandwidth":
        found = rows["available_bandwidth_bps"].drop_nulls().to_numpy()
    else:
        shares = rows["available_bandwidth_bps"] / rows["available_bandwidth_true_bps"] - 1
        found = shares.drop_nulls().to_numpy()
    if found.size == 0:
        raise LookupError("no estimator of available bandwidth had an answer")
    return found


def _viewers(rows: pl.DataFrame, of: str) -> Vector:
    """Return the values of each viewer of video in segments."""
    column = _VIEWERS[of]
    if column not in rows.columns:
        raise LookupError("viewers of video were not counted when this run was made")
    values = rows[column].drop_nulls().to_numpy()
    if values.size == 0:
        raise LookupError("nobody watched video in segments; give traffic with 'app: video'")
    return values


def _share_of_arrivals(rows: pl.DataFrame, of: str) -> float:
    """The share of packets that came out of order, or of all arrivals that were duplicates."""
    column = "reordered_packets" if of == "reordering" else "duplicate_packets"
    counted = receivers(rows).filter(pl.col(column).is_not_null() & pl.col("packets").is_not_null())
    found = int(counted[column].sum())
    arrivals = int(counted["packets"].sum()) + (found if of == "duplicates" else 0)
    if arrivals == 0:
        raise LookupError("no datagram was counted")
    return found / arrivals


def _loss_burst(rows: pl.DataFrame, function: str) -> float:
    """The mean over all bursts of loss, or the longest."""
    if "loss_burst_count" not in rows.columns:
        raise LookupError("bursts of loss were not counted when this run was made")
    seen = rows.filter(pl.col("loss_burst_count") > 0)
    if seen.is_empty():
        raise LookupError("no packet was lost")
    counts, means = seen["loss_burst_count"].to_numpy(), seen["loss_burst_mean"].to_numpy()
    if function == "mean":
        return float((counts * means).sum() / counts.sum())
    if function == "max":
        return float(seen["loss_burst_max"].to_numpy().max())
    raise LookupError(f"of bursts of loss mean and max are known, not {function}")


def _of_distribution(rows: pl.DataFrame, of: str, function: str) -> float:
    """The mean over all values, their deviation or an extreme, of a distribution that each row tells."""
    name, unit, size = _DISTRIBUTIONS[of]
    if f"{name}_count" not in rows.columns:
        raise LookupError(f"no {name} was counted when this run was made")
    seen = rows.filter(pl.col(f"{name}_count") > 0)
    if seen.is_empty():
        raise LookupError(_NOTHING.get(name, f"no {name} was measured"))
    counts, means = seen[f"{name}_count"].to_numpy(), seen[f"{name}_mean_{unit}"].to_numpy()
    mean = float((means * counts).sum() / counts.sum())
    if function == "mean":
        return mean * size
    if function == "std":
        deviations = seen[f"{name}_std_{unit}"].to_numpy()
        squares = float(((counts - 1) * deviations**2 + counts * (means - mean) ** 2).sum())
        return math.sqrt(squares / max(1.0, float(counts.sum()) - 1)) * size
    column = seen[f"{name}_{function}_{unit}"].to_numpy()
    return float(column.min() if function == "min" else column.max()) * size


def _only(rows: pl.DataFrame, measurement: Measurement) -> pl.DataFrame:
    """The rows of the traffic that `measurement` is limited to."""
    return rows if measurement.only is None else rows.filter(pl.col("name").is_in(measurement.only))
