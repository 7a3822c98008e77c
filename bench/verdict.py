"""Whether verdicts can be trusted: random small networks on the wall clock, quiet and disturbed, beside what is right.

``python -m bench.verdict --runs 600 --minutes 40 --record bench/records/verdict.jsonl`` adds runs to a record, as many
as the time permits; more can be added at any time. Nobody chooses what is run: each session draws its seed, which the
record tells with the commit, the machine and the thresholds that were in force before it.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import twinnet as tn
from rich.console import Console
from scipy.stats import beta

from bench.disturbances import DISTURBANCES, OF_APPS, OF_PROGRAMS, SEEN_BY, STRENGTHS, NotPermitted
from bench.figure import Figure, print_figures
from bench.quiet import Quiet
from bench.verdict_programs import SHAPES, available, make, program_case, reference
from bench.verdict_programs import differences as program_differences
from bench.verdict_record import Run, Session, add, begin, read
from bench.verdict_run import DOUBTFUL, case, differences, run_on
from bench.verdict_studies import STUDIES, study_runs

TITLE = "Verdict: wall-clock runs of random networks beside what is right"
RECORD = Path(__file__).resolve().parent / "records" / "verdict.jsonl"
RUNS = 600
QUICK_RUNS = 24
DATAGRAMS = "datagrams"
"""The shape of a run that both clocks make: datagrams and pings by our own apps."""
BLOCK = 30
_QUIET_OF_DATAGRAMS, _QUIET_OF_PROGRAMS = 6, 3
_MILD = tuple(1 / strength for strength in STRENGTHS)
"""How likely each strength is: a verdict is hardest where a run is hardly disturbed."""


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


Planned = tuple[str, str, int]
"""The shape of a run, its disturbance (empty for none) and how strong that is."""


def plan(seed: str) -> Iterator[Planned]:
    """The runs of a session, without end. Each 30 of them are 20 with datagrams and 10 with TCP and programs, in an
    order that is drawn, so that what the machine does over time falls on all alike."""
    draw = random.Random(seed)
    while True:
        block: list[Planned] = [(DATAGRAMS, "", 0)] * _QUIET_OF_DATAGRAMS
        lab = [name for name in DISTURBANCES if name not in OF_PROGRAMS]
        for number in range(BLOCK * 2 // 3 - _QUIET_OF_DATAGRAMS):
            block.append((DATAGRAMS, lab[number % len(lab)], _strength(draw)))
        for _ in range(_QUIET_OF_PROGRAMS):
            block.append((draw.choice(SHAPES), "", 0))
        names = [name for name in (*DISTURBANCES, *OF_PROGRAMS) if name not in OF_APPS]
        for name in draw.sample(list(dict.fromkeys(names)), BLOCK // 3 - _QUIET_OF_PROGRAMS):
            # A slow receiver is one that counts; only TCP by our own apps has no program.
            shapes = ("counted", "ffmpeg") if name == "a slow receiver" else SHAPES
            if name in OF_PROGRAMS:
                shapes = tuple(shape for shape in shapes if shape != "tcp")
            block.append((draw.choice(shapes), name, _strength(draw)))
        draw.shuffle(block)
        yield from block


def _strength(draw: random.Random) -> int:
    return draw.choices(STRENGTHS, weights=_MILD)[0]


def one_run(seed: str, planned: Planned, seconds: float | None = None) -> Run | None:
    """Make one run and what it is compared with; ``None`` where there is nothing to compare it with, or its record does
    not cover it.

    Raises
    ------
    NotPermitted
        This machine does not let the disturbance be made, or has not the program.
    """
    shape, disturbance, strength = planned
    if not available(shape):
        raise NotPermitted(f"this machine has no {shape}")
    if shape == DATAGRAMS:
        return _run_of_datagrams(seed, planned, seconds)
    wanted = program_case(seed, shape)
    disturbing = DISTURBANCES.get(disturbance)
    right = reference(wanted)
    if right is None:
        return None
    slow = 0.5 + strength / 4 if disturbance == "a slow receiver" else 0.0
    around = None if disturbing is None else lambda lab: disturbing(lab, strength, wanted.seconds)
    run = make(wanted, around, slow)
    wrong, beyond = (tuple(program_differences(run.measured, right, doubtful=of)) for of in (False, True))
    return _told(seed, planned, str(wanted), run.verdict, run.reasons, wrong, beyond, run.record)


def _run_of_datagrams(seed: str, planned: Planned, seconds: float | None) -> Run | None:
    _, disturbance, strength = planned
    wanted = case(seed, seconds)
    disturbing = DISTURBANCES.get(disturbance)
    around = None if disturbing is None else lambda lab: disturbing(lab, strength, wanted.seconds)
    wall = run_on(wanted, "wall", around)
    if not wall.covered:
        return None
    right = run_on(wanted, "virtual")
    wrong, beyond = (
        tuple(differences(wall, right, wanted.load > 0.7, wanted.frame_s, limits, wanted.seconds))
        for limits in (None, DOUBTFUL)
    )
    return _told(seed, planned, str(wanted), wall.verdict, wall.reasons, wrong, beyond, wall.record)


def _told(
    seed: str,
    planned: Planned,
    text: str,
    verdict: str,
    reasons: Sequence[str],
    wrong: Sequence[str],
    beyond: Sequence[str],
    record: object,
) -> Run:
    shape, disturbance, strength = planned
    told = dict(record) if isinstance(record, dict) else {}
    seen_by = SEEN_BY.get(disturbance)
    seen = seen_by(tn.FidelityRecord.from_spec(told)) if seen_by is not None else 0.0
    said = (verdict, tuple(reasons), tuple(wrong), seen, told, tuple(beyond))
    return Run("", seed, shape, text, disturbance, strength, *said)


STUDY = "study"
"""The shape of a run of a built-in study."""


def _runs_of_studies(session: Session, rounds: int) -> Iterator[Run]:
    """The runs of studies that are drawn, a third of them left alone and the others beside busy programs."""
    draw = random.Random(f"{session.seed}/studies")
    for number in range(rounds):
        study = draw.choice(STUDIES)
        strength = draw.choice((0, *STRENGTHS[::5]))
        for name, verdict, reasons, wrong, beyond in study_runs(study, strength, draw.getrandbits(31)):
            seed, disturbance = f"{session.seed}/studies/{number}", "busy programs" if strength else ""
            run = Run(session.seed, seed, STUDY, name, disturbance, strength, verdict, reasons, wrong)
            yield replace(run, beyond=beyond)


def campaign(
    runs: int, minutes: float, path: Path, say: Console | None = None, studies: int = 0, shapes: Sequence[str] = ()
) -> list[Run]:
    """Add at most `runs` runs to the record at `path`, within `minutes`, and then those of `studies` rounds of studies;
    return those that were added. With `shapes`, only planned runs of these are made."""
    session = begin(f"{secrets.randbits(64):016x}", shapes)
    add(path, session)
    made: list[Run] = []
    refused: set[tuple[str, str]] = set()
    end = time.monotonic() + 60 * minutes
    for number, planned in enumerate(plan(session.seed)):
        if len(made) >= runs or time.monotonic() >= end:
            break
        if (planned[0], planned[1]) in refused or (shapes and planned[0] not in shapes):
            continue
        try:
            run = one_run(f"{session.seed}/{number}", planned)
        except NotPermitted as error:
            refused.add((planned[0], planned[1]))
            if say is not None:
                say.print(f"[yellow]{planned[0]}, {planned[1]}: {error}[/]")
            continue
        if run is not None:
            run = run.of(session)
            add(path, run)
            made.append(run)
            if say is not None and (run.wrong or len(made) % 10 == 0):
                what = f"{run.shape}, {run.disturbance or 'quiet'}, {run.verdict}; {'; '.join(run.wrong)}"
                say.print(f"{len(made)}: {what}", highlight=False)
    for run in _runs_of_studies(session, studies):
        add(path, run)
        made.append(run)
    return made


def figures_of(runs: Sequence[Run]) -> Iterator[Figure]:
    """The campaign's figures."""
    wrong_and_valid = [run for run in runs if run.wrong and run.verdict == "valid"]
    yield _share("wrong beyond tolerance and called valid, of all runs", wrong_and_valid, runs, "0", 0)
    disturbed = [run for run in runs if run.disturbance and run.verdict == "valid"]
    found = [run for run in disturbed if run.wrong]
    yield _share("wrong, of disturbed runs that are called valid", found, disturbed, "0", 0)
    if known := [run for run in runs if run.beyond is not None]:
        found = [run for run in known if run.verdict == "doubtful" and run.beyond]
        yield _share("beyond what a doubtful run promises and called doubtful, of all runs", found, known, "0", 0)
    good = [run for run in runs if not run.wrong]
    found = [run for run in good if run.verdict == "invalid"]
    yield _share("good and called invalid, of good runs", found, good, "under 5 %", 0.05)
    yield _share("good and called doubtful, of good runs", [run for run in good if run.verdict == "doubtful"], good)
    for kind in (DATAGRAMS, "TCP and programs", STUDY):
        of_kind = [run for run in runs if kind_of(run) == kind]
        for name in ("", *DISTURBANCES, "a slow receiver"):
            of = [run for run in of_kind if run.disturbance == name]
            if of:
                yield _row(f"called valid: {kind}, {name or 'quiet'}", of, bool(name) and kind != STUDY)


