"""Whether verdicts can be trusted: random small networks and studies on the wall clock, quiet and disturbed, beside
their twins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import beta

from bench.disturbances import DISTURBANCES, STRENGTHS, NotPermitted
from bench.figure import Figure
from bench.quiet import Quiet
from bench.verdict_run import case, differences, run_on
from bench.verdict_studies import plan as plan_of_studies
from bench.verdict_studies import study_runs

TITLE = "Verdict: wall-clock runs of random networks and studies beside their twins on the virtual clock"

QUIET_RUNS = 90
REPETITIONS = 3
QUICK_QUIET_RUNS = 6
QUICK_STRENGTHS = (2, 9)
SECONDS = 2
_RUNS_FILE = "TWINNET_VERDICT_RUNS"
"""The environment may name a file to which each run is added as a line of JSON."""


@dataclass(frozen=True)
class Run:
    """One run of the campaign: what was done to it, what it said of itself and what was wrong with it."""

    seed: int
    disturbance: str
    strength: int
    verdict: str
    reasons: Sequence[str]
    wrong: Sequence[str]
    study: str = ""
    """The study with its levels; empty for a random network."""
    pauses: Mapping[str, object] | None = None
    """The pauses of such a network, and the line that remembers them."""


def clopper_pearson(found: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a share of which `found` were seen `of` times.

    C. J. Clopper, E. S. Pearson, *The use of confidence or fiducial limits illustrated in the case of the binomial*,
    Biometrika 26, 1934.
    """
    if of == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = 0.0 if found == 0 else float(beta.ppf(tail, found, of - found + 1))
    high = 1.0 if found == of else float(beta.ppf(1 - tail, found + 1, of - found))
    return low, high


def one_run(seed: int, disturbance: str, strength: int, seconds: int = SECONDS) -> Run:
    """Make one run and its twin."""
    wanted = case(seed, seconds)
    make = DISTURBANCES.get(disturbance)
    wall = run_on(wanted, "wall", (lambda lab: make(lab, strength)) if make is not None else None)
    wrong = differences(wall, run_on(wanted, "virtual"), wanted.load > 0.7, wanted.frame_s)
    return Run(seed, disturbance, strength, wall.verdict, tuple(wall.reasons), tuple(wrong), pauses=wall.pauses)


def plan(quick: bool) -> list[tuple[int, str, int]]:
    """The runs of a campaign: seed, disturbance (empty for none) and strength."""
    quiet = [("", 0)] * (QUICK_QUIET_RUNS if quick else QUIET_RUNS)
    strengths = QUICK_STRENGTHS if quick else [one for one in STRENGTHS for _ in range(REPETITIONS)]
    disturbed = [(name, strength) for name in DISTURBANCES for strength in strengths]
    # By turns, so that what the machine does over time falls on both alike.
    step = max(len(disturbed) // len(quiet), 1)
    mixed: list[tuple[str, int]] = []
    for place, one in enumerate(disturbed):
        mixed.append(one)
        if place % step == 0 and quiet:
            mixed.append(quiet.pop())
    return [(seed, *one) for seed, one in enumerate([*mixed, *quiet], 1)]


def measure_campaign(quick: bool) -> Iterator[Run]:
    """Make the runs of a campaign; what this machine does not permit is passed over."""
    refused: set[str] = set()
    for seed, disturbance, strength in plan(quick):
        if disturbance in refused:
            continue
        try:
            yield one_run(seed, disturbance, strength)
        except NotPermitted:
            refused.add(disturbance)
    for seed, (study, strength) in enumerate(plan_of_studies(quick), 1):
        for name, verdict, reasons, wrong in study_runs(study, strength, seed):
            yield Run(seed, "busy programs" if strength else "", strength, verdict, reasons, wrong, name)


def figures_of(runs: Sequence[Run]) -> Iterator[Figure]:
    """The campaign's figures."""
    yield _share(
        "wrong beyond tolerance and called valid, of all runs",
        [run for run in runs if run.wrong and run.verdict == "valid"],
        runs,
        "0",
        0.01,
    )
    good = [run for run in runs if not run.wrong]
    yield _share(
        "good and called invalid, of good runs",
        [run for run in good if run.verdict == "invalid"],
        good,
        "under 5 %",
        0.05,
    )
    yield _share("good and called doubtful, of good runs", [run for run in good if run.verdict == "doubtful"], good)
    kinds = [(name, of_study) for of_study in (False, True) for name in ("", *DISTURBANCES)]
    for name, of_study in kinds:
        of = [run for run in runs if run.disturbance == name and bool(run.study) == of_study]
        if not of:
            continue
        counts = {state: sum(run.verdict == state for run in of) for state in ("valid", "doubtful", "invalid")}
        wrong = {state: sum(bool(run.wrong) and run.verdict == state for run in of) for state in counts}
        told = ", ".join(f"{counts[state]} {state} ({wrong[state]} wrong)" for state in counts)
        yield Figure(
            f"called valid: {'studies, ' if of_study else ''}{name or 'quiet'}",
            "%",
            [100 * counts["valid"] / len(of)],
            note=f"{len(of)} runs: {told}",
        )


def _share(name: str, found: Sequence[Run], of: Sequence[Run], target: str = "", most: float | None = None) -> Figure:
    low, high = clopper_pearson(len(found), len(of))
    note = f"{len(found)} of {len(of)}; 95 % interval {100 * low:.2f} to {100 * high:.2f} % (Clopper-Pearson)"
    share = len(found) / len(of) if of else 0.0
    met = None if most is None else share < most
    return Figure(name, "%", [100 * share], target=target, met=met, note=note)


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    quiet.wait()
    runs: list[Run] = []
    kept = os.environ.get(_RUNS_FILE)
    for run in measure_campaign(quick):
        runs.append(run)
        if kept:
            with Path(kept).open("a") as file:
                file.write(json.dumps(asdict(run)) + "\n")
    yield from figures_of(runs)
