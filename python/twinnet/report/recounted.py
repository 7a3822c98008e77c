"""What a run has twice must agree: its table `flows` is counted again from the packets and from the intervals.

Apps count packet by packet while they keep packets and intervals beside that, so that the same packets give both. What
is compared here follows from the definitions of the columns (docs/reference/results.md): counts and sums exactly,
moments within rounding, and percentiles, which apps keep in a histogram, within 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.study.store import StoredRun

__all__ = ["contradictions"]

Vector = npt.NDArray[np.float64]

_RELATIVE, _NEAR_MS = 1e-6, 2e-6
"""Times are whole picoseconds on the lab's clock; in seconds and as 64-bit numbers they are exact to some of these."""
_OF_A_HISTOGRAM = 0.01
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_MOST_TOLD = 3
_RECEIVERS = ("sink", "client")
_FLOW = ("name", "from_host", "flow")


def contradictions(run: StoredRun) -> list[str]:
    """Return in sentences where the tables of a run contradict each other, the first few; empty where they agree.

    Raises
    ------
    StoreError
        A table cannot be read.
    """
    flows, packets = run.table("flows"), run.table("packets")
    found = [*_packets_alone(packets), *_flows_by_packets(flows, packets), *_losses_by_sources(flows)]
    found += _flows_by_intervals(flows, run.table("intervals"))
    more = len(found) - _MOST_TOLD
    return found[:_MOST_TOLD] + ([f"{more} more columns are not what the finer table gives"] if more > 0 else [])


def _packets_alone(packets: pl.DataFrame) -> Iterator[str]:
    """A packet's delay is the time between its two stamps."""
    known = packets.drop_nulls(["sent_s", "arrived_s", "delay_ms"])
    delays = known["delay_ms"].to_numpy()
    stamped = (known["arrived_s"].to_numpy() - known["sent_s"].to_numpy()) * 1e3
    wrong = int((~np.isclose(delays, stamped, _RELATIVE, _NEAR_MS)).sum())
    if wrong:
        yield f"the delays of {wrong} packets are not the time from when they were sent to when they arrived"


def _flows_by_packets(flows: pl.DataFrame, packets: pl.DataFrame) -> Iterator[str]:
    if packets.is_empty():
        return
    of_flow = packets.partition_by(_FLOW, as_dict=True)
    for row in flows.filter(pl.col("role").is_in(_RECEIVERS) & pl.col("packets").is_not_null()).iter_rows(named=True):
        mine = of_flow.get(tuple(row[key] for key in _FLOW), packets.clear())
        kept = mine.unique("number", keep="first", maintain_order=True)
        called = f"{row['name']} from {row['from_host']}"
        if kept.height > row["packets"]:
            yield f"{called}: flows has {row['packets']} packets, and packets {kept.height} of them"
        elif kept.height:
            whole = kept.height == row["packets"]
            yield from (f"{called}: {one}" for one in _row_by_packets(row, kept, whole))


def _row_by_packets(row: Mapping[str, Any], kept: pl.DataFrame, whole: bool) -> Iterator[str]:
    """What `kept`, all packets of a flow or the first of them, say of its row."""
    sizes = kept["payload_bytes"]
    if whole and not sizes.null_count() and row["payload_bytes"] is not None and sizes.sum() != row["payload_bytes"]:
        yield f"payload_bytes is {row['payload_bytes']}, and the packets have {sizes.sum()}"
    # A delay below zero is counted as zero: two clocks were compared too badly.
    delays = np.maximum(_known(kept, "delay_ms"), 0.0)
    series = {"delay": delays, "gap": _known(kept, "gap_ms"), "jitter_rfc4689": _known(kept, "jitter_rfc4689_ms")}
    for name, values in series.items():
        if row.get(f"{name}_count") is not None and values.size:
            yield from _distribution(name, row, values, whole)


