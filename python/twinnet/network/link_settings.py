"""Settings of one direction of a link: rate, framing, delay, jitter, loss, duplication, corruption, reordering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.ranges import line_rate_bps, way_ps
from twinnet.units import format_duration, probability

__all__ = [
    "DEFAULT_DIRECTION",
    "FRAMINGS",
    "GilbertElliott",
    "Jitter",
    "JitterTable",
    "coalescing_spec",
    "direction_spec",
    "processing_spec",
]

FRAMINGS = ("ethernet", "hdlc", "none")
"""Framings, which set the overhead of a frame on the wire beyond its own bytes: see docs/reference/lab-protocol.md."""
DISTRIBUTIONS = ("uniform", "normal", "pareto", "pareto_normal")
"""The distributions of jitter."""

DEFAULT_DIRECTION: dict[str, Any] = {
    "rate_bps": None,
    "framing": "ethernet",
    "delay_ps": 0,
    "jitter": None,
    "reorder": False,
    "loss": None,
    "duplicate": 0.0,
    "corrupt": 0.0,
}
"""A direction without settings: no rate limit, no delay, no impairment."""


@dataclass(frozen=True)
class Jitter:
    """Random delay added to the link's delay.

    Parameters
    ----------
    scale
        Its size with unit: half the width (uniform), the standard deviation (normal), netem's jitter (pareto,
        pareto_normal).
    distribution
        ``uniform``, ``normal``, ``pareto`` or ``pareto_normal``.
    """

    scale: str
    distribution: str = "uniform"

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        if self.distribution not in DISTRIBUTIONS:
            raise BadValue(
                f"the jitter distribution {self.distribution!r} is not known",
                did_you_mean(str(self.distribution), DISTRIBUTIONS),
            )
        return {"distribution": self.distribution, "scale_ps": way_ps(self.scale, "jitter")}


@dataclass(frozen=True)
class JitterTable:
    """Random delay drawn evenly from measured values.

    Parameters
    ----------
    values
        Durations with unit, at least one, at most 65536.
    """

    values: Sequence[str]

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        if isinstance(self.values, str) or not 1 <= len(self.values) <= 65536:
            raise BadValue("a jitter table has 1 to 65536 durations", 'write for example values=["0 s", "1 ms"]')
        return {"distribution": "table", "values_ps": [way_ps(value, "jitter value") for value in self.values]}


@dataclass(frozen=True)
class GilbertElliott:
    """Loss in bursts: a two-state Markov chain (Gilbert 1960, Elliott 1963) that takes a step for each frame.

    Parameters
    ----------
    to_bad, to_good
        Probability of leaving the good state and of leaving the bad one.
    loss_good, loss_bad
        Probability of losing a frame in each.
    """

    to_bad: float | str
    to_good: float | str
    loss_good: float | str = 0.0
    loss_bad: float | str = 1.0

    def __post_init__(self) -> None:
        self.to_spec()

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        names = ("to_bad", "to_good", "loss_good", "loss_bad")
        return {"model": "gilbert_elliott"} | {name: probability(getattr(self, name), name) for name in names}


def jitter_spec(value: object) -> dict[str, Any] | None:
    """Return jitter in the form of the lab protocol: from ``"1 ms"``, ``"1 ms normal"``, `Jitter`, `JitterTable` or
    a mapping."""
    if value is None:
        return None
    if isinstance(value, (Jitter, JitterTable)):
        return value.to_spec()
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        if "values" in given:
            return JitterTable(**_known(given, ("values",), "jitter")).to_spec()
        return Jitter(**_known(given, ("scale", "distribution"), "jitter", required=("scale",))).to_spec()
    if isinstance(value, str):
        scale, _, distribution = value.strip().rpartition(" ")
        if distribution.replace("-", "_") in DISTRIBUTIONS and scale:
            return Jitter(scale, distribution.replace("-", "_")).to_spec()
    return {"distribution": "uniform", "scale_ps": way_ps(value, "jitter")}


def processing_spec(time: object, jitter: object) -> dict[str, Any] | None:
    """Return how long a model host takes for a frame, in the form of the lab protocol; ``None`` when it is no time."""
    spec = {"delay_ps": way_ps(time, "processing"), "jitter": jitter_spec(jitter)}
    return spec if any(spec.values()) else None


def coalescing_spec(delay: object, frames: object) -> dict[str, Any] | None:
    """Return how the network cards of a host coalesce interrupts, in the form of the lab protocol; ``None`` when they
    do not. Both values may be anything, because network files and callers give them unchecked."""
    delay_ps = way_ps(delay, "interrupt delay")
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or frames < 1):
        raise BadValue(f"the number of frames of an interrupt is {frames!r}", "give a whole number from 1")
    if delay_ps == 0:
        if frames not in (None, 1):
            raise BadValue(
                f"an interrupt cannot wait for {frames} frames without a delay",
                'give interrupt_delay, such as "50 us": the longest that a frame waits for others',
            )
        return None
    return {"delay_ps": delay_ps, "frames": frames}


def loss_spec(value: object) -> dict[str, Any] | None:
    """Return loss in the form of the lab protocol: from 0.01, ``"1 %"``, `GilbertElliott` or a mapping of its
    parameters."""
    if value is None:
        return None
    if isinstance(value, GilbertElliott):
        return value.to_spec()
    if isinstance(value, Mapping):
        names = ("to_bad", "to_good", "loss_good", "loss_bad")
        given = cast("Mapping[Any, Any]", value)
        return GilbertElliott(**_known(given, names, "loss", required=names[:2])).to_spec()
    number = probability(value, "loss")
    return {"model": "bernoulli", "probability": number} if number else None


def _known(value: Mapping[Any, Any], names: Sequence[str], what: str, required: Sequence[str] = ()) -> dict[str, Any]:
    for key in value:
        if key not in names:
            raise BadValue(f"{what} has no setting {key!r}", did_you_mean(str(key), names))
    for name in required:
        if name not in value:
            raise BadValue(f"{what} lacks {name!r}", f"give {', '.join(required)}")
    return dict(value)


def _framing(value: object) -> str:
    if value not in FRAMINGS:
        raise BadValue(f"the framing {value!r} is not known", did_you_mean(str(value), FRAMINGS))
    return str(value)


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{what} is {value!r}; allowed are true and false")
    return value


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rate": ("rate_bps", lambda value: None if value is None else line_rate_bps(value)),
    "framing": ("framing", _framing),
    "delay": ("delay_ps", lambda value: way_ps(value, "delay")),
    "jitter": ("jitter", jitter_spec),
    "reorder": ("reorder", lambda value: _flag(value, "reorder")),
    "loss": ("loss", loss_spec),
    "duplicate": ("duplicate", lambda value: 0.0 if value is None else probability(value, "duplicate")),
    "corrupt": ("corrupt", lambda value: 0.0 if value is None else probability(value, "corrupt")),
    "up": ("up", lambda value: _flag(value, "up")),
}

SETTINGS = tuple(_READERS)
"""The names of all settings of a direction, and ``up``."""


def direction_spec(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given `settings` of a direction in the form of the lab protocol, and nothing that was not given.

    Parameters
    ----------
    settings
        Any of ``rate``, ``framing``, ``delay``, ``jitter``, ``reorder``, ``loss``, ``duplicate``, ``corrupt``, ``up``.

    Raises
    ------
    BadValue
        For an unknown setting or a value that is not allowed.

    Examples
    --------
    >>> direction_spec({"rate": "10 Mbit", "loss": "1 %"})
    {'rate_bps': 10000000, 'loss': {'model': 'bernoulli', 'probability': 0.01}}
    """
    spec: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in _READERS:
            raise BadValue(f"a link has no setting {key!r}", did_you_mean(str(key), SETTINGS))
        name, read = _READERS[key]
        spec[name] = read(value)
    return spec


def describe_direction(spec: Mapping[str, Any]) -> str:
    """Return a direction as one line for people, such as ``10 Mbit/s delay 5 ms loss 1 %``."""
    from twinnet.units import format_rate

    words = [format_rate(spec["rate_bps"]) if spec.get("rate_bps") else "unlimited"]
    if spec.get("delay_ps"):
        words.append(f"delay {format_duration(spec['delay_ps'])}")
    if jitter := spec.get("jitter"):
        scale = jitter.get("scale_ps")
        words.append(f"jitter {format_duration(scale) if scale is not None else 'table'} {jitter['distribution']}")
    if loss := spec.get("loss"):
        words.append("loss in bursts" if "to_bad" in loss else f"loss {loss['probability'] * 100:g} %")
    words += [f"{name} {spec[name] * 100:g} %" for name in ("duplicate", "corrupt") if spec.get(name)]
    if spec.get("reorder"):
        words.append("reorder")
    if spec.get("framing", "ethernet") != "ethernet":
        words.append(f"framing {spec['framing']}")
    return " ".join(words)
