"""Recorded trains through any estimator, without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from twinnet._core import CoreError, replay_bandwidth
from twinnet.errors import BadValue
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.traffic.bandwidth import bandwidth_method
from twinnet.traffic.estimator import Estimator, hand_to_the_core

__all__ = ["replay"]


def replay(
    trains: Sequence[Mapping[str, Any]],
    method: str | type[Estimator],
    *,
    layer: Literal["wire", "network"] = "wire",
    mtu: int = 1500,
    v6: bool = False,
    most_rate_bps: float = 1e9,
    seed: int = 0,
    **settings: Any,
) -> Bandwidth:
    """Return what `method` finds in `trains`, the `record` of an estimate that was made with ``record=True``.

    A method hears the trains in their order, whatever it would have asked for. The one that asked for them finds what
    it found then, with the same `seed`-independent settings.

    Parameters
    ----------
    trains
        Each with its ``plan``, ``sent_ns`` and ``arrived_ns``.
    method, settings
        As for :func:`twinnet.bandwidth.bandwidth_method`.
    layer, mtu, v6, most_rate_bps
        As they were for the record.
    seed
        Of what the method draws.

    Raises
    ------
    BadValue
        The trains are no record, a setting is not allowed, or a class of your own failed.
    """
    chosen = bandwidth_method(method, **settings)
    if code := chosen.get("code"):
        hand_to_the_core(code)
    request = {
        "method": chosen,
        "layer": layer,
        "v6": v6,
        "most_payload": mtu - (48 if v6 else 28),
        "most_rate_bps": most_rate_bps,
        "seed": seed,
        "trains": list(trains),
    }
    try:
        found = json.loads(replay_bandwidth(json.dumps(request)))
    except CoreError as error:
        raise BadValue(str(error.args[1]), str(error.args[2])) from error
    except (ValueError, TypeError) as error:
        raise BadValue(f"the record cannot be replayed: {error}") from None
    spec: dict[str, Any] = {**found, "method": chosen.get("called", method), "layer": layer, "trains": len(trains)}
    estimate = Bandwidth.from_spec(spec)
    assert estimate is not None
    return estimate
