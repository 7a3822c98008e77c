"""CUBIC's saw-tooth: how deep it is cut, how high it comes and how long that takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from twinnet.results.flow_series import TcpInfo

from twinnet_validation.law import Law, Row, within
from twinnet_validation.tcp_paths import Bottleneck, Stream, run_streams

__all__ = ["BETA", "LAW", "LINK", "Peak", "expected_period_s", "peaks", "window_over_time"]

BETA = 0.7
C = 0.4
"""Of RFC 9438, 4.6: the window after a loss over the one before, and the speed of growth in segments/s^3."""

LINK = Bottleneck(50, 100, 0.5)
"""So long a period that CUBIC's own growth decides, not Reno's: RFC 9438's Reno-friendly region is left at once."""
_SETTLED_S = 30
"""By then slow start and the first, incomplete period are over."""


@dataclass(frozen=True)
class Peak:
    """A loss: when, and the windows in segments before and after."""

    at_s: float
    before: int
    after: int


def window_over_time(seconds: int) -> TcpInfo:
    """Return the course of one flow's window over `LINK`."""
    ((sender, _),) = run_streams(LINK, [Stream("cubic")], seconds, info_interval="10 ms")
    if sender.tcp_info is None:
        raise ValueError("the sender reported nothing of its TCP")
    return sender.tcp_info


def peaks(info: TcpInfo, after_s: float = _SETTLED_S) -> list[Peak]:
    """Return the losses: where the threshold of slow start changes. It is what the window is cut to."""
    found: list[Peak] = []
    thresholds, windows = info.slow_start_thresholds, info.congestion_windows
    for place in range(1, len(windows)):
        cut = thresholds[place]
        if cut is None or cut == thresholds[place - 1] or info.at_s[place] < after_s:
            continue
        begin = max(0, place - 30)
        found.append(Peak(info.at_s[place], max(windows[begin : place + 1]), cut))
    return found


def expected_period_s(previous: Peak, first: Peak, second: Peak) -> float:
    """Return how long the window takes from the loss `first` to the height of `second`, by RFC 9438.

    W(t) = C (t - K)^3 + Wmax with K = cbrt((Wmax - cwnd) / C) (4.2). When a loss comes lower than the one before it,
    Wmax is taken lower by (1 + beta) / 2, to make room: fast convergence (4.7).
    """
    top = first.before * (1 + BETA) / 2 if first.before < previous.before else float(first.before)
    return math.cbrt((top - first.after) / C) + math.cbrt((second.before - top) / C)


def _measure(quick: bool) -> Sequence[Row]:
    found = peaks(window_over_time(80 if quick else 200))
    setting = f"one flow, {LINK}, {len(found)} losses"
    seen_s, expected_s = 0.0, 0.0
    for previous, first, second in zip(found, found[1:], found[2:], strict=False):
        seen_s += second.at_s - first.at_s
        expected_s += expected_period_s(previous, first, second)
    count = len(found) - 2
    return [
        within(
            setting,
            "window at a loss",
            "segments",
            LINK.capacity_segments,
            mean(peak.before for peak in found),
            0.03,
            "the window still grows in the round trip until the loss is heard of",
        ),
        within(
            setting,
            "window after a loss, over that before",
            "",
            BETA,
            mean(peak.after / peak.before for peak in found),
            0.005,
            "windows are whole segments, of some 600",
        ),
        within(
            setting,
            "mean period",
            "s",
            expected_s / count,
            seen_s / count,
            0.05,
            "recovery takes two round trips of 0.15 s, in which the window does not grow, in 5 to 13 s",
        ),
    ]


LAW = Law(
    "cubic-window",
    "CUBIC's saw-tooth",
    "After a loss the window is cut to 0.7 and grows by the cube of time, flat where the loss was; with a drop-tail "
    "buffer losses come when line and buffer are full. Long and short periods alternate, because a loss that comes a "
    "little lower than the last makes the flow yield.",
    "RFC 9438, 4.2, 4.6 and 4.7",
    _measure,
)
