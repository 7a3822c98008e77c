"""Two streams at one bottleneck: equals become fair, and who yields to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from twinnet_validation.law import Law, Row
from twinnet_validation.tcp_paths import Bottleneck, Stream, bytes_per_second, jain_index, run_streams

__all__ = ["FAIRNESS", "RIVALS", "fairness_over_time", "share_of_first"]

_FAIR_LINK = Bottleneck(20, 40, 1.0)
_LATE_S = 20
_WINDOW_S = 10


def fairness_over_time(seconds: int) -> list[float]:
    """Return Jain's index in each ten seconds from the moment on at which a second CUBIC flow joins the first."""
    streams = run_streams(_FAIR_LINK, [Stream("cubic"), Stream("cubic", _LATE_S)], seconds)
    counts = [bytes_per_second(heard.intervals, seconds) for _, heard in streams]
    return [
        jain_index([sum(count[start : start + _WINDOW_S]) for count in counts])
        for start in range(_LATE_S, seconds - _WINDOW_S + 1, _WINDOW_S)
    ]


def _measure_fairness(quick: bool) -> Sequence[Row]:
    indices = fairness_over_time(80 if quick else 220)
    first, later = indices[0], indices[2:]
    setting = f"two CUBIC flows, {_FAIR_LINK}, the second {_LATE_S} s late"
    return [
        Row(
            f"{setting}; from {2 * _WINDOW_S} s after it on",
            "Jain's index over 10 s, mean",
            "",
            1.0,
            mean(later),
            "5 %: saw-teeth of 3 to 5 s do not keep step, so 10 s hold more of one flow's peaks than of the other's",
            mean(later) >= 0.95,
        ),
        Row(
            f"{setting}; the least of the {len(later)} later ones",
            "Jain's index over 10 s",
            "",
            None,
            min(later),
            "above 0.8, which is one flow with three times what the other has: none is ever shut out",
            min(later) > 0.8,
        ),
        Row(
            f"{setting}; the first {_WINDOW_S} s",
            "Jain's index",
            "",
            None,
            first,
            "below the mean of the later ones: the newcomer begins with nothing",
            first < mean(later),
        ),
    ]


def share_of_first(link: Bottleneck, one: str, other: str, seconds: int) -> float:
    """Return the share of the bytes that the first of two streams of unlike congestion control gets, after 30 s."""
    streams = run_streams(link, [Stream(one), Stream(other)], seconds)
    first, second = (sum(bytes_per_second(heard.intervals, seconds)[30:]) for _, heard in streams)
    return first / (first + second)


@dataclass(frozen=True)
class _Rivalry:
    other: str
    link: Bottleneck
    least: float
    most: float
    why: str


_RIVALS = (
    _Rivalry(
        "reno",
        Bottleneck(20, 20, 1.0),
        0.40,
        0.60,
        "40 to 60 %: small windows are the Reno-friendly region, where CUBIC grows as Reno does (RFC 9438, 4.3)",
    ),
    _Rivalry(
        "reno",
        Bottleneck(50, 100, 1.0),
        0.65,
        1.0,
        "above 65 %: with large windows Reno takes a minute to grow back what CUBIC does in seconds (RFC 9438, 5.1)",
    ),
    _Rivalry(
        "bbr",
        Bottleneck(20, 40, 1.0),
        0.0,
        0.25,
        "below 25 %: BBR keeps 2 BDP in flight, whatever is lost, and the buffer holds one (Hock et al. 2017)",
    ),
    _Rivalry(
        "bbr",
        Bottleneck(20, 40, 16.0),
        0.60,
        1.0,
        "above 60 %: CUBIC fills a deep buffer, BBR keeps to 2 BDP of it (Hock et al. 2017; Ware et al. 2019)",
    ),
)


def _measure_rivals(quick: bool) -> Sequence[Row]:
    seconds = 90 if quick else 180
    rows: list[Row] = []
    for rivalry in _RIVALS[2:] if quick else _RIVALS:
        share = share_of_first(rivalry.link, "cubic", rivalry.other, seconds)
        rows.append(
            Row(
                f"CUBIC beside {rivalry.other}, {rivalry.link}, {seconds} s",
                "CUBIC's share",
                "%",
                None,
                share * 100,
                rivalry.why,
                rivalry.least <= share <= rivalry.most,
            )
        )
    return rows


FAIRNESS = Law(
    "fairness",
    "Two CUBIC flows become fair",
    "At the same loss the larger window is cut by more, and grows back no faster: both approach each other.",
    "RFC 9438, 5.6; Jain, Chiu and Hawe 1984 for the index",
    _measure_fairness,
)
RIVALS = Law(
    "rivals",
    "CUBIC beside NewReno and BBR",
    "The direction is what Linux shows; the share itself depends on rates and buffers and is stated.",
    "RFC 9438, 4.3 and 5.1; Hock, Bless and Zitterbart 2017, Experimental evaluation of BBR congestion control; Ware, "
    "Mukerjee, Seshan and Sherry 2019, Modeling BBR's interactions with loss-based congestion control",
    _measure_rivals,
)
