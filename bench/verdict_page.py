"""What a page says of the newest campaign of the verdict: :func:`newest` writes it from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.disturbances import DISTURBANCES
from bench.verdict import RECORD, clopper_pearson, kind_of
from bench.verdict_record import Run, Session, read

__all__ = ["campaign_in_words", "newest"]

_STATES = ("valid", "doubtful", "invalid")


def newest(path: Path = RECORD) -> str:
    """Return what the record's last campaign says: all sessions of the commit and thresholds of the last one, and
    those after it that ran some shapes again."""
    sessions = read(path)
    last = [one for one in sessions if not one.shapes][-1]
    alike = [one for one in sessions if not one.shapes and _version(one) == _version(last)]
    told = campaign_in_words(last, [run for one in alike for run in sessions[one]])
    for again in list(sessions)[list(sessions).index(last) + 1 :]:
        told += f"\n*Again, {' and '.join(again.shapes)} only:* " + campaign_in_words(again, sessions[again]).lstrip()
    return told


def _version(session: Session) -> tuple[str, str]:
    return session.commit, session.thresholds


def campaign_in_words(session: Session, runs: Sequence[Run]) -> str:
    """Return `runs`, of which `session` tells when and where they were made, as a paragraph, a table and shares."""
    lines = [
        "",
        f"{len(runs)} runs, begun {session.begin} UTC at commit {session.commit}, on {session.machine['cpu']}, kernel"
        f" {session.machine['kernel']}. The session drew the seed {session.seed}, and the thresholds have the hash"
        f" {session.thresholds}.",
        "",
        "| | runs | seen by its counter | valid | doubtful | invalid | wrong of the valid, 95 % |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in sorted({kind_of(run) for run in runs}):
        of_kind = [run for run in runs if kind_of(run) == kind]
        for name in ("", *DISTURBANCES, "a slow receiver"):
            if of := [run for run in of_kind if run.disturbance == name]:
                lines.append(_row(f"{kind}, {name or 'left alone'}", of, bool(name)))
    lines += ["", *_shares(runs), ""]
    return "\n".join(lines)


def _row(name: str, of: Sequence[Run], disturbed: bool) -> str:
    count, wrong = Counter(run.verdict for run in of), Counter(run.verdict for run in of if run.wrong)
    seen = str(sum(run.seen > 0 for run in of)) if disturbed else ""
    states = " | ".join(f"{count[state]}{f' ({wrong[state]} wrong)' if wrong[state] else ''}" for state in _STATES)
    low, high = clopper_pearson(wrong["valid"], count["valid"])
    return f"| {name} | {len(of)} | {seen} | {states} | {100 * low:.0f} to {100 * high:.0f} % |"


def _shares(runs: Sequence[Run]) -> list[str]:
    valid = [run for run in runs if run.verdict == "valid"]
    disturbed = [run for run in valid if run.disturbance]
    good = [run for run in runs if not run.wrong]
    known = [run for run in runs if run.beyond is not None]
    beyond = [run for run in known if run.verdict == "doubtful" and run.beyond]
    shares = [
        ("Wrong and called valid, of all runs (goal: none)", [run for run in valid if run.wrong], runs),
        ("Wrong, of those called valid", [run for run in valid if run.wrong], valid),
        ("Wrong, of disturbed runs that were called valid", [run for run in disturbed if run.wrong], disturbed),
        ("Good and called invalid (goal: under 5 %)", [run for run in good if run.verdict == "invalid"], good),
        ("Good and called doubtful", [run for run in good if run.verdict == "doubtful"], good),
    ]
    if known:
        shares.insert(3, ("Beyond what a doubtful run promises and called doubtful (goal: none)", beyond, known))
    told: list[str] = []
    for name, found, of in shares:
        low, high = clopper_pearson(len(found), len(of))
        told.append(f"- {name}: {len(found)} of {len(of)} ({100 * low:.1f} to {100 * high:.1f} %, Clopper-Pearson).")
    return told
