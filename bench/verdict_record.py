"""The record of the verdict's campaign: a file of JSON lines to which runs are added as they are made.

A session's line comes first, with the seed that it drew, the commit, the machine and the thresholds that were in force
before it; the lines of its runs follow.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from twinnet.results.fidelity import Thresholds

from bench.machine import describe
from bench.record import commit, now

__all__ = ["Run", "Session", "add", "begin", "read", "thresholds_in_force"]


@dataclass(frozen=True)
class Session:
    """Runs that were made one after the other.

    Parameters
    ----------
    seed
        What was drawn, and what all of its runs follow from.
    commit
        What was judged; with ``+`` when files differed from it.
    thresholds
        A hash of the thresholds.
    begin
        When, in UTC.
    machine
        What `bench.machine.describe` said, and the thresholds themselves.
    shapes
        The only shapes of traffic that were run; none: all.
    """

    seed: str
    commit: str
    thresholds: str
    begin: str
    machine: Mapping[str, str] = field(hash=False)
    shapes: Sequence[str] = field(default=(), hash=False)


@dataclass(frozen=True)
class Run:
    """One run: what was done to it, what it said of itself and what was wrong with it.

    Parameters
    ----------
    session, seed
        The seeds of its session and of itself.
    shape, case
        The kind of its traffic, and the case in words.
    disturbance, strength
        What was done to it (empty for nothing), and how strongly.
    verdict, reasons
        What it said of itself.
    wrong
        What was off by more than the tolerance.
    beyond
        What was off by more than a doubtful run may be; ``None`` in records of before it promised anything.
    seen
        The figure of its record in which the disturbance shows.
    record
        The record of fidelity, as far as the verdict looks at it.
    """

    session: str
    seed: str
    shape: str
    case: str
    disturbance: str
    strength: int
    verdict: str
    reasons: Sequence[str]
    wrong: Sequence[str]
    seen: float = 0.0
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])
    beyond: Sequence[str] | None = None

    def of(self, session: Session) -> Run:
        """Return it as one of `session`."""
        return replace(self, session=session.seed)


def thresholds_in_force() -> str:
    """Return a hash of the thresholds as they are now."""
    return hashlib.sha256(repr(Thresholds()).encode()).hexdigest()[:16]


def begin(seed: str, shapes: Sequence[str] = ()) -> Session:
    """Return a session that begins now."""
    machine = describe() | {"thresholds": repr(Thresholds())}
    return Session(seed, commit(), thresholds_in_force(), now(), machine, shapes)


def add(path: Path, one: Session | Run) -> None:
    """Add a line to the record. Where this machine keeps its Python is nobody's concern: programs that run by it are
    named as it is."""
    line = json.dumps({type(one).__name__.lower(): asdict(one)})
    with path.open("a", encoding="utf-8") as file:
        file.write(line.replace(json.dumps(sys.executable)[1:-1], Path(sys.executable).name) + "\n")


def read(path: Path) -> dict[Session, list[Run]]:
    """Return the runs of each session; none where there is no file. A line that was cut off is passed over."""
    sessions: dict[str, Session] = {}
    runs: dict[Session, list[Run]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if "session" in told:
            session = Session(**told["session"])
            sessions[session.seed] = session
            runs[session] = []
        else:
            run = Run(**told["run"])
            runs[sessions[run.session]].append(run)
    return runs
