"""The results of a twin as rows of the table `twin`."""

from __future__ import annotations

import math

import polars as pl

from twinnet.results.tables import table
from twinnet.study.twin import Twin, TwinResult

__all__ = ["twin_frame"]


def twin_frame(twin: Twin) -> pl.DataFrame:
    """The table `twin`: one row for each metric, combination of levels and phase."""
    return table("twin", [_row(one) for one in twin.results])


def _row(one: TwinResult) -> dict[str, object]:
    row: dict[str, object] = {
        "measurement": one.measurement,
        "label": one.label,
        "levels": " ".join(f"{name}={level}" for name, level in one.levels.items()),
        "phase_start_s": one.phase[0] if one.phase else None,
        "phase_end_s": one.phase[1] if one.phase else None,
        "unit": one.unit,
        "verdict": one.verdict,
        "why": one.why or None,
        "wall_runs": len(one.wall),
        "wall_mean": _mean(one.wall),
        "virtual_runs": len(one.virtual),
        "virtual_mean": _mean(one.virtual),
        "real_runs": len(one.real),
        "real_mean": _mean(one.real),
        "models_runs": len(one.models),
        "models_mean": _mean(one.models),
        "difference": _known(one.difference.estimate),
        "difference_low": _known(one.difference.low),
        "difference_high": _known(one.difference.high),
        "confidence": one.difference.level,
        "tolerance": one.tolerance.text,
        "tolerance_stated": one.tolerance.stated,
        "allowed_difference": _known(one.allowed),
        "ks_statistic": one.test.statistic if one.test else None,
        "ks_p": one.test.p_value if one.test else None,
        "emulation": one.emulation,
        "model_verdict": one.model_verdict,
    }
    if one.of_model is not None:
        row |= {
            "model_difference": _known(one.of_model.estimate),
            "model_difference_low": _known(one.of_model.low),
            "model_difference_high": _known(one.of_model.high),
        }
    if one.parting is not None:
        row |= {
            "apart_first_s": one.parting.first_s,
            "apart_worst_s": one.parting.worst_s,
            "apart_worst_difference": one.parting.worst_difference,
            "apart_from_s": one.parting.sustained_from_s,
            "apart_for_s": _known(one.parting.sustained_s),
            "apart_share": one.parting.share,
        }
    if one.moment is not None:
        row |= {
            "lateness_p99_ms": one.moment.lateness_p99_ms,
            "slipped_ms": one.moment.slipped_ms,
            "lost_frames": one.moment.lost_frames,
            "steal_ms": one.moment.steal_ms,
        }
    return row


def _mean(values: tuple[float, ...]) -> float | None:
    return sum(values) / len(values) if values else None


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
