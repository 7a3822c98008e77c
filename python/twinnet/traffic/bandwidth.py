"""Probes for available bandwidth: constructors for the prober and the listener.

The methods and their settings are described in ``docs/reference/available-bandwidth.md``; the settings are those of
the Rust side, which checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from twinnet.errors import BadValue
from twinnet.ranges import line_rate_bps, run_time_ps, transfer_bytes
from twinnet.traffic.apps import App, Flow
from twinnet.units import size_bytes

__all__ = ["BANDWIDTH_PORT", "METHODS", "bandwidth", "bandwidth_listener", "bandwidth_method", "bandwidth_prober"]

METHODS = ("pathload", "yaz", "pathchirp", "assolo", "stab", "spruce", "igi", "ptr", "kalman", "hybrid")
"""The names of all methods."""
BANDWIDTH_PORT = 5010
"""The listener's port where nothing else is said."""
_NEED_CAPACITY = ("spruce", "hybrid")


def bandwidth_method(
    method: str,
    *,
    capacity: str | None = None,
    prior: str | None = None,
    prior_std: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a method in the form of the lab protocol.

    Parameters
    ----------
    method
        One of :data:`METHODS`.
    capacity
        Of the tight link, with unit: needed by ``spruce``, of use to ``hybrid``.
    prior, prior_std
        What port counters say is available, and its standard deviation, with units: of use to ``hybrid``.
    settings
        Settings of the method by their names, in base units (bit/s, nanoseconds, bytes).
    """
    if method not in METHODS:
        raise BadValue(f"the method {method!r} is not known", f"allowed are {', '.join(METHODS)}")
    found: dict[str, Any] = {"name": method}
    if capacity is not None:
        if method not in _NEED_CAPACITY:
            raise BadValue(f"{method} does not use a capacity", "leave capacity out")
        found["capacity_bps"] = float(line_rate_bps(capacity))
    for name, value in (("prior", prior), ("prior_std", prior_std)):
        if value is not None:
            if method != "hybrid":
                raise BadValue(f"{method} does not use a prior", f"leave {name} out")
            found[f"{name}_bps"] = float(line_rate_bps(value))
    return found | dict(settings or {})


def bandwidth_listener(
    host: str, *, port: int = BANDWIDTH_PORT, most_rate: str = "10 Gbit", allow: Sequence[str] | None = None
) -> App:
    """Return a listener that tells probers when their probes arrived.

    It sends to nobody more bytes than it received from there, and lets probers send at `most_rate` at most. With
    `allow`, only those addresses are answered.
    """
    fields: dict[str, Any] = {"port": port, "most_rate_bps": line_rate_bps(most_rate)}
    return App(host, "bandwidth_listener", fields | ({} if allow is None else {"allow": list(allow)}))


def bandwidth_prober(
    host: str,
    to: str,
    method: str = "hybrid",
    *,
    capacity: str | None = None,
    prior: str | None = None,
    prior_std: str | None = None,
    settings: Mapping[str, object] | None = None,
    layer: Literal["wire", "network"] = "wire",
    mtu: int = 1500,
    most_rate: str = "1 Gbit",
    budget: str | None = None,
    duration: str = "10 min",
    record: bool = False,
    port: int = BANDWIDTH_PORT,
    flow: int | None = None,
) -> App:
    """Return a prober that estimates the available bandwidth from `host` to the listener at `to`.

    Parameters
    ----------
    host, to
        Where it runs; the listener's host, its name or address.
    method, capacity, prior, prior_std, settings
        As for :func:`bandwidth_method`.
    layer
        The layer at which rates are told: ``wire`` (an Ethernet line's rate is its capacity) or ``network`` (IP).
    mtu
        The path's MTU in bytes: the longest probe. Probes are never fragmented.
    most_rate
        The highest rate that may be sent.
    budget
        The most data that probes may cost, such as ``"5 MB"``; the estimate then ends with what is known.
    duration
        The most time that it may take.
    record
        Whether the report keeps the stamps of all trains.
    port, flow
        The listener's port; the flow's number in reports, chosen by the lab when nothing is said.
    """
    if layer not in ("wire", "network"):
        raise BadValue(f"the layer is {layer!r}; allowed are 'wire' and 'network'")
    if isinstance(mtu, bool) or not 92 <= mtu <= 65_535:
        raise BadValue(f"the MTU is {mtu!r}; allowed are 92 to 65535 bytes")
    headers = 48 if ":" in to else 28
    fields: dict[str, Any] = {
        "to": to,
        "port": port,
        "flow": flow,
        "method": bandwidth_method(method, capacity=capacity, prior=prior, prior_std=prior_std, settings=settings),
        "layer": layer,
        "most_payload": mtu - headers,
        "most_rate_bps": line_rate_bps(most_rate),
        "duration_ps": run_time_ps(duration),
        "record": bool(record),
    }
    if budget is not None:
        fields["budget_bytes"] = transfer_bytes(budget, least=size_bytes("1 kB", "budget"))
    return App(host, "bandwidth_prober", fields)


def bandwidth(source: str, target: str, method: str = "hybrid", *, port: int = BANDWIDTH_PORT, **settings: Any) -> Flow:
    """Return an estimate of the available bandwidth from host `source` to host `target`; `settings` as for
    :func:`bandwidth_prober`.

    Examples
    --------
    >>> bandwidth("h1", "h2", "pathload").sender.kind
    'bandwidth_prober'
    """
    return Flow(bandwidth_listener(target, port=port), bandwidth_prober(source, target, method, port=port, **settings))
