"""The measurements that a study makes in every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from twinnet.errors import did_you_mean
from twinnet.study.field_types import STRICT, IntervalPs
from twinnet.study.measured_quantity import MeasuredQuantity, own_quantity
from twinnet.study.own_metric import OWN_NAME
from twinnet.study.quantities import QUANTITIES
from twinnet.study.value_functions import MEAN, NORMALITY, ValueFunction, parse_function
from twinnet.study.window import Window, parse_window

__all__ = ["Measurement", "unknown_selection"]


_MEANINGS = " ".join(f"`{name}`: {one.meaning}" for name, one in QUANTITIES.items())


_OF_PORTS = (
    *(name for name, one in QUANTITIES.items() if one.table == "port_samples"),
    "available_bandwidth_error",
    "available_bandwidth_covered",
)
"""What ports count, alone or beside an estimate."""


class _KnownName:
    """The name of a quantity, or of an own metric as `module:name`, in files and in their JSON schema."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        known = core_schema.literal_schema(list(QUANTITIES))
        own = core_schema.str_schema(pattern=f"^{OWN_NAME.pattern}$")
        choices: dict[str, CoreSchema] = {"known": known, "own": own}

        def which(given: object) -> str:
            return "own" if isinstance(given, str) and ":" in given else "known"

        return core_schema.tagged_union_schema(choices, which)


def unknown_selection(measurement: str, given: str, traffic: Iterable[str]) -> str:
    """Return what is wrong with `given`, by which `measurement` selects traffic that the study does not have."""
    return f"the measurement {measurement} names the traffic {given!r}; {did_you_mean(given, traffic)}"


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class Measurement(_Strict):
    """A quantity that is measured in every run.

    Attributes
    ----------
    of
        One of `twinnet.study.quantities.QUANTITIES`, which say what they mean; or an own metric: a Python function,
        named as `module:name`.
    unit
        Of an own metric: the unit of what its function returns; default: `1`, a share.
    title
        Its name in figures and tables; default: its key in words.
    text
        What it is, in words, for the report.
    per
        One value for each `protocol`, or for each `flow`.
    interval
        The length of the intervals of a rate.
    ports
        The ports whose rate is measured, such as `s1-eth2`.
    layer
        `payload`: bytes that the application reads (goodput); `network`: packets with the headers of IP; `link`: frames
        with the Ethernet header; `wire`: also padding, preamble, FCS and inter-frame gap.
    bounds
        For throughput: the bounds of intervals for the minimum and maximum. `clock`: the clock's bounds. `arrivals`:
        from the last arrival of one interval to that of the next, so that no interval exceeds the line's rate.
    only
        Names of traffic; default: all traffic.
    minimum_after
        Number of first packets that the minimum leaves out, while a sum over the last second still builds up.
    show
        What tables and figures show of it, from the values within a run: `mean`, `median`, `p99` and other percentiles,
        `std`, `min`, `max`, or the share that keeps a bound: `share < 20 ms`.
    during
        The window of time that it is limited to, from the start of traffic: `5 s to 20 s`. Packets count by when they
        were sent, flows by when they began.
    after
        The time before which nothing counts: `2 s`, or `warm-up`, which each run tells itself (MSER-5, White 1997).
    describe
        Whether the report also gives deviation, variance and normality, and shows the values over time.
    """

    of: Annotated[str, _KnownName(), Field(description=_MEANINGS)]
    title: Annotated[str, Field(max_length=100)] = ""
    text: str = ""
    own_unit: Annotated[Literal["1", "s", "bit/s", "B", "1/s", "packets", "dB"] | None, Field(alias="unit")] = None
    per: Literal["protocol", "flow"] = "protocol"
    layer: Literal["payload", "network", "link", "wire"] = "payload"
    interval_ps: IntervalPs | None = Field(default=None, alias="interval")
    bounds: Literal["clock", "arrivals"] = "clock"
    ports: list[str] | None = None
    only: Annotated[list[str], Field(min_length=1)] | None = None
    minimum_after: Annotated[int, Field(ge=1, le=100_000, strict=True)] | None = None
    show: Annotated[str, Field(max_length=60)] = "mean"
    during: Annotated[str, Field(max_length=100)] | None = None
    after: Annotated[str, Field(max_length=100)] | None = None
    describe: Annotated[bool, Field(strict=True)] = False

    @property
    def unit(self) -> str:
        """The unit of its values: `bit/s`, `s`, `1`, `1/s`, `packets`, `dB` or `SSIM`."""
        return self.quantity.unit

    @property
    def is_own(self) -> bool:
        """True if it is a metric of the study's own, named as `module:name`."""
        return ":" in self.of

    @property
    def quantity(self) -> MeasuredQuantity:
        """What it measures."""
        return own_quantity(self.of, self.own_unit or "1") if self.is_own else QUANTITIES[self.of]

    @property
    def function(self) -> ValueFunction:
        """The function of the values within a run that tables and figures show."""
        return MEAN if self.show == "mean" else parse_function(self.show, self.unit)

    @property
    def window(self) -> Window | None:
        """The window of time that it is limited to."""
        return parse_window(self.during, self.after) if self.during or self.after else None

    @property
    def shown_unit(self) -> str:
        """The unit of what tables and figures show."""
        return "1" if self.function.bound is not None or self.show == NORMALITY else self.unit

    @property
    def is_series(self) -> bool:
        """True if it is a throughput, counted in intervals of the lab's clock."""
        return self.quantity.is_series

    @property
    def is_of_ports(self) -> bool:
        """True if ports count it, and no ends of flows."""
        return self.quantity.table == "port_samples"

    @property
    def is_of_packets(self) -> bool:
        """True if every packet has a value of it."""
        column = self.quantity.column
        return column is not None and column.every_packet

    @model_validator(mode="after")
    def _belongs_together(self) -> Measurement:
        if self.own_unit is not None and not self.is_own:
            raise ValueError(f"'unit' has no meaning for {self.of}, whose unit is {self.unit}; it is for own metrics")
        try:
            _ = self.function
        except ValueError as error:
            raise ValueError(f"'show': {error}") from None
        parse_window(self.during, self.after)
        if self.is_of_ports and self.only is not None:
            raise ValueError(f"'only' selects traffic by name; {self.of} counts all that the port sends")
        timed = self.is_series or self.quantity.window == "samples"
        if timed and not self.interval_ps:
            raise ValueError(f"{self.of} needs 'interval', the time between two counts, such as '100 ms'")
        if not timed and self.interval_ps is not None:
            raise ValueError(f"'interval' has no meaning for {self.of}")
        if self.bounds == "arrivals" and self.of != "throughput":
            raise ValueError(f"'bounds' has no meaning for {self.of}; only throughput is counted between arrivals")
        if self.minimum_after is not None and not self.is_of_packets:
            raise ValueError(f"'minimum_after' has no meaning for {self.of}: it has no value of every packet")
        if self.describe and not (self.is_series or self.is_of_packets):
            raise ValueError(f"'describe' has no meaning for {self.of}: a run has one value of it")
        if (self.of in _OF_PORTS) != (self.ports is not None):
            raise ValueError(f"{', '.join(_OF_PORTS)} need 'ports', and nothing else takes it")
        if self.of == "port_throughput" and self.layer in ("payload", "network"):
            raise ValueError("port_throughput is counted at layer 'link' or 'wire'; a port does not know packets")
        return self
