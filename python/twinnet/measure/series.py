"""Throughput over time from tables of intervals: sums over flows, any interval and layer, bands over repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.measure.layers import ETHERNET_BYTES, Layer, carried_bytes
from twinnet.stats import t_quantile

__all__ = ["Band", "Cumulative", "band", "flow_bytes", "port_bytes", "rates_between_arrivals", "receivers"]

Vector = npt.NDArray[np.float64]

RECEIVING_ROLES = ("sink", "client")


@dataclass(frozen=True)
class Cumulative:
    """Bytes that had arrived at a time: piecewise linear between the bounds of the intervals that were counted.

    Attributes
    ----------
    times_s, bytes
        Corners of the line, in seconds from the start of traffic and in bytes; times rise.
    """

    times_s: Vector
    bytes: Vector

    def at(self, time_s: Vector | float) -> Vector:
        """Bytes that had arrived at `time_s`."""
        return np.asarray(np.interp(time_s, self.times_s, self.bytes), dtype=np.float64)

    def mean_bps(self, begin_s: float, end_s: float) -> float:
        """Mean rate between two times, in bit/s."""
        first, last = self.at(np.array([begin_s, end_s]))
        return float(last - first) * 8 / (end_s - begin_s)

    def rates_bps(self, interval_s: float, end_s: float, begin_s: float = 0.0) -> tuple[Vector, Vector]:
        """Starts in seconds and rates in bit/s of the whole intervals between two times."""
        # A millionth of an interval: bounds that differ only by floating point count as equal.
        count = int((end_s - begin_s) / interval_s + 1e-6)
        edges = begin_s + np.arange(count + 1, dtype=np.float64) * interval_s
        return edges[:-1], np.diff(self.at(edges)) * 8 / interval_s


def _cumulative(starts: Vector, lengths: Vector, sizes: Vector) -> Cumulative:
    """Add up intervals that may overlap: each spreads its bytes evenly."""
    ends = starts + lengths
    corners = np.unique(np.concatenate([[0.0], starts, ends]))
    slope_change = np.zeros(corners.size)
    slopes = np.divide(sizes, lengths, out=np.zeros_like(sizes), where=lengths > 0)
    np.add.at(slope_change, np.searchsorted(corners, starts), slopes)
    np.add.at(slope_change, np.searchsorted(corners, ends), -slopes)
    steps = np.cumsum(slope_change)[:-1] * np.diff(corners)
    return Cumulative(corners, np.concatenate([[0.0], np.cumsum(steps)]))


def receivers(intervals: pl.DataFrame) -> pl.DataFrame:
    """The rows of `intervals` that were counted where data arrived."""
    return intervals.filter(pl.col("role").is_in(RECEIVING_ROLES))


_FILTER_COLUMNS = {"protocol": "protocol", "flow": "name", "from": "from_host"}


def flow_bytes(intervals: pl.DataFrame, filters: Mapping[str, str], layer: Layer = "payload") -> Cumulative:
    """What the receivers of the flows that `filters` select had got, at `layer`.

    Parameters
    ----------
    intervals
        The table `intervals` of a run.
    filters
        Values of `protocol`, `flow` (the name in the study) and `from` (the sending host).

    Raises
    ------
    LookupError
        No flow is selected.
    """
    rows = _received(intervals, filters)
    sizes = _carried(rows, layer)
    return _cumulative(rows["start_s"].to_numpy(), rows["length_s"].to_numpy(), sizes)


def rates_between_arrivals(
    intervals: pl.DataFrame,
    filters: Mapping[str, str],
    layer: Layer,
    interval_s: float,
    during_s: tuple[float, float],
) -> tuple[Vector, Vector]:
    """Starts in seconds and rates in bit/s of the whole intervals in `during_s`, bounded by arrivals.

    A datagram is counted whole in the interval in which its last bit arrives, so on the clock's bounds an interval can
    hold one datagram more than the line carries in it. Here an interval lasts from the last arrival before it to its
    own last arrival: all that it counts arrived in that time, and no rate can exceed the line's. The interval in which
    a flow begins is not whole. Parameters as for :func:`flow_bytes`, whose rows are counted in parts of `interval_s`;
    rates of several flows are added.
    """
    rows = _received(intervals, filters)
    counted = rows.with_columns(pl.Series("carried", _carried(rows, layer))).filter(
        pl.col("last_arrival_s").is_not_null()
    )
    # A millionth of an interval: bounds that differ only by floating point count as equal.
    begin_s, end_s = during_s
    count = max(0, int((end_s - begin_s) / interval_s + 1e-6))
    rates = np.zeros(count)
    for _, flow in counted.group_by("flow", "from_host"):
        ordered = flow.sort("start_s")
        place = np.floor((ordered["start_s"].to_numpy() - begin_s) / interval_s + 1e-6).astype(np.int64)
        sizes, arrivals = ordered["carried"].to_numpy(), ordered["last_arrival_s"].to_numpy()
        numbers, first = np.unique(place, return_index=True)
        last = np.append(first[1:], place.size) - 1
        time_s = np.diff(arrivals[last])
        bits = np.add.reduceat(sizes, first)[1:] * 8
        whole = (numbers[1:] >= 0) & (numbers[1:] < count)
        rates[numbers[1:][whole]] += bits[whole] / time_s[whole]
    starts = begin_s + np.arange(count, dtype=np.float64) * interval_s
    seen = (starts >= _first_whole_s(counted, interval_s, begin_s) - 1e-6 * interval_s) if counted.height else rates > 0
    return starts[seen], rates[seen]


def _first_whole_s(rows: pl.DataFrame, interval_s: float, begin_s: float) -> float:
    """When the first interval begins of which the arrival before it is known."""
    first = rows["start_s"].to_numpy().min()
    return float((np.floor((first - begin_s) / interval_s + 1e-6) + 1) * interval_s + begin_s)


def _received(intervals: pl.DataFrame, filters: Mapping[str, str]) -> pl.DataFrame:
    rows = receivers(intervals)
    for key, value in filters.items():
        rows = rows.filter(pl.col(_FILTER_COLUMNS[key]) == value)
    if rows.is_empty():
        chosen = ", ".join(f"{key}={value}" for key, value in filters.items()) or "any"
        raise LookupError(f"no flow with {chosen} was received")
    return rows


def _carried(rows: pl.DataFrame, layer: Layer) -> Vector:
    """Bytes at `layer` of each row: as the receiver counted them packet by packet, or else an estimate."""
    if layer == "payload":
        return rows["payload_bytes"].to_numpy().astype(np.float64)
    if "frames" not in rows.columns:
        # Results of versions that did not count them: all over IPv4 and, as far as they can tell, at an MTU of 1500.
        nothing = [pl.lit(None, pl.Int64).alias(name) for name in ("frames", "network_bytes", "wire_bytes")]
        path = [pl.lit(None, pl.Int64).alias(name) for name in ("path_mtu", "ip_version")]
        rows = rows.with_columns(*nothing, *path)
    link = pl.col("network_bytes") + ETHERNET_BYTES * pl.col("frames")
    counted = rows.select(link if layer == "link" else pl.col(f"{layer}_bytes")).to_series()
    known = counted.is_not_null().to_numpy()
    sizes = np.where(known, counted.fill_null(0).to_numpy().astype(np.float64), 0.0)
    sizes[~known] = _estimated(rows.filter(~known), layer)
    return sizes


def _estimated(rows: pl.DataFrame, layer: Layer) -> Vector:
    sizes = np.zeros(rows.height)
    key = ("protocol", pl.col("packets").is_null().alias("total"), "path_mtu", "ip_version")
    numbered = rows.with_row_index("row")
    for (protocol, total, mtu, version), group in numbered.group_by(*key):
        payload = group["payload_bytes"].to_numpy().astype(np.float64)
        packets = group["packets"].fill_null(0).to_numpy().astype(np.float64)
        number = packets if not total and protocol in ("udp", "rtp", "icmp") else None
        path = (int(mtu or 1500), 6 if version == 6 else 4)
        sizes[group["row"].to_numpy()] = carried_bytes(payload, number, str(protocol), layer, *path)
    return sizes


def port_bytes(samples: pl.DataFrame, ports: Sequence[str], layer: Layer = "wire") -> Cumulative:
    """What `ports` together had sent, at layer `link` or `wire`; raises `LookupError` when none was sampled."""
    rows = samples.filter(pl.col("port").is_in(list(ports)))
    if rows.is_empty():
        raise LookupError(f"the port {', '.join(ports)} was not sampled")
    sizes = rows["link_bytes" if layer == "link" else "wire_bytes"].to_numpy().astype(np.float64)
    return _cumulative(rows["start_s"].to_numpy(), rows["length_s"].to_numpy(), sizes)


@dataclass(frozen=True)
class Band:
    """A series over repetitions: mean and confidence band at each interval.

    Attributes
    ----------
    start_s, mean, low, high
        One value an interval; `low` and `high` are NaN for a single repetition.
    count
        How many repetitions.
    """

    start_s: Vector
    mean: Vector
    low: Vector
    high: Vector
    count: int


def band(start_s: Vector, repetitions: Sequence[Vector], level: float = 0.95) -> Band:
    """Mean over `repetitions` and the confidence interval of the mean by Student's t, at each interval."""
    matrix = np.vstack(list(repetitions))
    mean = matrix.mean(axis=0)
    count = matrix.shape[0]
    if count < 2:
        nothing = np.full(mean.shape, np.nan)
        return Band(start_s, mean, nothing, nothing, count)
    half = t_quantile(level, count - 1) * matrix.std(axis=0, ddof=1) / np.sqrt(count)
    return Band(start_s, mean, mean - half, mean + half, count)
