"""Runs of built-in studies for the verdict's campaign: each on the wall clock, quiet or disturbed, beside its twin.

Of the studies those whose traffic has the same implementation on both clocks: datagrams and RTP. A run is wrong when
one of its measurements is farther from the virtual clock's than the tolerance that the study states for its twin.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import twinnet as tn
from twinnet.study.resolution import load_study
from twinnet.study.store import ResultStore
from twinnet.study.twin import Twin, TwinResult

from bench.disturbances import busy_programs

__all__ = ["STUDIES", "StudyRun", "study_runs"]

STUDIES = ("mtu-sweep", "multimedia-delivery")
PRESET = "tiny"

StudyRun = tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The name with its levels, the verdict, its reasons, what was wrong, and what beyond what a doubtful run promises."""


def study_runs(study: str, strength: int, seed: int) -> Iterator[StudyRun]:
    """Make the runs of `study` on both clocks; busy programs are beside the wall clock's."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"seed": seed}
        with busy_programs(strength) if strength else nullcontext():
            tn.studies.run(
                study, preset=PRESET, settings=settings, clock="wall", out=folder, with_invalid=True, progress=False
            )
        tn.studies.run(study, preset=PRESET, settings=settings, clock="virtual", out=folder, progress=False)
        twin = Twin(load_study(study, {"seed": str(seed)}, PRESET), ResultStore(Path(folder) / study))
        by_levels: dict[tuple[str, ...], list[TwinResult]] = {}
        for one in twin.results:
            by_levels.setdefault(tuple(one.levels.values()), []).append(one)
        for levels, results in by_levels.items():
            (run,) = twin.wall.runs_at(results[0].levels)
            reasons = tuple(str(reason) for reason in run.run.record["fidelity"]["reasons"])
            yield (
                f"{study} {', '.join(levels)}",
                run.run.verdict,
                reasons,
                tuple(_wrong(results)),
                tuple(_wrong(results, True)),
            )


_DOUBTFUL = {"ms": 100.0, "%": 5.0}
"""How far a figure of a doubtful run may be off in this unit, where that is more than 5 % of it."""


def _wrong(results: list[TwinResult], doubtful: bool = False) -> Iterator[str]:
    for one in results:
        if not one.wall or not one.virtual:
            # What one clock measured and the other did not.
            if one.wall or one.virtual:
                yield f"{one.measurement} {one.label}: on one clock only"
            continue
        allowed = one.allowed
        if doubtful:
            allowed = max(allowed, 0.05 * abs(one.virtual[0]), _DOUBTFUL.get(one.unit, 0.0))
        if abs(one.wall[0] - one.virtual[0]) > allowed:
            yield f"{one.measurement} {one.label}: {one.wall[0]:.6g} for {one.virtual[0]:.6g} {one.unit}"
