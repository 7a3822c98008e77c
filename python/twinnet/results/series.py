"""Throughput over time from tables of intervals: sums over flows, any interval and layer, bands over repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.results.layers import ETHERNET_BYTES, Layer, carried_bytes
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
    """Return the bytes that the receivers of the flows selected by `filters` had got over time, at `layer`.

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
    begun_s: Mapping[tuple[int, str], float] | None = None,
) -> tuple[Vector, Vector]:
    """Starts in seconds and rates in bit/s of the whole intervals in `during_s`, bounded by arrivals.

    A datagram is counted whole in the interval in which its last bit arrives, so on the clock's bounds an interval can
    hold one datagram more than the line carries in it. Here an interval lasts from the last arrival before it to its
    own last arrival: all that it counts arrived in that time, and no rate can exceed the line's. The interval in which
    a flow begins lasts from the moment at which its source began to send or, among several flows, from its own
    beginning where that is earlier. Parameters as for :func:`flow_bytes`, whose rows are counted in parts of
    `interval_s`; rates of several flows are added.

    Parameters
    ----------
    begun_s
        When each source began, by the flow's number and its sending host. Of a flow that is not in it the interval in
        which it begins is left out, since it is not whole.
    """
    rows = _received(intervals, filters)
    counted = rows.with_columns(pl.Series("carried", _carried(rows, layer))).filter(
        pl.col("last_arrival_s").is_not_null()
    )
    # A millionth of an interval: bounds that differ only by floating point count as equal.
    begin_s, end_s = during_s
    count = max(0, int((end_s - begin_s) / interval_s + 1e-6))
    rates = np.zeros(count)
    seen_from = begin_s + count * interval_s
    alone = counted.select("flow", "from_host").n_unique() == 1
    for (number, host), flow in counted.group_by("flow", "from_host"):
        ordered = flow.sort("start_s")
        place = np.floor((ordered["start_s"].to_numpy() - begin_s) / interval_s + 1e-6).astype(np.int64)
        sizes, arrivals = ordered["carried"].to_numpy(), ordered["last_arrival_s"].to_numpy()
        numbers, first = np.unique(place, return_index=True)
        last = np.append(first[1:], place.size) - 1
        ends, bits = arrivals[last], np.add.reduceat(sizes, first) * 8
        begun = (begun_s or {}).get((int(cast("int", number or 0)), str(host)))
        if begun is not None and begun < ends[0]:
            # Beside others a flow that begins within an interval counts over all of it, or the sum would be too high.
            bound_s = begun if alone else min(begun, begin_s + float(numbers[0]) * interval_s)
            ends = np.append(bound_s, ends)
        else:
            numbers, bits = numbers[1:], bits[1:]
        time_s = np.diff(ends)
        whole = (numbers >= 0) & (numbers < count)
        rates[numbers[whole]] += bits[whole] / time_s[whole]
        first_whole = numbers[0] if numbers.size else place[-1] + 1
        seen_from = min(seen_from, begin_s + float(first_whole) * interval_s)
    starts = begin_s + np.arange(count, dtype=np.float64) * interval_s
    # Before the first whole interval nothing is known.
    seen = starts >= seen_from - 1e-6 * interval_s
    return starts[seen], rates[seen]


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
    """Return the bytes that `ports` together had sent over time, at layer `link` or `wire`; raises `LookupError`
    when none was sampled."""
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
