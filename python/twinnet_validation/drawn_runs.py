"""Runs with drawn values, as the judge of statements sees runs: so simulated studies go through the functions that
judge real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Aggregate, Check, Names, parse_check
from twinnet.study.quantity import parse_quantity
from twinnet.study.specification import Statement
from twinnet.study.verdict import StatementResult, judge

if TYPE_CHECKING:
    from twinnet.study.run_quantities import RunTables

__all__ = ["LEVEL", "Claim", "DrawnRun", "drawn_runs"]

LEVEL = 0.95
"""The confidence level of simulated studies."""
_MEASURED = {"delay": Measurement(of="delay"), "loss": Measurement(of="loss")}
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DrawnRun:
    """A run with one drawn value; no two are the same. `step`: the least step of the value."""

    run: SimpleNamespace
    drawn: float
    step: float | None = None

    is_drawn: ClassVar[bool] = True
    measurements: ClassVar[Mapping[str, Measurement]] = _MEASURED

    @property
    def fingerprint(self) -> tuple[int, ...]:
        """No two runs are the same."""
        return (id(self),)

    def value(self, aggregate: Aggregate) -> float:
        """The drawn value."""
        return self.drawn

    def grain(self, aggregate: Aggregate) -> float | None:
        """The least step of the value."""
        return self.step

    def flow_of(self, aggregate: Aggregate) -> str:
        """One flow."""
        return ""


def drawn_runs(
    values: Sequence[float] | Values,
    levels: Mapping[str, str],
    machines: Sequence[str] | None = None,
    seeds: bool = False,
    step: float | None = None,
) -> list[DrawnRun]:
    """Runs under `levels` with these values; `seeds`: repetitions have the same ones under all levels."""
    found: list[DrawnRun] = []
    for place, value in enumerate(values):
        record: dict[str, Any] = {"clock": "virtual", "seed": place if seeds else None}
        if machines is not None:
            record = {"clock": "wall", "machine": {"name": machines[place]}}
        found.append(DrawnRun(SimpleNamespace(levels=levels, record=record, repetition=place + 1), float(value), step))
    return found


class Claim:
    """A check that simulated studies are judged by.

    Parameters
    ----------
    text
        The check, of the measurements `delay` and `loss`.
    bound
        What its parameter `bound` is.
    factors
        The factors that it may name, with their levels.
    """

    def __init__(self, text: str, bound: str, factors: Mapping[str, Sequence[str]]) -> None:
        names = Names({"bound": parse_quantity(bound)}, {"delay": "s", "loss": "1"}, factors)
        self.statement: Statement = Statement(id="x", text="x", check=text)
        self.check: Check = parse_check(text, names)

    def judged(self, runs: Sequence[DrawnRun]) -> StatementResult:
        """What `runs` say of it."""
        return judge(self.statement, self.check, cast("Sequence[RunTables]", runs), LEVEL)
