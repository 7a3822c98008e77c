"""Types of fields of a study file: a quantity is a text with a unit there, an integer in the smallest unit here."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from twinnet.study.quantity import (
    parse_duration_ps,
    parse_interval_ps,
    parse_moment_ps,
    parse_rate_bps,
    parse_run_time_ps,
    parse_size_bytes,
    parse_transfer_bytes,
)
from twinnet.yaml_source import NAME_PATTERN, PARAMETER_PATTERN

__all__ = [
    "NAME_PATTERN",
    "STRICT",
    "Count",
    "DurationPs",
    "IntervalPs",
    "MomentPs",
    "Name",
    "ParameterName",
    "Port",
    "RateBps",
    "RunTimePs",
    "Scalar",
    "SizeBytes",
    "TransferBytes",
]


def _text_schema(example: str) -> dict[str, Any]:
    return {"type": "string", "description": f"a quantity with its unit, such as '{example}', or '${{parameter}}'"}


DurationPs = Annotated[int, BeforeValidator(parse_duration_ps), WithJsonSchema(_text_schema("5 ms"))]
MomentPs = Annotated[int, BeforeValidator(parse_moment_ps), WithJsonSchema(_text_schema("500 ms"))]
RunTimePs = Annotated[int, BeforeValidator(parse_run_time_ps), WithJsonSchema(_text_schema("10 s"))]
IntervalPs = Annotated[int, BeforeValidator(parse_interval_ps), WithJsonSchema(_text_schema("1 s"))]
TransferBytes = Annotated[int, BeforeValidator(parse_transfer_bytes), WithJsonSchema(_text_schema("400 MB"))]
RateBps = Annotated[int, BeforeValidator(parse_rate_bps), WithJsonSchema(_text_schema("10 Mbit"))]
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), WithJsonSchema(_text_schema("1500 B"))]
Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]
Scalar = str | int | float
STRICT = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
"""Models refuse unknown keys and are never changed."""
