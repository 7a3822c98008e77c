"""Random processes of traffic: how long until the next datagram, and how large it is.

A `Distribution` serves for both; its parameters are durations or sizes with a unit, as the place it is given to
demands. Every process draws from its own seeded stream: a change of sizes leaves the gaps as they were.
"""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from twinnet.errors import BadValue
from twinnet.units import Duration, Size, duration_ps

__all__ = [
    "Distribution",
    "OnOff",
    "cauchy",
    "constant",
    "exponential",
    "gamma",
    "lognormal",
    "normal",
    "on_off",
    "pareto",
    "uniform",
    "weibull",
]

_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "constant": ("value",),
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "normal": ("mean", "std"),
    "lognormal": ("mean", "std"),
    "pareto": ("shape", "scale"),
    "cauchy": ("location", "scale"),
    "gamma": ("shape", "scale"),
    "weibull": ("shape", "scale"),
}


@dataclass(frozen=True)
class Distribution:
    """A distribution of gaps or of sizes.

    Parameters
    ----------
    name
        ``constant``, ``uniform``, ``exponential``, ``normal``, ``lognormal``, ``pareto``, ``cauchy``, ``gamma`` or
        ``weibull``.
    parameters
        By name: text with a unit; a ``shape`` is a number.
    least, most
        What is outside is drawn again, so that the rest keeps its shape. Without them gaps are 0 s to 1 h, sizes 16 B
        to 65507 B.
    """

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    least: str | None = None
    most: str | None = None

    @classmethod
    def of(cls, given: Distribution | Mapping[str, object], what: str) -> Distribution:
        """Return `given`, also when it is a mapping: ``{"distribution": "exponential", "mean": "10 ms"}``."""
        if isinstance(given, Distribution):
            return given
        if not isinstance(given, Mapping):
            raise BadValue(
                f"the {what} {given!r} is no distribution",
                'give for example tn.processes.exponential("10 ms")',
            )
        rest = {str(key): value for key, value in given.items()}
        name, least, most = rest.pop("distribution", None), rest.pop("least", None), rest.pop("most", None)
        return cls(str(name), rest, cast("str | None", least), cast("str | None", most))

    def __str__(self) -> str:
        """The distribution as people read it: ``exponential(mean 10 ms)``."""
        bounds = {"least": self.least, "most": self.most}
        settings = {**self.parameters, **{name: one for name, one in bounds.items() if one is not None}}
        return f"{self.name}({', '.join(f'{name} {value}' for name, value in settings.items())})"

    @classmethod
    def parse(cls, text: str, what: str) -> Distribution:
        """Return the distribution that `text` names, such as ``exponential(10 ms)`` or
        ``normal(500 B, 100 B, most=1200 B)``.

        Raises
        ------
        BadValue
            It is not in this form, or not known.
        """
        name, opened, rest = text.strip().partition("(")
        name = name.strip()
        if not opened or not rest.endswith(")"):
            raise BadValue(
                f"the {what} {text!r} is no distribution", "write for example exponential(10 ms) or normal(500 B, 80 B)"
            )
        if name not in _PARAMETERS:
            raise BadValue(f"the distribution {name!r} is not known; allowed are {', '.join(_PARAMETERS)}")
        wanted = _PARAMETERS[name]
        given = [part.strip() for part in rest[:-1].split(",")] if rest[:-1].strip() else []
        bounds: dict[str, str] = {}
        parameters: dict[str, object] = {}
        for part in given:
            key, equals, value = part.partition("=")
            if not equals:
                key, value = (wanted[len(parameters)] if len(parameters) < len(wanted) else "one more"), part
            key, value = key.strip(), value.strip()
            if key in ("least", "most"):
                bounds[key] = value
            else:
                parameters[key] = _number(value) if key == "shape" else value
        if set(parameters) != set(wanted):
            raise BadValue(
                f"the {what} {text!r} has {', '.join(parameters) or 'nothing'}; {name} takes {' and '.join(wanted)}",
                "least=... and most=... may follow",
            )
        return cls(name, parameters, bounds.get("least"), bounds.get("most"))

    def to_spec(self, what: str, quantity: Callable[[object, str], int]) -> dict[str, Any]:
        """Return the distribution in the form of the lab protocol.

        Raises
        ------
        BadValue
            It is not known, a parameter is missing or unknown, or a shape is no number above zero.
        BadQuantity
            A parameter has no unit or another one.
        """
        if self.name not in _PARAMETERS:
            raise BadValue(f"the distribution {self.name!r} is not known; allowed are {', '.join(_PARAMETERS)}")
        wanted = _PARAMETERS[self.name]
        if set(self.parameters) != set(wanted):
            given = ", ".join(self.parameters) or "nothing"
            raise BadValue(f"the {what} is {self.name} with {given}; it takes {' and '.join(wanted)}")
        spec: dict[str, Any] = {"distribution": self.name}
        for name in wanted:
            value = self.parameters[name]
            spec[name] = _shape(value, what) if name == "shape" else float(quantity(value, f"{what}'s {name}"))
        for name, bound in (("least", self.least), ("most", self.most)):
            if bound is not None:
                spec[name] = float(quantity(bound, f"{what}'s {name} value"))
        return spec


