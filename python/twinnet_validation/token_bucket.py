"""Token bucket: no interval carries more than burst + rate x its length."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet_validation.law import Law, Row, within
from twinnet_validation.port import Record, Source, exponential, run_port

__all__ = ["LAW", "largest_burst_bytes"]

_RATE_BPS = 10_000_000
_BURST_BYTES = 20_000
_MEAN_BYTES = 700
_TOKENS_PER_BYTE = 8 * 10**12


def largest_burst_bytes(records: Sequence[Record], rate_bps: int) -> float:
    """Return the most by which the frames of any interval exceed `rate_bps` times its length, in bytes.

    Over all pairs of frames at once: the sum up to the later one less the least of the sums before the earlier one,
    each less what the rate would have carried until then. In whole numbers, so that nothing is rounded.
    """
    sent = least = worst = 0
    left = sorted((one.received_ps, one.bytes) for one in records if one.received_ps is not None)
    for place, (at_ps, size) in enumerate(left):
        carried = rate_bps * at_ps
        before = sent * _TOKENS_PER_BYTE - carried
        least = before if place == 0 else min(least, before)
        sent += size
        worst = max(worst, sent * _TOKENS_PER_BYTE - carried - least)
    return worst / _TOKENS_PER_BYTE


def _measure(quick: bool) -> Sequence[Row]:
    frames = 5000 if quick else 100_000
    rows: list[Row] = []
    for load in (0.7, 1.5):
        gap_ps = _MEAN_BYTES * 8e12 / _RATE_BPS / load
        run = run_port(
            [Source(frames, exponential(gap_ps), exponential(_MEAN_BYTES, 60, 1514))],
            {"kind": "tbf", "rate_bps": _RATE_BPS, "burst_bytes": _BURST_BYTES},
            rate_bps=None,
            records=True,
        )
        worst = largest_burst_bytes(run.records, _RATE_BPS)
        # Only a bucket that is always wanted is emptied for certain.
        least = _BURST_BYTES - 1514 if load > 1 else 0
        rows.append(
            Row(
                f"10 Mbit/s, 20 kB, Poisson frames at {load:g} of the rate, {frames} frames",
                "largest excess of any interval",
                "B",
                _BURST_BYTES,
                worst,
                "never above, to the picosecond" + ("; nor a frame of 1514 B below" if least else ""),
                least <= worst <= _BURST_BYTES,
            )
        )
        if load > 1:
            received = sorted(one.received_ps for one in run.records if one.received_ps is not None)
            last_s = received[-1] / 1e12
            bytes_left = sum(one.bytes for one in run.records if one.received_ps is not None)
            seen = (bytes_left - _BURST_BYTES) * 8 / last_s / 1e6
            why = "what the bucket begins with is left out; the first frames came before it was empty"
            rows.append(within(rows[-1].setting, "rate over all", "Mbit/s", 10.0, seen, 0.005, why))
    return rows


LAW = Law(
    "token-bucket",
    "Token bucket envelope",
    "Over any time t at most burst + rate x t leaves: tokens come at the rate, and no more than the burst is kept.",
    "Cruz 1991, A calculus for network delay I; RFC 2697",
    _measure,
)
