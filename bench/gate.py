"""``python -m bench.gate PART... [--base COMMIT] [--turns N]``: is this slower than another commit, on this machine?

Both are measured by turns, a part at a time and in changing order, each from its own build. A row that is a time, a
size or a rate has a ratio for each turn, and those a 95 % interval (Student's t of their logarithms). A row is *slower*
when the whole interval lies beyond `WORSE`: such a row fails the comparison, and nothing else does. Rows that are
errors, shares or counts have no ratio that would say something: they are shown side by side.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console
from rich.table import Table
from scipy.stats import t as student

from bench import record
from bench.figure import shown

__all__ = ["WORSE", "Row", "rows_of", "slower"]

ROOT = Path(__file__).resolve().parents[1]
WORSE = 1.1
TURNS = 5
CONFIDENCE = 0.95
SMALLER_IS_BETTER = frozenset({"s", "ms", "us", "ns", "min", "B", "kB", "KiB", "ns/frame"})


@dataclass(frozen=True)
class Row:
    """A row of a part, measured by turns here and there.

    Parameters
    ----------
    name, unit
        As the part has them.
    here, there
        One value a turn.
    """

    name: str
    unit: str
    here: Sequence[float]
    there: Sequence[float]

    def worse(self) -> tuple[float, float, float] | None:
        """Return by what factor it is worse here, and the bounds of its interval; ``None`` where no ratio says that.

        Above 1 it takes longer, or carries less. With one turn the bounds are unknown: 0 and infinity.
        """
        rate = self.unit.endswith("/s")
        if not rate and self.unit not in SMALLER_IS_BETTER:
            return None
        pairs = list(zip(self.here, self.there, strict=True))
        if not pairs or any(value <= 0 for pair in pairs for value in pair):
            return None
        logs = [math.log(there / here if rate else here / there) for here, there in pairs]
        middle = fmean(logs)
        if len(logs) == 1:
            return math.exp(middle), 0.0, math.inf
        half = float(student.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
        return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def slower(row: Row) -> bool:
    """Return whether the row is certainly worse by more than `WORSE`."""
    worse = row.worse()
    return worse is not None and worse[1] > WORSE


def rows_of(
    here: Sequence[Mapping[str, record.PartRecord]], there: Sequence[Mapping[str, record.PartRecord]]
) -> list[Row]:
    """Return the rows that both have in every turn, by part and name."""

    def values(turns: Sequence[Mapping[str, record.PartRecord]]) -> dict[tuple[str, str], tuple[str, list[float]]]:
        found: dict[tuple[str, str], tuple[str, list[float]]] = {}
        for parts in turns:
            for part, measured in parts.items():
                for figure in measured.figures:
                    if figure.value is not None:
                        found.setdefault((part, figure.name), (figure.unit, []))[1].append(figure.value)
        return found

    ours, theirs = values(here), values(there)
    return [
        Row(f"{part}: {name}", unit, of_ours, theirs[part, name][1])
        for (part, name), (unit, of_ours) in ours.items()
        if (part, name) in theirs and len(of_ours) == len(theirs[part, name][1]) == len(here)
    ]


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True)


def _built(commit: str) -> Path:
    """Return a clone of this project at `commit`, built; it is kept for the next comparison."""
    folder = ROOT / "target" / "bench-gate" / commit
    if not folder.exists():
        _run(ROOT, "git", "clone", "--quiet", str(ROOT), str(folder))
        _run(folder, "git", "checkout", "--quiet", "--detach", commit)
    _run(folder, "make", "--no-print-directory", ".venv/.built")
    return folder


def _measured(folder: Path, parts: Sequence[str]) -> dict[str, record.PartRecord]:
    kept = folder / "target" / "bench-gate-turn.json"
    kept.parent.mkdir(exist_ok=True)
    kept.unlink(missing_ok=True)
    _run(folder, str(folder / ".venv/bin/python"), "-m", "bench", "--quick", "--record", str(kept), *parts)
    return record.read(kept)


def _shown(rows: Sequence[Row]) -> Table:
    table = Table("row", "unit", "here", "there", "times as bad as there", "")
    for row in rows:
        worse = row.worse()
        ratio = "" if worse is None else f"{worse[0]:.2f} [{worse[1]:.2f}, {worse[2]:.2f}]"
        table.add_row(
            row.name, row.unit, shown(fmean(row.here)), shown(fmean(row.there)), ratio, "SLOWER" if slower(row) else ""
        )
    return table


def main() -> int:
    """Compare; return 1 when a row is certainly slower here."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description="Compare with a commit, by turns.")
    parser.add_argument("parts", nargs="+", metavar="PART", help="as `python -m bench` names them")
    parser.add_argument("--base", default="HEAD~1", metavar="COMMIT", help="default: the commit before this one")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"default: {TURNS}")
    wanted = parser.parse_args()
    if wanted.turns < 1:
        parser.error("at least one turn is needed")
    named = subprocess.run(
        ["git", "rev-parse", "--short=8", f"{wanted.base}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    if named.returncode != 0:
        parser.error(f"git knows no commit {wanted.base!r}")
    base = _built(named.stdout.strip())
    here: list[dict[str, record.PartRecord]] = []
    there: list[dict[str, record.PartRecord]] = []
    for turn in range(wanted.turns):
        for kept, folder in ((here, ROOT), (there, base)) if turn % 2 == 0 else ((there, base), (here, ROOT)):
            kept.append(_measured(folder, wanted.parts))
    rows = rows_of(here, there)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(_shown(rows))
    worse = [row.name for row in rows if slower(row)]
    beyond = f"certainly more than {WORSE:g} times as bad as {named.stdout.strip()} (n = {wanted.turns} turns)"
    console.print(f"{beyond}: {'; '.join(worse)}" if worse else f"no row is {beyond}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