@dataclass(frozen=True)
class OnOff:
    """Periods of talk and of silence.

    Parameters
    ----------
    on, off
        How long each lasts; a period of talk at least 1 us.
    """

    on: Distribution
    off: Distribution

    @classmethod
    def of(cls, given: OnOff | Mapping[str, Any]) -> OnOff:
        """Return `given`, also when it is a mapping of ``on`` and ``off``."""
        if isinstance(given, OnOff):
            return given
        if not isinstance(given, Mapping) or set(given) != {"on", "off"}:
            raise BadValue(f"the periods {given!r} are not known; give 'on' and 'off', a distribution each")
        return cls(Distribution.of(given["on"], "on"), Distribution.of(given["off"], "off"))

    def to_spec(self) -> dict[str, Any]:
        """Return the periods in the form of the lab protocol."""
        return {"on_ps": self.on.to_spec("on", duration_ps), "off_ps": self.off.to_spec("off", duration_ps)}


def constant(value: Duration | Size) -> Distribution:
    """Return one value: ``constant("20 ms")``."""
    return Distribution("constant", {"value": value})


def uniform(low: str, high: str) -> Distribution:
    """Return values evenly between two."""
    return Distribution("uniform", {"low": low, "high": high})


def exponential(mean: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the exponential distribution; as gaps it makes a Poisson process."""
    return Distribution("exponential", {"mean": mean}, least, most)


def normal(mean: str, std: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the normal distribution, cut at zero (gaps) or 16 B (sizes) by default."""
    return Distribution("normal", {"mean": mean, "std": std}, least, most)


def lognormal(mean: str, std: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the lognormal distribution, by the mean and standard deviation of its values."""
    return Distribution("lognormal", {"mean": mean, "std": std}, least, most)


def pareto(shape: float, scale: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the Pareto distribution: never below `scale`; with a `shape` of 1 or less it has no mean before it is
    cut."""
    return Distribution("pareto", {"shape": shape, "scale": scale}, least, most)


def cauchy(location: str, scale: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the Cauchy distribution around its median `location`; `scale` is half the distance of its quartiles."""
    return Distribution("cauchy", {"location": location, "scale": scale}, least, most)


def gamma(shape: float, scale: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the gamma distribution, of mean `shape` times `scale`."""
    return Distribution("gamma", {"shape": shape, "scale": scale}, least, most)


def weibull(shape: float, scale: str, *, least: str | None = None, most: str | None = None) -> Distribution:
    """Return the Weibull distribution."""
    return Distribution("weibull", {"shape": shape, "scale": scale}, least, most)


def on_off(on: Distribution, off: Distribution) -> OnOff:
    """Return periods of talk and silence, such as ``on_off(exponential("1 s"), exponential("2 s"))``."""
    return OnOff(on, off)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _shape(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.05 <= value <= 1000:
        raise BadValue(f"the {what}'s shape is {value!r}; allowed are numbers from 0.05 to 1000")
    return float(value) if math.isfinite(value) else 0.0
