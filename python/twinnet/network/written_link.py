"""The settings of a link as people write them, from the form of the lab protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.network.link_settings import LineChange
from twinnet.settings import settings_of
from twinnet.units import format_duration, format_rate, probability

__all__ = ["written_jitter", "written_settings"]


def written_settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return `spec`, fields of a direction of a link in the form of the lab protocol, as calls and files take them.

    Examples
    --------
    >>> written_settings({"rate_bps": 10**7, "loss": {"model": "bernoulli", "probability": 0.01}})
    {'rate': '10 Mbit/s', 'loss': '1 %'}
    """
    names = {setting.key(name): name for name, setting in settings_of(LineChange).items()}
    return {names[key]: _written(names[key], value) for key, value in spec.items() if key in names}


def written_jitter(spec: Mapping[str, Any] | None) -> str | dict[str, Any] | None:
    """Return jitter in the form of the lab protocol as text, or as a mapping where it is a table."""
    if spec is None:
        return None
    if spec["distribution"] == "table":
        return {"values": [format_duration(value) for value in spec["values_ps"]]}
    shape = "" if spec["distribution"] == "uniform" else f" {spec['distribution']}"
    return format_duration(spec["scale_ps"]) + shape


def _written(name: str, value: Any) -> Any:
    if name == "delay":
        return format_duration(value) if value else "0 s"
    if name in ("duplicate", "corrupt"):
        return _share(value) if value else 0
    if value is None:
        return None
    if name == "rate":
        return format_rate(value)
    if name == "jitter":
        return written_jitter(value)
    if name == "loss":
        if value["model"] == "bernoulli":
            return _share(value["probability"])
        return {key: one for key, one in value.items() if key != "model"}
    return value


def _share(number: float) -> str:
    short = f"{number * 100:.12g} %"
    return short if probability(short) == number else f"{number * 100!r} %"
