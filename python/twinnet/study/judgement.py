"""The fidelity verdict of a run by the thresholds of its study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.results.fidelity import FidelityRecord, Limit, Thresholds
from twinnet.study.fidelity_thresholds import DurationLimit, FidelityThresholds, ShareLimit
from twinnet.study.store import Fidelity, StoredRun

__all__ = ["judged_again", "judged_record", "thresholds_of"]

_PS_PER_NS = 1000


def thresholds_of(given: FidelityThresholds) -> Thresholds:
    """The defaults with what the study changes."""
    limits: dict[str, Limit] = {}
    for name in FidelityThresholds.model_fields:
        limit: DurationLimit | ShareLimit | None = getattr(given, name)
        if isinstance(limit, DurationLimit):
            limits[f"{name}_ns"] = Limit(limit.doubtful_ps / _PS_PER_NS, limit.invalid_ps / _PS_PER_NS)
        elif limit is not None:
            limits[name] = Limit(limit.doubtful, limit.invalid)
    return Thresholds(**limits)


def judged_record(record: Mapping[str, Any], given: FidelityThresholds) -> Fidelity:
    """The verdict on a fidelity record in the form of the lab protocol."""
    measured = FidelityRecord.from_spec(record)
    verdict = measured.verdict(thresholds_of(given))
    if changed := measured.by_hand.words(with_traffic=True):
        # However well it kept its schedule: it is not the run that the study describes.
        return Fidelity("invalid", (f"{changed}: not the run that was planned", *verdict.reasons), record)
    return Fidelity(verdict.state, verdict.reasons, record)


def judged_again(run: StoredRun, given: FidelityThresholds) -> StoredRun:
    """`run` with the verdict by the thresholds that the study has now: they may have been changed since it was made."""
    fidelity = judged_record(run.record["fidelity"]["record"], given)
    judged = {"verdict": fidelity.verdict, "reasons": list(fidelity.reasons), "record": dict(fidelity.record)}
    return StoredRun(run.id, run.folder, {**run.record, "fidelity": judged})
