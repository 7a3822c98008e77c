"""Types of fields of a study file: a quantity is a text with a unit there, an integer in the smallest unit here."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from twinnet.ranges import counting_interval_ps, line_rate_bps
from twinnet.study.quantity import parse_moment_ps, reader
from twinnet.units import duration_ps, size_bytes
from twinnet.yaml_source import NAME_PATTERN, PARAMETER_PATTERN

__all__ = [
    "STRICT",
    "Count",
    "DurationPs",
    "IntervalPs",
    "MomentPs",
    "Name",
    "ParameterName",
    "RateBps",
    "Scalar",
    "SizeBytes",
]


def _text(example: str) -> WithJsonSchema:
    description = f"a quantity with its unit, such as '{example}', or '${{parameter}}'"
    return WithJsonSchema({"type": "string", "description": description})


DurationPs = Annotated[int, BeforeValidator(reader(duration_ps, "duration")), _text("5 ms")]
MomentPs = Annotated[int, BeforeValidator(parse_moment_ps), _text("500 ms")]
IntervalPs = Annotated[int, BeforeValidator(reader(counting_interval_ps, "interval")), _text("1 s")]
RateBps = Annotated[int, BeforeValidator(reader(line_rate_bps, "rate")), _text("10 Mbit")]
SizeBytes = Annotated[int, BeforeValidator(reader(size_bytes, "size")), _text("1500 B")]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]
Scalar = str | int | float
STRICT = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
"""Models refuse unknown keys and are never changed."""