def kind_of(run: Run) -> str:
    """Return what is counted together."""
    return run.shape if run.shape in (DATAGRAMS, STUDY) else "TCP and programs"


def _row(name: str, of: Sequence[Run], disturbed: bool) -> Figure:
    counts = Counter(run.verdict for run in of)
    wrong = Counter(run.verdict for run in of if run.wrong)
    told = ", ".join(f"{counts[state]} {state} ({wrong[state]} wrong)" for state in ("valid", "doubtful", "invalid"))
    low, high = clopper_pearson(wrong["valid"], counts["valid"])
    seen = f"; seen by its counter in {sum(run.seen > 0 for run in of)}" if disturbed else ""
    note = f"{len(of)} runs: {told}; wrong of those called valid {100 * low:.1f} to {100 * high:.1f} %{seen}"
    return Figure(name, "%", [100 * counts["valid"] / len(of)], note=note)


def _share(name: str, found: Sequence[Run], of: Sequence[Run], target: str = "", most: float | None = None) -> Figure:
    low, high = clopper_pearson(len(found), len(of))
    note = f"{len(found)} of {len(of)}; 95 % interval {100 * low:.2f} to {100 * high:.2f} % (Clopper-Pearson)"
    share = len(found) / len(of) if of else 0.0
    met = None if most is None else (share < most if most else not found)
    return Figure(name, "%", [100 * share], target=target, met=met, note=note)


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures of runs that are made now; those of a whole campaign are added to its record."""
    quiet.wait()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.jsonl" if quick else RECORD
        yield from figures_of(campaign(QUICK_RUNS if quick else RUNS, 24 * 60, path))


def main() -> int:
    """Add runs to a record, or show what it has."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdict", description=TITLE)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs to add at most; 0 only shows the record")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="time to add runs in")
    parser.add_argument("--record", type=Path, default=RECORD, help="the record that they are added to")
    parser.add_argument("--studies", type=int, default=0, help="rounds of built-in studies to add after them")
    parser.add_argument("--shapes", nargs="+", default=(), choices=(DATAGRAMS, *SHAPES), help="only runs of these")
    wanted = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    if wanted.runs or wanted.studies:
        campaign(wanted.runs, wanted.minutes, wanted.record, console, wanted.studies, wanted.shapes)
    sessions = read(wanted.record)
    # What was measured by other thresholds, or by other code, says nothing of these.
    for (commit, thresholds), of in _by_version(sessions).items():
        title = f"{TITLE}: commit {commit}, thresholds {thresholds}, {len(of)} sessions"
        print_figures(console, title, list(figures_of([run for session in of for run in sessions[session]])))
    return 0


def _by_version(sessions: dict[Session, list[Run]]) -> dict[tuple[str, str], list[Session]]:
    found: dict[tuple[str, str], list[Session]] = {}
    for session in sessions:
        found.setdefault((session.commit, session.thresholds), []).append(session)
    return found


if __name__ == "__main__":
    sys.exit(main())
