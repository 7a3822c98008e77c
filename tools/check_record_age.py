"""Check that what the benchmarks have on record is not long out of date: ``python tools/check_record_age.py [RECORD]``.

Each part of ``bench`` names the files that it measures (``MEASURES``). A part is too old when more than `MOST_COMMITS`
commits lie between the commit at which it was measured and the newest commit that changed one of those files. A part
that was never measured is too old, too.

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


def faults(
    root: Path, parts: Mapping[str, Measured], measures: Mapping[str, Sequence[str]], most: int = MOST_COMMITS
) -> list[str]:
    """Return what is wrong with the record: a line for each part of `measures` that is absent or too old."""
    found: list[str] = []
    for name, paths in measures.items():
        part = parts.get(name)
        if part is None:
            found.append(f"{name}: not measured")
            continue
        try:
            behind = commits_behind(root, part, paths)
        except ValueError as error:
            found.append(f"{name}: {error}")
            continue
        if behind > most:
            found.append(
                f"{name}: measured at {part.commit}, {behind} commits before the newest change of what it is of"
            )
    return found


def main() -> int:
    """Print each part that is too old; return 1 when there is one."""
    sys.path.insert(0, str(ROOT))
    from bench.__main__ import PARTS
    from bench.performance_page import RECORD
    from bench.record import read

    parser = argparse.ArgumentParser(description="Check that the record of the benchmarks is not too old.")
    parser.add_argument("record", nargs="?", type=Path, default=RECORD, metavar="RECORD")
    wanted = parser.parse_args()
    measures = {name: importlib.import_module(f"bench.{name}").MEASURES for name in PARTS}
    found = faults(ROOT, read(wanted.record), measures)
    if found:
        print("\n".join(found))
        print(f"at most {MOST_COMMITS} commits: measure anew with make bench PARTS=NAME RECORD={wanted.record}")
        return 1
    print(f"{len(measures)} parts, none more than {MOST_COMMITS} commits older than what it measures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
