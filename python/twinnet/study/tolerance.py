"""The difference between the two clocks that a twin allows: what a study states, per metric."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from twinnet.errors import did_you_mean
from twinnet.study.predicate import Names, parse_side
from twinnet.study.specification import Measurement, StudySpecification

__all__ = ["Tolerance", "Tolerances", "metric_name", "parse_tolerance"]

_SHARE = re.compile(r"\s*(\d{1,4}(?:\.\d{1,6})?)\s*%\s*")
_PROTOCOLS = ("udp", "rtp", "tcp", "http", "icmp")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference between two means: a share of the larger one, an amount, or the larger of both.

    Attributes
    ----------
    text
        As it was written.
    share
        Of the larger mean; 0 when an amount was stated only.
    amount
        In the metric's unit (bit/s, s, 1, 1/s, packets, dB); 0 when a share was stated only.
    stated
        Whether the study states it for this metric; otherwise it is the default.
    """

    text: str
    share: float
    amount: float
    stated: bool

    def allowed(self, first: float, second: float) -> float:
        """Return the allowed difference between means of `first` and `second`."""
        return max(self.share * max(abs(first), abs(second)), self.amount)


def metric_name(measurement: str, label: str) -> str:
    """The name under which a study states a tolerance for one label: `throughput_udp`."""
    return f"{measurement}_{label}"


def parse_tolerance(text: str, names: Names, unit: str | None, stated: bool = True) -> Tolerance:
    """Read a tolerance: ``2 %``, ``0.01 * link_rate``, ``5 ms``, or both with ``or``: ``5 % or 1 Mbit``.

    Parameters
    ----------
    text, names
        The text, and the parameters that it may name.
    unit
        The unit of the metric; `None` where only a share is allowed.
    stated
        Whether the study states it for one metric.

    Raises
    ------
    ValueError
        It is none of these.
    """
    share = amount = 0.0
    for part in re.split(r"\s+or\s+", text):
        found = _SHARE.fullmatch(part)
        if found is not None:
            share = max(share, float(found.group(1)) / 100)
            continue
        if unit is None:
            raise ValueError(f"{part!r} is not a share; the default is one, such as '5 %', for metrics of any unit")
        side = parse_side(part, names, unit)
        if any(term.aggregate is not None for term in side):
            raise ValueError(f"{part!r} holds a measured quantity; a tolerance is made of numbers and parameters")
        amount = max(amount, sum(term.factor for term in side))
    if share <= 0 and amount <= 0:
        raise ValueError(f"{text!r} allows no difference at all; write for example '2 %' or '5 % or 100 kbit'")
    return Tolerance(text, share, amount, stated)


class Tolerances:
    """The tolerances of a study.

    Raises
    ------
    ValueError
        A name that no metric has, or a text that is no tolerance; `args` are the key in the block `twin` and why.
    """

    def __init__(self, specification: StudySpecification, names: Names) -> None:
        settings = specification.twin
        self.default: Tolerance = self._read("default", settings.default, names, None, False)
        known = _metric_names(specification.measurements, [entry.name for entry in specification.traffic])
        self.stated: dict[str, Tolerance] = {}
        for metric, text in settings.tolerance.items():
            if metric not in known:
                raise ValueError(f"tolerance.{metric}", f"there is no such metric; {did_you_mean(metric, known)}")
            self.stated[metric] = self._read(f"tolerance.{metric}", str(text), names, known[metric], True)

    @staticmethod
    def _read(key: str, text: str, names: Names, unit: str | None, stated: bool) -> Tolerance:
        try:
            return parse_tolerance(text, names, unit, stated)
        except ValueError as error:
            raise ValueError(key, str(error)) from None

    def of(self, measurement: str, label: str) -> Tolerance:
        """The tolerance of one label of a measurement: its own, the measurement's, or the default."""
        own = self.stated.get(metric_name(measurement, label))
        return own or self.stated.get(measurement) or self.default


def _metric_names(measurements: Mapping[str, Measurement], traffic: list[str]) -> dict[str, str]:
    """Every metric that a tolerance can be stated for, with its unit."""
    known: dict[str, str] = {}
    for name, measurement in measurements.items():
        labels = measurement.ports or (traffic if measurement.per == "flow" else _PROTOCOLS)
        unit = measurement.shown_unit
        known |= {name: unit, **{metric_name(name, label): unit for label in labels}}
    return known
