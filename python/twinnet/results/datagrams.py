"""The datagrams of a run one by one, those that were lost among them, from what each receiver kept of its flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["datagrams_sent"]

Vector = npt.NDArray[np.float64]


def datagrams_sent(flows: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each datagram that the flows sent: the columns of `packets`, and `arrived`.

    Duplicates are left out. A datagram that was lost has no values; its `sent_s` follows from its number and the times
    at which those around it were sent, and from the source's first and last, so it is exact where gaps are constant.

    Parameters
    ----------
    flows
        Rows of the table `flows`, of both ends.
    packets
        Those of the table `packets` of the same flows.

    Raises
    ------
    LookupError
        No receiver is among the flows, or the packets of one were not all kept: the message names that which needs the
        most, and the second argument is how many that is.
    """
    sinks = flows.filter((pl.col("role") == "sink") & pl.col("lost_packets").is_not_null())
    if sinks.is_empty():
        raise LookupError("no receiver of datagrams is among what it selects")
    found: list[pl.DataFrame] = []
    too_few: list[tuple[int, str]] = []
    for sink in sinks.iter_rows(named=True):
        mine = (pl.col("name") == sink["name"]) & (pl.col("from_host") == sink["from_host"])
        kept = packets.filter(mine).unique("number", keep="first", maintain_order=True)
        arrived = int(sink["packets"] or 0)
        if kept.height < arrived:
            needed = arrived + int(sink["lost_packets"])
            said = f"{kept.height} of {arrived} packets of {sink['name']} from {sink['from_host']} were kept; give the "
            too_few.append((needed, f"{said}traffic {sink['name']} 'record_packets: {needed}'"))
            continue
        source = flows.filter(mine & (pl.col("role") == "source"))
        ends = (source["start_s"][0], source["end_s"][0]) if source.height else (None, None)
        lost = _lost(kept, int(sink["lost_packets"]), sink["protocol"] == "udp", ends)
        found.append(kept.with_columns(arrived=pl.lit(value=True)))
        missing = {"name": sink["name"], "protocol": sink["protocol"], "from_host": sink["from_host"], "arrived": False}
        found.append(pl.DataFrame({"sent_s": lost}).with_columns(**{key: pl.lit(one) for key, one in missing.items()}))
    if too_few:
        needed, said = max(too_few)
        raise LookupError(said, needed)
    return pl.concat(found, how="diagonal")


def _lost(kept: pl.DataFrame, count: int, from_zero: bool, ends: tuple[float | None, float | None]) -> Vector:
    """The times at which `count` lost datagrams were sent, NaN where packets do not tell."""
    if count == 0:
        return np.zeros(0)
    timed = kept.filter(pl.col("sent_s").is_not_null()).sort("number")
    if timed.is_empty():
        begin, end = ends
        return np.full(count, np.nan) if begin is None or end is None else np.linspace(begin, end, count)
    numbers, sent = timed["number"].to_numpy(), timed["sent_s"].to_numpy()
    expected: npt.NDArray[np.int64] = np.arange(numbers[0], numbers[-1] + 1, dtype=np.int64)
    inner = expected[~np.isin(expected, kept["number"].to_numpy())][:count]
    outer = count - inner.size
    begin, end = (ends[0] if ends[0] is not None else sent[0]), (ends[1] if ends[1] is not None else sent[-1])
    if from_zero:
        before = min(outer, int(numbers[0]))
    else:
        # RTP counts from the first that arrived: what was lost before it shows in the time alone.
        outside = (max(0.0, sent[0] - begin), max(0.0, end - sent[-1]))
        before = round(outer * outside[0] / sum(outside)) if sum(outside) > 0 else 0
    parts: list[Vector] = [
        np.linspace(begin, sent[0], before, endpoint=False),
        np.interp(inner, numbers, sent),
        np.linspace(end, sent[-1], outer - before, endpoint=False),
    ]
    return np.concatenate(parts)
