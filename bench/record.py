"""What was measured, kept: every repetition of every figure, with the commit, the machine and the settings.

A record is a file of JSON under ``bench/records``. Each part in it has its own commit, date and machine, so that a
part can be measured anew alone; docs/explanation/performance.md is made of it (`bench.performance_page`).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figure import Figure

__all__ = ["FORMAT", "PartRecord", "Processors", "commit", "joined", "read", "write"]

FORMAT = 1
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class PartRecord:
    """One part as it was measured.

    Parameters
    ----------
    title
        The heading of its table.
    commit
        What was measured; with ``+`` when files differed from it.
    begin
        When, in UTC.
    seconds
        How long it took.
    quick
        Whether it was the short form.
    machine
        What `bench.machine.describe` said.
    others_percent
        Share of the machine that others took before each measurement.
    stolen_percent
        Share that the hypervisor took while the part ran, as the kernel counts it; ``None`` when nobody counted.
    failure
        Why the part was not measured to its end; empty when it was.
    figures
        What was measured.
    rows
        Of a part that is measured in pieces, the rows that were; empty where it was measured at once.
    """

    title: str
    commit: str
    begin: str
    seconds: float
    quick: bool
    machine: Mapping[str, str]
    others_percent: Sequence[float]
    stolen_percent: float | None
    failure: str
    figures: Sequence[Figure]
    rows: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {**vars(self), "figures": [figure.to_json() for figure in self.figures]}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PartRecord:
        """Return the part that `to_json` told."""
        figures = [Figure.from_json(one) for one in told["figures"]]
        return replace(cls(**told), figures=figures, rows=tuple(told.get("rows", ())))


def joined(before: PartRecord | None, piece: PartRecord, all_rows: Sequence[str]) -> PartRecord:
    """Return the part of which `piece` has some rows, with those that `before` has of it at the same commit. Rows that
    are missing still are told as its failure."""
    pieces = [piece]
    if before is not None and before.rows and (before.commit, before.quick) == (piece.commit, piece.quick):
        pieces = [before, piece]
    rows = [row for one in pieces for row in one.rows]
    missing = [row for row in all_rows if row not in rows]
    seconds = sum(one.seconds for one in pieces)
    stolen = sum(one.seconds * (one.stolen_percent or 0.0) for one in pieces)
    return replace(
        piece,
        begin=pieces[0].begin,
        seconds=round(seconds, 1),
        others_percent=[share for one in pieces for share in one.others_percent],
        stolen_percent=round(stolen / seconds, 2) if seconds else piece.stolen_percent,
        failure=piece.failure or (f"not measured yet: {', '.join(missing)}" if missing else ""),
        figures=[figure for one in pieces for figure in one.figures],
        rows=tuple(rows),
    )


def read(path: Path) -> dict[str, PartRecord]:
    """Return the parts in a record by their names; none when there is no file."""
    if not path.exists():
        return {}
    told = json.loads(path.read_text(encoding="utf-8"))
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} has format {told.get('format')!r}; this version reads {FORMAT}: measure anew")
    return {name: PartRecord.from_json(part) for name, part in told["parts"].items()}


def write(path: Path, parts: Mapping[str, PartRecord]) -> None:
    """Write aside, then rename: an interruption loses no part that was measured."""
    told = {"format": FORMAT, "parts": {name: part.to_json() for name, part in parts.items()}}
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def commit() -> str:
    """Return the commit of the files here, with ``+`` when they were changed since; ``unknown`` outside of a clone."""
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if told.returncode != 0:
        return "unknown"
    # A record that is being written is no change of what is measured.
    changes = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/records", ":!docs"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() + ("+" if changes.stdout.strip() else "")


def now() -> str:
    """Return the moment as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


class Processors:
    """What a hypervisor has taken of the machine since this was made."""

    def __init__(self) -> None:
        self._before = self._ticks()

    @staticmethod
    def _ticks() -> tuple[int, int]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return ticks[7], sum(ticks)

    @property
    def stolen_percent(self) -> float:
        """The stolen share of all processors' time."""
        stolen, total = (now - then for now, then in zip(self._ticks(), self._before, strict=True))
        return 100 * stolen / total if total else 0.0
