"""Impairments of a link: jitter and loss, as objects, as text, and as settings that a file or a call may give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.ranges import way_ps
from twinnet.schema_texts import docstring_texts
from twinnet.settings import SHARE_SCHEMA, Setting, ShareSetting
from twinnet.units import probability, share_of_frames

__all__ = [
    "DISTRIBUTIONS",
    "FrameShare",
    "GilbertElliott",
    "Jitter",
    "JitterTable",
    "JitterValue",
    "LossValue",
    "jitter_spec",
    "loss_spec",
]

DISTRIBUTIONS = ("uniform", "normal", "pareto", "pareto_normal")
"""The distributions of jitter."""
_CHAIN = ("to_bad", "to_good", "loss_good", "loss_bad")


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
        return {"model": "gilbert_elliott"} | {name: probability(getattr(self, name), name) for name in _CHAIN}


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


def loss_spec(value: object) -> dict[str, Any] | None:
    """Return loss in the form of the lab protocol: from ``"1 %"``, `GilbertElliott` or a mapping of its
    parameters."""
    if value is None:
        return None
    if isinstance(value, GilbertElliott):
        return value.to_spec()
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        return GilbertElliott(**_known(given, _CHAIN, "loss", required=_CHAIN[:2])).to_spec()
    number = share_of_frames(value, "loss")
    return {"model": "bernoulli", "probability": number} if number else None


def _known(value: Mapping[Any, Any], names: Sequence[str], what: str, required: Sequence[str] = ()) -> dict[str, Any]:
    for key in value:
        if key not in names:
            raise BadValue(f"{what} has no setting {key!r}", did_you_mean(str(key), names))
    for name in required:
        if name not in value:
            raise BadValue(f"{what} lacks {name!r}", f"give {', '.join(required)}")
    return dict(value)


@dataclass(frozen=True)
class JitterSetting(Setting):
    """Random delay: text, a scale with its distribution, or a list of values."""

    def read(self, value: object, what: str) -> dict[str, Any] | None:
        """Return the form of the lab protocol."""
        return jitter_spec(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: text, or the fields of `Jitter` or of `JitterTable`."""
        of_jitter, of_table = docstring_texts(Jitter), docstring_texts(JitterTable)
        scale = {
            "scale": {"type": "string", "description": of_jitter["scale"]},
            "distribution": {"enum": list(DISTRIBUTIONS), "description": of_jitter["distribution"]},
        }
        items = {"type": "string"}
        values = {"values": {"type": "array", "items": items, "minItems": 1, "description": of_table["values"]}}
        return {
            "anyOf": [
                {"type": "string", "examples": ["1 ms", "1 ms normal"]},
                {"type": "object", "properties": scale, "required": ["scale"], "additionalProperties": False},
                {"type": "object", "properties": values, "required": ["values"], "additionalProperties": False},
            ]
        }


@dataclass(frozen=True)
class LossSetting(Setting):
    """A share of lost frames, or a model of bursts."""

    def read(self, value: object, what: str) -> dict[str, Any] | None:
        """Return the form of the lab protocol."""
        return loss_spec(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a share, or the fields of `GilbertElliott`."""
        chain: dict[str, Any] = {
            "type": "object",
            "properties": {name: {"description": docstring_texts(GilbertElliott)[name]} for name in _CHAIN},
            "required": list(_CHAIN[:2]),
            "additionalProperties": False,
        }
        return {"anyOf": [*SHARE_SCHEMA["anyOf"], chain]}


FrameShare = Annotated[str | Literal[0], ShareSetting()]
"""Text such as ``1 %``, or 0."""
JitterValue = Annotated[str | Jitter | JitterTable | Mapping[str, str | Sequence[str]], JitterSetting()]
"""``"1 ms"``, ``"1 ms normal"``, or a class."""
LossValue = Annotated[str | Literal[0] | GilbertElliott | Mapping[str, float | str], LossSetting()]
"""A share of frames such as ``1 %``, or a model of bursts."""
