"""What a study can measure: a quantity with its unit and meaning, and where the tables of a run have its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = [
    "ABOVE_ZERO",
    "SHARE",
    "SHARE_LESS_ONE",
    "WITH_SIGN",
    "DistributionColumn",
    "MeasuredQuantity",
    "own_quantity",
]

ABOVE_ZERO = (0.0, math.inf)
"""The least and the greatest that a rate, a time or a count can be."""
SHARE = (0.0, 1.0)
"""Those of a part of a whole."""
SHARE_LESS_ONE = (-1.0, math.inf)
"""Those of a ratio of what is not negative, less 1."""
WITH_SIGN = (-math.inf, math.inf)
"""Those of what may have either sign."""


@dataclass(frozen=True)
class DistributionColumn:
    """Columns of the tables `flows` and `packets` that have the values of a quantity.

    Parameters
    ----------
    name
        The columns' name.
    unit
        Their unit.
    size
        Its size in the unit of the quantity.
    every_packet
        True if the table `packets` has a value of each packet.
    has_quantiles
        True if flows tell their quantiles.
    nothing
        The message when nothing was measured.
    lost_counts
        True if a lost datagram has a value too, an infinite one.
    """

    name: str
    unit: str = "ms"
    size: float = 1e-3
    every_packet: bool = True
    has_quantiles: bool = True
    nothing: str = ""
    lost_counts: bool = False

    @property
    def of_packets(self) -> str:
        """The column of the table `packets`."""
        return f"{self.name}_{self.unit}"

    def of_flows(self, part: str) -> str:
        """Return the column of the table `flows` that has the count, the mean or another `part` of the distribution."""
        return f"{self.name}_count" if part == "count" else f"{self.name}_{part}_{self.unit}"

    def measured(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that have values; raises `LookupError` when none has."""
        import polars as pl

        if self.of_flows("count") not in rows.columns:
            raise LookupError(f"no {self.name} was counted when this run was made")
        seen = rows.filter(pl.col(self.of_flows("count")) > 0)
        if seen.is_empty():
            raise LookupError(self.nothing or f"no {self.name} was measured")
        return seen

    def value(self, rows: pl.DataFrame, function: str) -> float:
        """Return the mean over all values, their deviation or an extreme."""
        seen = self.measured(rows)
        counts, means = seen[self.of_flows("count")].to_numpy(), seen[self.of_flows("mean")].to_numpy()
        mean = float((means * counts).sum() / counts.sum())
        if function == "mean":
            return mean * self.size
        if function == "std":
            deviations = seen[self.of_flows("std")].to_numpy()
            squares = float(((counts - 1) * deviations**2 + counts * (means - mean) ** 2).sum())
            return math.sqrt(squares / max(1.0, float(counts.sum()) - 1)) * self.size
        column = seen[self.of_flows(function)].to_numpy()
        return float(column.min() if function == "min" else column.max()) * self.size


@dataclass(frozen=True)
class MeasuredQuantity:
    """A quantity that a study can measure.

    Parameters
    ----------
    unit
        The unit of its values.
    meaning
        One sentence for people.
    value
        Its value in a run: from rows of the table `flows` and the function that a check asks for (``mean``, ``min``,
        ``max``, ``std``); raises `LookupError` when nothing was measured.
    column
        Where it has a distribution: its columns.
    is_series
        True if it is a throughput, counted in intervals: the tables `intervals` and `port_samples` have it.
    each
        Where every flow has one value: the values, from rows of the table `flows`.
    protocols
        The protocols of traffic that has it, as tables name them; empty where that is not known beforehand.
    window
        What lies in a window of time: `series` (bytes over time), `packets` that were sent in it, `intervals` of
        counting, `samples` at moments in it, `flows` that began in it; empty where the whole run has one value.
    table
        The table that its values are in.
    in_rows
        Where its values are samples, or come from them: the values, from rows of that table.
    share_of
        Where it is a share of what was counted: the two counts, from rows of that table.
    ends
        The least and the greatest that a value can be, in the unit: no interval that is shown goes beyond them.
    """

    unit: str
    meaning: str
    value: Callable[[pl.DataFrame, str], float]
    column: DistributionColumn | None = None
    is_series: bool = False
    each: Callable[[pl.DataFrame], Vector] | None = None
    protocols: tuple[str, ...] = ()
    window: Literal["", "series", "packets", "intervals", "samples", "flows"] = ""
    table: Literal["flows", "port_samples", "tcp", "own"] = "flows"
    in_rows: Callable[[pl.DataFrame], Vector] | None = None
    share_of: Callable[[pl.DataFrame], tuple[int, int]] | None = None
    ends: tuple[float, float] = ABOVE_ZERO

    @property
    def has_many_values(self) -> bool:
        """True if a run has more than one value of it: of packets, flows or intervals."""
        return (
            self.is_series
            or self.table == "own"
            or any(one is not None for one in (self.column, self.each, self.in_rows))
        )


def own_quantity(name: str, unit: str) -> MeasuredQuantity:
    """A study's own metric, whose values are those that its function gives."""

    def value(rows: pl.DataFrame, function: str) -> float:
        raise LookupError("its function gives its values")

    return MeasuredQuantity(unit, f"The own metric {name}.", value, window="flows", table="own", ends=WITH_SIGN)
