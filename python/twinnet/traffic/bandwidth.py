"""Probes for available bandwidth: constructors for the prober and the listener.

The methods and their settings are described in ``docs/reference/available-bandwidth.md``; the settings are those of
the Rust side, which checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, cast

from twinnet import _core
from twinnet.errors import BadValue, did_you_mean
from twinnet.ranges import line_rate_bps, run_time_ps
from twinnet.settings import OneOf, Setting, Whole, duration, rate, size
from twinnet.traffic.app import App
from twinnet.traffic.estimator import Estimator
from twinnet.traffic.own_code import OWN_PATTERN, brought, name_of_class
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import FlowNumber, Port, Switch, TrafficSettings
from twinnet.units import Duration, Rate, Size

__all__ = [
    "BANDWIDTH_PORT",
    "METHODS",
    "PRESETS",
    "Bandwidth",
    "BandwidthListener",
    "BandwidthProber",
    "Probes",
    "bandwidth",
    "bandwidth_listener",
    "bandwidth_method",
    "bandwidth_prober",
]

METHODS = ("pathload", "yaz", "pathchirp", "assolo", "stab", "spruce", "igi", "ptr", "kalman", "hybrid", "slotted")
"""The names of all methods."""
PRESETS = ("ours", "published")
"""The names of what may stand in the place of a method's defaults."""
BANDWIDTH_PORT = 5010
"""The default port of the listener."""
_NEED_CAPACITY = ("spruce", "hybrid")
_PRIOR = ("prior", "prior_std", "prior_window")


