"""Settings of a table of published figures that a study compares its results with."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from twinnet.study.field_types import STRICT, ParameterName

__all__ = ["STATISTICS", "UNITS", "Reference", "ReferenceMetric"]

STATISTICS = ("mean", "min", "max", "variance", "std")
"""Columns of a table of figures that are figures; all but `metric` and `network` name the case."""

UNITS = {
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "1": 1.0,
    "%": 0.01,
}
"""Units of published figures, in those of measurements."""


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class ReferenceMetric(_Strict):
    """A metric of the table.

    Attributes
    ----------
    measurement
        The measurement of the study that it is compared with.
    unit
        The unit of the published figures.
    physics
        By the statistic, the physics behind its figures.
    """

    measurement: ParameterName
    unit: Literal["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "s", "ms", "us", "1", "%"]
    physics: dict[Literal["mean", "min", "max", "variance", "std"], str] = {}


class Reference(_Strict):
    """A table of published figures, a CSV file beside the study's.

    Attributes
    ----------
    file
        Its name. Lines that begin with `#` tell its source; then a head with `metric`, `network`, at least one of
        `mean`, `min`, `max`, `variance`, `std`, and columns that name the case.
    text
        What the table is, in words.
    source
        Where it was published.
    truth, rival
        Values of `network`: what the study is to come close to, and what it is to be closer than.
    select
        The level of each factor that a row is about, put together from its columns: `"{topology}-{link_mbit}"`.
    baseline
        Levels under which the network changes nothing: what differs from them is what the network did, whatever was
        sent. Changes are compared as figures are.
    metrics
        By the value of `metric`.
    """

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.csv$")]
    text: str = ""
    source: str
    truth: str
    rival: str
    select: dict[ParameterName, str]
    baseline: dict[ParameterName, str] = {}
    metrics: Annotated[dict[str, ReferenceMetric], Field(min_length=1)]
