"""How often each test that is marked ``judged`` or ``quiet`` was made again, over the last runs of the tests.

A file has a line of JSON for each run in which such tests ran: which ran, and how many of them were made again. A test
that needs it in more than one of five of the last runs kept fails the run: it is the test that is wrong then, or what
it tests. ``python tests/support/judged_runs.py`` prints the file for a reader; `.ci/run` does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

KEPT = 20
"""Runs."""
ONE_OF = 5
VARIABLE = "TWINNET_JUDGED_RUNS"
"""The environment may name another file."""


def file() -> Path:
    """Return where the runs are kept."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).parents[2] / "target" / "judged-runs.jsonl")


@dataclass(frozen=True)
class JudgedRun:
    """One run of the tests.

    Parameters
    ----------
    moment
        Of its end, in UTC.
    again
        How often each such test that ran was made again; 0 where once was enough.
    """

    moment: str
    again: Mapping[str, int]


def read(path: Path) -> list[JudgedRun]:
    """Return the runs kept, the oldest first."""
    if not path.exists():
        return []
    return [JudgedRun(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def keep(path: Path, again: Mapping[str, int]) -> list[JudgedRun]:
    """Add a run to the file, drop the oldest beyond `KEPT`, and return those that are in it now."""
    runs = [*read(path), JudgedRun(datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), dict(again))][-KEPT:]
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text("".join(json.dumps(vars(run)) + "\n" for run in runs), encoding="utf-8")
    aside.replace(path)
    return runs


def counts(runs: Sequence[JudgedRun]) -> dict[str, tuple[int, int]]:
    """Return in how many of `runs` each test was made again, and in how many it ran, of those that ever were."""
    tests = {test for run in runs for test in run.again}
    found = {
        test: (sum(run.again.get(test, 0) > 0 for run in runs), sum(test in run.again for run in runs))
        for test in tests
    }
    return dict(sorted(((test, of) for test, of in found.items() if of[0]), key=lambda one: (-one[1][0], one[0])))


def too_often(runs: Sequence[JudgedRun]) -> dict[str, str]:
    """Return the tests that were made again in more than one of five of `runs`; a single time is never too often."""
    return {
        test: f"made again in {again} of the last {ran} runs that are kept; at most one of {ONE_OF}"
        for test, (again, ran) in counts(runs).items()
        if again > max(1, ran / ONE_OF)
    }


def main() -> None:
    """Print how often each test was made again."""
    runs = read(file())
    print(f"{len(runs)} runs with judged or quiet tests are kept in {file()}")
    for test, (again, ran) in counts(runs).items():
        print(f"made again in {again} of {ran}: {test}")


if __name__ == "__main__":
    main()
