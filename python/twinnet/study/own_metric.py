"""A study's own metrics: Python functions that are given the tables of a run, named in the study as ``module:name``.

The module is a file beside the study's, or one that is installed. Reading a study does not run it: that happens when a
value is asked for. Its source is kept with the results, and reports tell its hash.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.errors import BadValue
from twinnet.study.consent import check_may_run
from twinnet.study.own_source import OWN_NAME, OwnSource, find_own

__all__ = ["OWN_NAME", "OwnMetric", "RunData", "find_metric"]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunData:
    """What a metric is given of one run.

    Attributes
    ----------
    flows, intervals, packets, tcp
        The tables, with the rows of the traffic that the measurement and its filters select.
    port_samples
        The table of ports; those that any measurement of the study names are in it.
    levels
        The level of each factor.
    window_s
        The window of time that the measurement or the statement asks for, in seconds from the start of traffic; `None`
        for the whole run. To keep to it is the metric's part.
    end_s
        When traffic of known duration ends.
    """

    flows: pl.DataFrame
    intervals: pl.DataFrame
    packets: pl.DataFrame
    tcp: pl.DataFrame
    port_samples: pl.DataFrame
    levels: Mapping[str, str]
    window_s: tuple[float, float] | None
    end_s: float


@dataclass(frozen=True)
class OwnMetric(OwnSource):
    """A metric's source."""

    def values(self, data: RunData) -> Vector:
        """What the metric makes of `data`: one value, or many.

        Raises
        ------
        LookupError
            The metric raised it: nothing was measured.
        CodeNotRun
            Nobody has asked for it to be run.
        BadValue
            The metric failed, or what it gave is no number.
        """
        check_may_run(self)
        try:
            given: object = cast("Callable[[RunData], object]", self.load())(data)
        except LookupError as error:
            if type(error) in (LookupError, KeyError, IndexError) and type(error) is not LookupError:
                raise self._failure(error) from None
            raise
        except Exception as error:
            raise self._failure(error) from None
        try:
            values = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or np.isnan(values).any():
            raise BadValue(
                f"the metric {self.name} gave {given!r:.100}",
                "return a number or a list of numbers; raise LookupError where nothing was measured",
            )
        return values

    def _failure(self, error: Exception) -> BadValue:
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == self.file]
        where = f"{self.file}, line {lines[-1]}" if lines else self.file
        return BadValue(f"the metric {self.name} failed: {type(error).__name__}: {error} ({where})", "mend it")


def find_metric(name: str, beside: Mapping[str, str]) -> OwnMetric:
    """Find the source of the metric `name`, without running it.

    Parameters
    ----------
    name
        ``module:name``.
    beside
        The files beside the study's.

    Raises
    ------
    ValueError
        There is no such module, or it defines no such function; the message says where it was looked for.
    """
    return OwnMetric(name, *find_own(name, beside, "metric", "metrics:longest_gap"))