def _distribution(name: str, row: Mapping[str, Any], values: Vector, whole: bool) -> Iterator[str]:
    def stated(part: str, found: float, near: Callable[[float, float], bool]) -> Iterator[str]:
        said = row.get(f"{name}_{part}_ms")
        if said is not None and not near(said, found):
            yield f"{name}_{part}_ms is {said:.6g}, and its packets give {found:.6g}"

    least, most = float(values.min()), float(values.max())
    if not whole:
        yield from stated("min", least, lambda said, found: said <= found or _near(said, found))
        yield from stated("max", most, lambda said, found: said >= found or _near(said, found))
        return
    if row[f"{name}_count"] != values.size:
        yield f"{name}_count is {row[f'{name}_count']}, and its packets are {values.size}"
    moments = {"mean": float(values.mean()), "min": least, "max": most}
    for part, found in (moments | {"std": float(values.std(ddof=1)) if values.size > 1 else 0.0}).items():
        yield from stated(part, found, _near if part != "std" else _near_spread(most))
    for part, share in _QUANTILES.items():
        found = float(np.sort(values)[max(math.ceil(share * values.size), 1) - 1])
        yield from stated(part, found, lambda said, found: abs(said - found) <= _OF_A_HISTOGRAM * found + _NEAR_MS)


def _near(said: float, found: float) -> bool:
    return math.isclose(said, found, rel_tol=_RELATIVE, abs_tol=_NEAR_MS)


def _near_spread(most: float) -> Callable[[float, float], bool]:
    """Of a deviation: what rounding of values up to `most` leaves."""
    return lambda said, found: abs(said - found) <= _RELATIVE * max(found, most) + _NEAR_MS


def _losses_by_sources(flows: pl.DataFrame) -> Iterator[str]:
    """What apps lost is what a source sent less what arrived (:func:`~twinnet.study.lost_packets.with_all_losses`)."""
    by_apps = (pl.col("tool") == "apps") & pl.col("protocol").is_in(["udp", "rtp"]) & pl.col("flow").is_not_null()
    for ends in flows.filter(by_apps).partition_by(*_FLOW, as_dict=True).values():
        rows = {row["role"]: row for row in ends.iter_rows(named=True)}
        if ends.height != 2 or rows.keys() != {"source", "sink"}:
            continue
        sent, arrived, lost = rows["source"]["packets"], rows["sink"]["packets"], rows["sink"]["lost_packets"]
        if sent and arrived is not None and lost is not None and lost != max(0, sent - arrived):
            yield (
                f"{rows['sink']['name']} from {rows['sink']['from_host']}: lost_packets is {lost}, and of {sent} "
                f"packets {arrived} arrived"
            )


def _flows_by_intervals(flows: pl.DataFrame, intervals: pl.DataFrame) -> Iterator[str]:
    of_end = intervals.partition_by(*_FLOW, "role", as_dict=True)
    # Programs round what they report.
    for row in flows.filter(pl.col("tool") == "apps").iter_rows(named=True):
        mine = of_end.get((*(row[key] for key in _FLOW), row["role"]))
        if mine is None:
            continue
        called = f"{row['name']} from {row['from_host']}, {row['role']}"
        for column in ("payload_bytes", "packets", "reordered_packets", "duplicate_packets", "lost_packets"):
            if row[column] is None or mine[column].null_count():
                continue
            # What was lost after the last arrival is in no interval, nor are requests that nobody answered.
            beyond = row[column] - mine[column].sum()
            if beyond < 0 or (beyond > 0 and column != "lost_packets" and row["role"] in _RECEIVERS):
                yield f"{called}: {column} is {row[column]}, and its intervals have {mine[column].sum()}"
        for column, least in (
            (f"{name}_{end}_ms", end == "min") for name in ("delay", "rtt") for end in ("min", "max")
        ):
            ends = mine[column].drop_nulls()
            if row[column] is None or ends.is_empty():
                continue
            found = float((ends.min() if least else ends.max()) or 0.0)  # pyright: ignore[reportArgumentType]
            if not _near(row[column], found):
                yield f"{called}: {column} is {row[column]:.6g}, and its intervals have {found:.6g}"
        yield from (f"{called}: {one}" for one in _mean_by_intervals(row, mine))


def _mean_by_intervals(row: Mapping[str, Any], mine: pl.DataFrame) -> Iterator[str]:
    """A mean delay, where each packet has one, is that of the intervals weighed by their packets."""
    timed = mine.drop_nulls(["packets", "delay_mean_ms"])
    count = int(timed["packets"].sum())
    if not count or row["delay_mean_ms"] is None or count != row["delay_count"]:
        return
    found = float(np.average(_known(timed, "delay_mean_ms"), weights=_known(timed, "packets")))
    if not _near(row["delay_mean_ms"], found):
        yield f"delay_mean_ms is {row['delay_mean_ms']:.6g}, and its intervals give {found:.6g}"


def _known(frame: pl.DataFrame, column: str) -> Vector:
    return frame[column].drop_nulls().to_numpy().astype(np.float64)
