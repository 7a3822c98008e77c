"""Tell how old what the benchmarks have on record is: ``python tools/check_record_age.py [RECORD]``.

Each part of ``bench`` names the files that it measures (``MEASURES``). It is behind by the commits between the one at
which it was measured and the newest that changed one of those files. A part that is behind by more than `MOST_COMMITS`
or was never measured is named, with exit status 1. `make docs` puts the same numbers on the page of performance.

A record may name a commit that was rebased since, and is in no clone: then the commits since the moment of the
measurement count. In a shallow clone neither can be counted. The check fails there, and says how to get the history.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[1]
MOST_COMMITS = 300


class Measured(Protocol):
    """What the check needs to know of a part that is on record."""

    @property
    def commit(self) -> str:
        """What was measured; with ``+`` when files differed from it."""
        ...

    @property
    def begin(self) -> str:
        """When, in UTC."""
        ...


def git(root: Path, *arguments: str) -> str:
    """Return what git says; raises `subprocess.CalledProcessError` when it fails."""
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def commits_behind(root: Path, part: Measured, paths: Sequence[str]) -> int:
    """Return how many commits lie between what was measured and the newest change of `paths`.

    Raises `ValueError` when git has no such path, or too little history.
    """
    newest = git(root, "log", "-1", "--format=%H", "--", *paths)
    if not newest:
        raise ValueError(f"git knows no change of {', '.join(paths)}")
    commit = part.commit.removesuffix("+")
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=root, capture_output=True, check=False
    )
    if known.returncode == 0:
        return int(git(root, "rev-list", "--count", f"{commit}..{newest}"))
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise ValueError(f"this clone is shallow and ends before {commit}: git fetch --unshallow")
    return int(git(root, "rev-list", "--count", f"--since={part.begin} +0000", newest))


def ages(
    root: Path, parts: Mapping[str, Measured], measures: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, int | str]]:
    """Return where each part of `measures` was measured and its commits behind, or why they are unknown."""
    found: dict[str, tuple[str, int | str]] = {}
    for name, paths in measures.items():
        part = parts.get(name)
        if part is None:
            found[name] = "", "not measured"
            continue
        try:
            found[name] = part.commit, commits_behind(root, part, paths)
        except ValueError as error:
            found[name] = part.commit, str(error)
        except (OSError, subprocess.CalledProcessError):
            found[name] = part.commit, "unknown: git has no history of these sources"
    return found


def faults(found: Mapping[str, tuple[str, int | str]], most: int = MOST_COMMITS) -> list[str]:
    """Return what is wrong with the record: a line for each part that is absent or too old."""
    return [
        f"{name}: {age}"
        if isinstance(age, str)
        else f"{name}: measured at {commit}, {age} commits before the newest change of what it is of"
        for name, (commit, age) in found.items()
        if isinstance(age, str) or age > most
    ]


def table(found: Mapping[str, tuple[str, int | str]]) -> str:
    """Return a table in Markdown of the commits by which each part is behind."""
    rows = [f"| `{name}` | {commit} | {age} |" for name, (commit, age) in found.items()]
    return "\n".join(["| part | measured at | commits behind |", "|---|---|---:|", *rows])


def of_record(record: Path | None = None) -> dict[str, tuple[str, int | str]]:
    """Return the ages of all parts in `record`, or in the one of the page of performance."""
    sys.path.insert(0, str(ROOT))
    from bench.__main__ import PARTS
    from bench.performance_page import RECORD
    from bench.record import read

    measures = {name: importlib.import_module(f"bench.{name}").MEASURES for name in PARTS}
    return ages(ROOT, read(record or RECORD), measures)


def main() -> int:
    """Print by how much each part is behind; return 1 when one is too old."""
    parser = argparse.ArgumentParser(description="Tell how old the record of the benchmarks is.")
    parser.add_argument("record", nargs="?", type=Path, metavar="RECORD")
    wanted = parser.parse_args()
    all_ages = of_record(wanted.record)
    print(table(all_ages))
    found = faults(all_ages)
    if found:
        print("\n".join(found))
        record = wanted.record or "bench/records/performance.json"
        print(f"at most {MOST_COMMITS} commits: measure anew with make bench PARTS=NAME RECORD={record}")
        return 1
    print(f"{len(all_ages)} parts, none more than {MOST_COMMITS} commits older than what it measures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
