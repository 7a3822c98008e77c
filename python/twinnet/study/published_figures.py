"""Reads a table of published figures: which case each is about, what was published, and how it was printed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinnet.errors import did_you_mean
from twinnet.study.reference_settings import STATISTICS, UNITS, Reference
from twinnet.study.specification import StudySpecification

__all__ = ["Figure", "PrintedValue", "read_figures"]

MOST_ROWS = 10_000
_COLUMN = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")
_BELOW = re.compile(r"<\s*(\d{1,15}(\.\d{1,15})?)")


@dataclass(frozen=True)
class PrintedValue:
    """A figure as it was printed.

    Attributes
    ----------
    text
        As printed; empty when it was not given.
    value
        In the measurement's unit; `None` for what is no number, such as `<0.01`.
    below
        For what was printed as less than a number, that number in the measurement's unit: the value is from zero to it.
    beside
        For a bare zero the decimals of what was printed beside it: it is as fine as these.
    half_digits
        By how much it may be off, in the published unit, where that is not half of its last digit: of a difference of
        two figures the halves of both.
    """

    text: str
    value: float | None
    below: float | None = None
    beside: int = 0
    half_digits: float | None = None

    @property
    def off(self) -> float:
        """By how much what was rounded may be off, in the published unit: half of the last digit that was printed."""
        return 10.0**-self.decimals / 2 if self.half_digits is None else self.half_digits

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest that the value may be; `None` where nothing is known."""
        if self.value is not None:
            return self.value, self.value
        return None if self.below is None else (0.0, self.below)

    @property
    def decimals(self) -> int:
        """The number of decimals with which it was printed."""
        return len(self.text.partition(".")[2]) or self.beside


@dataclass(frozen=True)
class Figure:
    """One published figure: a statistic of a metric in one case, of the truth and of the rival.

    Attributes
    ----------
    metric, statistic
        As the table names them.
    levels
        The levels of the study's factors that it is about.
    scale
        How much of the measurement's unit the published unit is.
    """

    metric: str
    statistic: str
    levels: Mapping[str, str]
    scale: float
    truth: PrintedValue
    rival: PrintedValue


def read_figures(reference: Reference, text: str, specification: StudySpecification) -> list[Figure]:
    """The figures in `text` that `reference` speaks of, in the order of the file.

    Raises
    ------
    ValueError
        The table does not have the form that is documented, or speaks of a case that the study does not have.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    if len(lines) > MOST_ROWS:
        raise ValueError(f"{reference.file} has more than {MOST_ROWS} lines")
    rows = list(csv.reader(io.StringIO("\n".join(line for _, line in lines))))
    head = rows[0] if rows else []
    statistics = [name for name in STATISTICS if name in head]
    for needed in ("metric", "network"):
        if needed not in head:
            raise ValueError(f"{reference.file} has no column {needed!r}; its head is {','.join(head)!r}")
    if not statistics:
        raise ValueError(f"{reference.file} has none of the columns {', '.join(STATISTICS)}")
    _check_names(reference, specification, [name for name in head if name not in (*STATISTICS, "metric", "network")])
    found: dict[tuple[tuple[str, ...], str], dict[str, list[PrintedValue]]] = {}
    for (number, _), row in zip(lines[1:], rows[1:], strict=False):
        place = f"{reference.file}:{number}"
        if len(row) != len(head):
            raise ValueError(f"{place}: {len(row)} columns; the head has {len(head)}")
        cells = dict(zip(head, (cell.strip() for cell in row), strict=True))
        metric = cells["metric"]
        if metric not in reference.metrics:
            raise ValueError(f"{place}: the metric {metric!r} is not among 'metrics' of the study's reference")
        levels = _levels(reference, specification, cells, place)
        unit = UNITS[reference.metrics[metric].unit]
        beside = _decimals_beside([cells[name] for name in statistics if name != "variance"])
        values = [_printed(cells[name], _scale(name, unit), place, beside) for name in statistics]
        networks = found.setdefault((tuple(levels.values()), metric), {})
        if cells["network"] in networks:
            raise ValueError(f"{place}: a second row of {metric} for the network {cells['network']}")
        networks[cells["network"]] = values
    return [
        Figure(
            metric,
            statistic,
            dict(zip(reference.select, levels, strict=True)),
            _scale(statistic, UNITS[reference.metrics[metric].unit]),
            *(_value(networks, network, place) for network in (reference.truth, reference.rival)),
        )
        for (levels, metric), networks in found.items()
        for place, statistic in enumerate(statistics)
    ]


def _scale(statistic: str, unit: float) -> float:
    """A variance is in the square of the unit."""
    return unit**2 if statistic == "variance" else unit


def _value(networks: Mapping[str, Sequence[PrintedValue]], network: str, place: int) -> PrintedValue:
    return networks[network][place] if network in networks else PrintedValue("", None)


def _check_names(reference: Reference, specification: StudySpecification, columns: Sequence[str]) -> None:
    for factor, pattern in reference.select.items():
        if factor not in specification.factors:
            raise ValueError(f"select: there is no factor {factor!r}; {did_you_mean(factor, specification.factors)}")
        for column in _COLUMN.findall(pattern):
            if column not in columns:
                raise ValueError(f"select.{factor}: {reference.file} has no column {column!r} that names the case")
    for factor, level in reference.baseline.items():
        if factor not in reference.select:
            raise ValueError(f"baseline: {factor!r} is not among 'select'; {did_you_mean(factor, reference.select)}")
        known = specification.factors[factor].levels
        if level not in known:
            raise ValueError(f"baseline.{factor}: there is no level {level!r}; {did_you_mean(level, known)}")
    for metric, meant in reference.metrics.items():
        if meant.measurement not in specification.measurements:
            known = specification.measurements
            raise ValueError(
                f"metrics.{metric}: there is no measurement {meant.measurement!r}; "
                f"{did_you_mean(meant.measurement, known)}"
            )


def _levels(
    reference: Reference, specification: StudySpecification, cells: Mapping[str, str], place: str
) -> dict[str, str]:
    levels: dict[str, str] = {}
    for factor, pattern in reference.select.items():
        level = _COLUMN.sub(lambda found: cells[found.group(1)], pattern)
        if level not in specification.factors[factor].levels:
            known = specification.factors[factor].levels
            raise ValueError(f"{place}: {factor} has no level {level!r}; {did_you_mean(level, known)}")
        levels[factor] = level
    return levels


def _decimals_beside(texts: Sequence[str]) -> int:
    """The decimals of the least finely printed figure of a row that has any."""
    return min((len(text.partition(".")[2]) for text in texts if "." in text), default=0)


def _printed(text: str, scale: float, place: str, beside: int) -> PrintedValue:
    if len(text) > 40:
        raise ValueError(f"{place}: {text[:40]!r} is no figure")
    below = _BELOW.fullmatch(text)
    if below is not None:
        return PrintedValue(text, None, float(below.group(1)) * scale)
    return PrintedValue(
        text, float(text) * scale if _NUMBER.fullmatch(text) else None, beside=beside if text == "0" else 0
    )