def bandwidth_method(
    method: str | type[Estimator],
    *,
    capacity: Rate | None = None,
    prior: Rate | None = None,
    prior_std: Rate | None = None,
    prior_window: Duration | None = None,
    preset: str = "ours",
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a method in the form of the lab protocol.

    Parameters
    ----------
    method
        One of :data:`METHODS`, or a class derived from :class:`Estimator`.
    capacity
        Capacity of the tight link, with unit: ``spruce`` needs it, ``hybrid`` can use it.
    prior, prior_std
        The estimate by port counters and its standard deviation, with units: ``hybrid`` can use them.
    prior_window
        The polling period that the standard deviation is between, with unit. Averages over a shorter time vary by more.
    preset
        ``ours``: the settings that twinnet found best; ``published``: those of the method's paper and tool, which
        ``hybrid`` and ``slotted`` do not have.
    settings
        Settings of the method by their names, in base units (bit/s, nanoseconds, bytes), over those of the preset; of a
        class what it takes.
    """
    method = MethodName(BadValue).read(method, "method")
    own = brought(method)
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
    if prior_window is not None:
        if method != "hybrid":
            raise BadValue(f"{method} does not use a prior", "leave prior_window out")
        found["prior_window_ns"] = run_time_ps(prior_window, "prior_window") / 1000
    for name, value, of, wanted in (
        ("prior_std", prior_std, "prior", prior),
        ("prior_window", prior_window, "prior_std", prior_std),
    ):
        if value is not None and wanted is None:
            raise BadValue(f"{name} tells of {of}, which is not given", f"give {of} too, or leave {name} out")
    if own is not None:
        if preset != "ours":
            raise BadValue(f"{own.name} is your own: it has no preset", "leave the preset out")
        given = json.dumps(dict(settings or {}), sort_keys=True)
        return {"name": "own", "code": method, "called": own.name, "settings": given}
    return _preset(method, preset) | found | dict(settings or {})


@dataclass(frozen=True)
class MethodName(Setting):
    """One of the methods, or an estimator of one's own by the name that it is known by."""

    def read(self, value: object, what: str) -> str:
        """Return the name; a class is made known for it."""
        if isinstance(value, type) and issubclass(value, Estimator):
            return name_of_class(value)
        given = value if isinstance(value, str) else ""
        if given in METHODS or brought(given) is not None:
            return given
        remedy = did_you_mean(given, METHODS, "in studies write module:Class, in Python give a class from tn.Estimator")
        raise self.error(f"the {what} {value!r} is not known", remedy)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: the methods, or the name of a class."""
        return {"anyOf": [{"enum": list(METHODS)}, {"type": "string", "pattern": OWN_PATTERN}]}


def _preset(method: str, name: str) -> dict[str, Any]:
    """The settings of a preset that differ from the defaults, or may."""
    if name not in PRESETS:
        raise BadValue(f"there is no preset {name!r}", did_you_mean(name, PRESETS))
    if name == "ours":
        return {}
    published = _core.published_bandwidth_method(method)
    if published is None:
        raise BadValue(f"{method} is twinnet's own: it was not published", "leave the preset out")
    return json.loads(published)


ProbeRate = Annotated[Rate, rate(10_000, 10**12)]
"""The highest rate to send at."""
LineRate = Annotated[Rate, rate(1, 10**13)]
"""A rate of a line."""


Budget = Annotated[Size, size(1000, 1 << 50)]
"""The most data for probes."""
ProbeTime = Annotated[Duration, duration(10**9, 86_400 * 10**12)]
"""The most time that an estimate may take: a day."""


@dataclass(frozen=True)
class MethodSettings(Setting):
    """Settings of a method by their names, in base units; the core checks them, or the class that is one's own."""

    def read(self, value: object, what: str) -> dict[str, object]:
        """Return the settings."""
        if not isinstance(value, Mapping):
            raise self.error(f"{what} is {value!r}; allowed is a mapping of names to numbers")
        return {str(name): one for name, one in cast("Mapping[object, object]", value).items()}

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: numbers, flags and texts by name."""
        return {"type": "object", "additionalProperties": {"type": ["number", "boolean", "string"]}}


@dataclass(frozen=True)
class BandwidthListener(AppSettings):
    """A listener in `host` that reports to probers when their probes arrived.

    It sends no more bytes to an address than it received from it, and lets probers send at `most_rate` at most. With
    `allow`, it answers only those addresses.
    """

    app_kind: ClassVar[str] = "bandwidth_listener"

    port: Port = field(default=BANDWIDTH_PORT, kw_only=True)
    most_rate: ProbeRate = field(default="10 Gbit", kw_only=True)
    allow: Sequence[str] | None = field(default=None, kw_only=True)

    def app_fields(self) -> dict[str, Any]:
        """Return the fields in the lab protocol."""
        return super().app_fields() | ({} if self.allow is None else {"allow": list(self.allow)})


@dataclass(frozen=True, kw_only=True)
class Probes(TrafficSettings):
    """An estimate of the available bandwidth of a path.

    Parameters
    ----------
    capacity, prior, prior_std, prior_window, preset, settings
        As for :func:`bandwidth_method`.
    layer
        The layer of the rates: ``wire`` (an Ethernet line's rate is its capacity) or ``network`` (IP).
    mtu
        The path's MTU in bytes: the longest probe. Probes are never fragmented.
    most_rate
        The highest rate to send at.
    budget
        The most data for probes, such as ``"5 MB"``; the estimate then ends with its current result.
    duration
        The most time for the estimate.
    record
        Whether the report keeps the time stamps of all trains.
    port
        The listener's port.
    flow
        The flow's number in reports; default: chosen by the lab.
    """

    capacity: LineRate | None = None
    prior: LineRate | None = None
    prior_std: LineRate | None = None
    prior_window: ProbeTime | None = None
    preset: Annotated[str, OneOf(BadValue, PRESETS)] = "ours"
    settings: Annotated[Mapping[str, object], MethodSettings()] | None = None
    layer: Annotated[str, OneOf(BadValue, ("wire", "network"))] = "wire"
    mtu: Annotated[int, Whole(BadValue, 92, 65_535)] = 1500
    most_rate: ProbeRate = "1 Gbit"
    budget: Budget | None = None
    duration: ProbeTime = "10 min"
    record: Switch = False
    port: Port = BANDWIDTH_PORT
    flow: FlowNumber | None = None

    in_words: ClassVar[str] = "probes for available bandwidth"
    protocol: ClassVar[str] = "bandwidth"
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "layer", "mtu", "record"})
    needed_in_studies: ClassVar[tuple[str, ...]] = ("method",)
    counted_by: ClassVar[str | None] = None

    @classmethod
    def in_study(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """A study may compare methods: the capacity and the prior are for those that use one."""
        method = settings.get("method")
        if method == "spruce" and settings.get("capacity") is None:
            raise BadValue("spruce needs 'capacity', that of the tight link")
        unused = {"spruce": _PRIOR, "hybrid": ()}.get(str(method), ("capacity", *_PRIOR))
        return {key: one for key, one in settings.items() if key not in unused}

    def prober_fields(self, to: str, method: str | type[Estimator]) -> dict[str, Any]:
        """Return the fields of a ``bandwidth_prober`` to `to`."""
        found = self.given(Probes)
        for name in ("capacity_bps", "prior_bps", "prior_std_bps", "prior_window_ps", "preset", "settings", "mtu"):
            found.pop(name, None)
        chosen = bandwidth_method(
            method,
            capacity=self.capacity,
            prior=self.prior,
            prior_std=self.prior_std,
            prior_window=self.prior_window,
            preset=self.preset,
            settings=self.settings,
        )
        longest = self.mtu - (48 if ":" in to else 28)
        return {"to": to, "flow": None, "method": chosen, "most_payload": longest} | found


Method = Annotated[str | type[Estimator], MethodName(BadValue)]
"""A method by its name, or a class of one's own."""


@dataclass(frozen=True)
class BandwidthProber(Probes, SourceSettings):
    """A prober that estimates the available bandwidth from `host` to the listener at the host or address `to`; the
    settings are those of `Probes`."""

    app_kind: ClassVar[str] = "bandwidth_prober"

    method: Method = "hybrid"

    def app_fields(self) -> dict[str, Any]:
        """Return the fields in the lab protocol."""
        return self.prober_fields(self.to, self.method)


@dataclass(frozen=True)
class Bandwidth(Probes, FlowSettings):
    """An estimate of the available bandwidth from host `source` to host `target`; the settings are those of `Probes`.

    Parameters
    ----------
    method
        The estimator: one of :data:`METHODS`, or a class derived from `tn.Estimator`; in studies also `module:Class`.

    Examples
    --------
    >>> Bandwidth("h1", "h2", "pathload").sender.kind
    'bandwidth_prober'
    """

    source: str
    target: str
    method: Method = "hybrid"

    def made_receiver(self) -> App:
        """Return the listener."""
        return BandwidthListener(self.target, port=self.port)

    def made_sender(self) -> App:
        """Return the prober."""
        return App(self.source, BandwidthProber.app_kind, self.prober_fields(self.target, self.method))


bandwidth = Bandwidth
bandwidth_listener = BandwidthListener
bandwidth_prober = BandwidthProber
