"""Keep what the tests gave that do not decide in the gate: ``python tools/test_record.py DOOR=RESULT ...``.

DOOR is ``wall`` or ``long``, RESULT the file that ``TWINNET_TEST_RESULT`` named while they ran; `make test-record` does
all. For each a line is added to `bench/records/tests.jsonl`, and the table in `CONTRIBUTING.md` is made anew from it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["RECORD", "Run", "read", "table", "with_table"]

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "records" / "tests.jsonl"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- tests -->\n", "<!-- end of tests -->\n"
SHOWN = 10
_LOOPS = 1_000_000


@dataclass(frozen=True)
class Run:
    """One run of the tests behind a door.

    Parameters
    ----------
    moment
        Of its end, in UTC.
    commit
        What was tested; with ``+`` where files differed from it.
    door
        ``wall`` or ``long``.
    speed
        Of the machine: millions of turns of an empty loop of Python a second, the median of five.
    passed
        How many tests.
    failed
        What each failure said last.
    repeated
        What each failure said before a test was made again.
    skipped
        The reasons.
    """

    moment: str
    commit: str
    door: str
    speed: float
    passed: int
    failed: dict[str, str]
    repeated: dict[str, list[str]]
    skipped: dict[str, str]


def read() -> list[Run]:
    """Return the runs on record, the oldest first."""
    if not RECORD.exists():
        return []
    return [Run(**json.loads(line)) for line in RECORD.read_text(encoding="utf-8").splitlines()]


def table(runs: Sequence[Run]) -> str:
    """Return the newest runs as a table of Markdown."""
    rows = ["| end, UTC | commit | door | speed | passed | failed | made again | skipped |", "|---" * 8 + "|"]
    rows += [
        f"| {run.moment} | {run.commit} | {run.door} | {run.speed:.1f} | {run.passed} | {len(run.failed)} "
        f"| {len(run.repeated)} | {len(run.skipped)} |"
        for run in reversed(runs[-SHOWN:])
    ]
    return "\n".join(rows) + "\n"


def with_table(page: str, runs: Sequence[Run]) -> str:
    """Return `page` with the table of `runs` between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(runs)}\n{END}{after}"


def _speed() -> float:
    def once() -> float:
        began = time.perf_counter()
        for _ in range(_LOOPS):
            pass
        return _LOOPS / (time.perf_counter() - began) / 1e6

    return round(statistics.median(once() for _ in range(5)), 1)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(results: Sequence[str]) -> None:
    """Add a run for each DOOR=RESULT, and make the table anew."""
    commit = _git("rev-parse", "--short=8", "HEAD") + "+" * bool(_git("status", "--porcelain", "--untracked-files=no"))
    speed, runs = _speed(), list[Run]()
    for door, _, path in (one.partition("=") for one in results):
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        moment = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M")
        failed = {test: said.splitlines()[-1] if said else "" for test, said in found["failed"].items()}
        runs.append(Run(moment, commit, door, speed, found["passed"], failed, found["repeated"], found["skipped"]))
    with RECORD.open("a", encoding="utf-8") as record:
        record.writelines(json.dumps(asdict(run)) + "\n" for run in runs)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
    print(table(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
