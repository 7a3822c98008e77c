"""D/D/1: constant gaps, constant sizes, one line."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet_validation.law import Law, Row
from twinnet_validation.port import Source, constant, run_port

__all__ = ["LAW"]

_RATE_BPS = 8_000_000
_BYTES = 1000
_SERVICE_PS = 10**9


def _measure(quick: bool) -> Sequence[Row]:
    frames = 500 if quick else 20_000
    rows: list[Row] = []
    for load, gap_ps in ((0.5, 2 * _SERVICE_PS), (0.999, 1_001_001_001), (1.0, _SERVICE_PS), (1.25, 800_000_000)):
        run = run_port(
            [Source(frames, constant(gap_ps), constant(_BYTES))],
            {"kind": "fifo", "limit_frames": frames},
            rate_bps=_RATE_BPS,
            records=True,
        )
        each_ps = max(0, _SERVICE_PS - gap_ps)
        waits = [(one.received_ps or 0) - one.sent_ps - _SERVICE_PS for one in run.records]
        exact = all(wait == number * each_ps for number, wait in enumerate(waits))
        rows.append(
            Row(
                f"load {load:g}, {frames} frames",
                "longest wait",
                "ps",
                (frames - 1) * each_ps,
                max(waits),
                "0, for every frame: time is counted in whole picoseconds",
                exact,
            )
        )
    return rows


LAW = Law(
    "deterministic-queue",
    "D/D/1",
    "Frames that come at equal distances, no closer than they can leave, never wait; closer, frame k waits k times the "
    "difference of service time and gap.",
    "Kleinrock 1975, Queueing Systems I, 1.2",
    _measure,
)
