"""The distribution of a measurement's values within a run: extremes, deviation, normality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from twinnet.stats import Interval, anderson_darling
from twinnet.study.analysis import Analysis
from twinnet.study.machine_blocks import mean_of_repetitions
from twinnet.study.predicate import Aggregate
from twinnet.study.reference_settings import STATISTICS
from twinnet.study.run_quantities import RunTables

__all__ = ["Described", "described", "statistic_samples"]

_LEAST_FOR_NORMALITY = 8
_SIGNIFICANT = 0.05
_FUNCTIONS = {"mean": "mean", "min": "min", "max": "max", "std": "std", "variance": "std"}


@dataclass(frozen=True)
class Described:
    """The values of one measurement under one combination of levels.

    Attributes
    ----------
    runs, values
        How many runs have a value of it, and how many values they have together.
    missing
        How many have none.
    statistics
        `mean`, `min`, `max`, `variance`, `std` of a run, each as the mean over runs with its confidence interval; those
        that all these runs have.
    normality
        What the Anderson-Darling test says of each run, in words.
    """

    measurement: str
    levels: Mapping[str, str]
    label: str
    unit: str
    runs: int
    missing: int
    values: int
    statistics: Mapping[str, Interval]
    normality: str


def described(analysis: Analysis) -> list[Described]:
    """Every measurement that is to be described, under every combination of levels."""
    found: list[Described] = []
    for name, measurement in analysis.specification.measurements.items():
        if not measurement.describe:
            continue
        for levels in analysis.combinations:
            runs = analysis.runs_at(levels)
            for label, filters in analysis.labels(name):
                samples = {one: statistic_samples(runs, name, one, filters) for one in STATISTICS}
                most = max(map(len, samples.values()))
                if most:
                    level = analysis.specification.confidence
                    statistics = {
                        one: mean_of_repetitions(values, level)
                        for one, values in samples.items()
                        if len(values) == most
                    }
                    count, said = _normality(runs, name, filters)
                    missing = len(runs) - most
                    found.append(
                        Described(name, levels, label, measurement.unit, most, missing, count, statistics, said)
                    )
    return found


def statistic_samples(
    runs: list[RunTables], measurement: str, statistic: str, filters: tuple[tuple[str, str], ...] = ()
) -> list[float]:
    """The statistic of each of the `runs` that has it; a variance in the square of the measurement's unit."""
    samples: list[float] = []
    for run in runs:
        try:
            value = run.value(Aggregate(_FUNCTIONS[statistic], measurement, filters, None, ()))
        except LookupError:
            continue
        samples.append(value**2 if statistic == "variance" else value)
    return samples


def _normality(runs: list[RunTables], name: str, filters: tuple[tuple[str, str], ...]) -> tuple[int, str]:
    count = tested = rejected = equal = 0
    for run in runs:
        try:
            _, values = run.values(name, filters)
        except LookupError:
            continue
        count += values.size
        if values.size < _LEAST_FOR_NORMALITY:
            continue
        # What differs by rounding alone is equal.
        if float(np.ptp(values)) <= 1e-9 * float(np.abs(values).max()):
            equal += 1
            continue
        tested += 1
        rejected += anderson_darling(values).p_value < _SIGNIFICANT
    if equal and not tested:
        return count, "all values are equal"
    if not tested:
        return count, "too few values" if count else "no values were kept"
    return count, f"rejected in {rejected} of {tested} runs" if rejected else f"not rejected in {tested} runs"
