"""An estimate by probes and one by counters over the same time, weighed by how sure each is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinnet.control.available_bandwidth import PassiveBandwidth
from twinnet.errors import BadValue
from twinnet.results.bandwidth_report import Bandwidth

__all__ = ["Fused", "fuse"]

_QUANTILE = 1.96


@dataclass(frozen=True)
class Fused:
    """The available bandwidth by probes and counters.

    Parameters
    ----------
    estimate_bps, low_bps, high_bps
        The estimate and its 95 % interval.
    counters_weight
        The counters' share of the weight, 0 to 1.
    agree
        Whether both are within their joint 95 % interval. Where they are not, the interval spans both: a capacity may
        be wrong, or a link that no counter sees may be the tight one.
    """

    estimate_bps: float
    low_bps: float
    high_bps: float
    counters_weight: float
    agree: bool


def fuse(probed: Bandwidth, counted: PassiveBandwidth) -> Fused:
    """Return the estimate that weighs both by their variances (the Kalman filter's step for one state).

    Both must be at the layer ``wire``.

    Raises
    ------
    BadValue
        One of them has no estimate, or no interval.
    """
    if probed.layer != "wire" or counted.layer != "wire":
        raise BadValue("probes and counters must be at one layer", "estimate both at the layer 'wire'")
    if probed.estimate_bps is None or probed.low_bps is None or probed.high_bps is None:
        raise BadValue("the probes gave no estimate with an interval", "use counted alone")
    ours = max((probed.high_bps - probed.low_bps) / (2 * _QUANTILE), 1.0)
    theirs = max(counted.error_bps / _QUANTILE, 1.0)
    weights = ours**-2, theirs**-2
    share = weights[1] / sum(weights)
    middle = (1 - share) * probed.estimate_bps + share * counted.available_bps
    half = _QUANTILE / math.sqrt(sum(weights))
    agree = abs(probed.estimate_bps - counted.available_bps) <= _QUANTILE * math.hypot(ours, theirs)
    low, high = middle - half, middle + half
    if not agree:
        low = min(probed.low_bps, counted.available_bps - counted.error_bps)
        high = max(probed.high_bps, counted.available_bps + counted.error_bps)
    return Fused(middle, max(low, 0.0), high, share, agree)
