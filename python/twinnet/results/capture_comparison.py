"""Two sets of captures compared: the "real against virtual" table of the studies, and its figures.

Each quantity is one series of samples: throughput per interval, and of RTP per packet the bandwidth over the last
second, the interval since the packet before (delta) and the jitter. Samples of all captures of a set are pooled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.errors import BadValue
from twinnet.results.captures import CaptureAnalysis, CaptureLayer
from twinnet.stats import (
    TestResult,
    anderson_darling,
    cliffs_delta,
    describe,
    hedges_g,
    holm,
    mann_whitney_u,
    shapiro_wilk,
    student_t_test,
    welch_t_test,
)

__all__ = ["Quantity", "compare_captures", "quantities_of"]

Vector = npt.NDArray[np.float64]
_SHAPIRO_MOST = 5000
_RTP = (("bandwidth", "kbit/s", "bandwidth_kbps"), ("delta", "ms", "delta_ms"), ("jitter", "ms", "jitter_ms"))


@dataclass(frozen=True)
class Quantity:
    """Samples of one quantity of one set: for each capture, when and what."""

    name: str
    unit: str
    series: tuple[tuple[Vector, Vector], ...]

    @property
    def samples(self) -> Vector:
        """The samples of all captures."""
        return np.concatenate([values for _, values in self.series]) if self.series else np.array([])


def quantities_of(analyses: Sequence[CaptureAnalysis], layer: CaptureLayer = "link") -> list[Quantity]:
    """Return the quantities of a set of captures; those of RTP where a capture has any.

    The captures must have been analysed with ``every_packet=True`` for the quantities of RTP.
    """
    rates = [one.throughput(layer) for one in analyses]
    series = [(_vector(rate["time_s"]), _vector(rate["throughput_bps"]) / 1e6) for rate in rates if rate.height]
    found = [Quantity("throughput", "Mbit/s", tuple(series))] if series else []
    packets = [(one, one.rtp_packets) for one in analyses if one.rtp_packets.height]
    for name, unit, column in _RTP:
        # The first packet of a stream has nothing before it to be measured against.
        kept = [
            (one, table.filter(pl.col("stream").is_duplicated() & ~pl.col("stream").is_first_distinct()))
            for one, table in packets
        ]
        kept = [(one, table.filter(pl.col(column).is_not_null())) for one, table in kept]
        parts = [
            ((_vector(table["time_ns"]) - float(one.capture["start_ns"][0])) / 1e9, _vector(table[column]))
            for one, table in kept
            if table.height
        ]
        if parts:
            found.append(Quantity(name, unit, tuple(parts)))
    return found


def compare_captures(first: Sequence[Quantity], second: Sequence[Quantity]) -> pl.DataFrame:
    """Compare the quantities that both sets have.

    Returns
    -------
    pl.DataFrame
        A row for each quantity, with the columns that docs/reference/capture-columns.md defines. P-values of Welch's
        test are adjusted by Holm's method over the rows. A value is null where the samples do not allow it.

    Raises
    ------
    BadValue
        The two sets have no quantity in common.
    """
    others = {one.name: one for one in second}
    pairs = [(one, others[one.name]) for one in first if one.name in others]
    if not pairs:
        raise BadValue("the two sets have nothing in common to compare", "give captures with packets in both")
    rows = [_row(a, b) for a, b in pairs]
    tested = [row for row in rows if row["welch_p"] is not None]
    for row, adjusted in zip(tested, holm([float(str(row["welch_p"])) for row in tested]), strict=True):
        row["holm_p"] = adjusted
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(first: Quantity, second: Quantity) -> dict[str, object]:
    row: dict[str, object] = {"quantity": first.name, "unit": first.unit}
    for label, one in (("first", first), ("second", second)):
        described = describe(one.samples)
        variance = described.std**2
        normality = _normality(one.samples)
        row |= {
            f"{label}_samples": described.count,
            f"{label}_mean": described.mean,
            f"{label}_min": described.min,
            f"{label}_max": described.max,
            f"{label}_variance": _finite(variance),
            f"{label}_std": _finite(described.std),
            f"{label}_normality_test": normality.name if normality else None,
            f"{label}_normality_p": normality.p_value if normality else None,
        }
    a, b = first.samples, second.samples
    enough = a.size > 1 and b.size > 1
    row |= {
        "difference_of_means": float(b.mean() - a.mean()),
        "student_p": _finite(student_t_test(b, a).p_value) if enough else None,
        "welch_p": _finite(welch_t_test(b, a).p_value) if enough else None,
        "holm_p": None,
        "mann_whitney_p": mann_whitney_u(b, a).p_value if enough else None,
        "hedges_g": _finite(hedges_g(b, a).value) if enough else None,
        "cliffs_delta": cliffs_delta(b, a).value,
    }
    return row


def _normality(samples: Vector) -> TestResult | None:
    """Shapiro-Wilk up to as many samples as it is made for, Anderson-Darling beyond; none of samples all alike."""
    if samples.size < 3 or float(np.ptp(samples)) == 0.0:
        return None
    return shapiro_wilk(samples) if samples.size <= _SHAPIRO_MOST else anderson_darling(samples)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _vector(series: pl.Series) -> Vector:
    return series.to_numpy().astype(np.float64)
