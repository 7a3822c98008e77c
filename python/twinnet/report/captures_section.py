"""The captures that a study's runs kept, as a table of its report."""

from __future__ import annotations

from twinnet.report.view import Cell, Table
from twinnet.study.analysis import Analysis

__all__ = ["captures_table"]

_HEAD = ["Run", "Port", "File", "Frames", "Not kept", "Bytes"]


def captures_table(analysis: Analysis) -> Table | None:
    """The files of all runs by their names in the results, with what they hold; `None` where no run kept any."""
    rows = [
        [
            Cell(run.id),
            Cell(str(one["port"])),
            Cell(f"{run.id}/{one['file']}", code=True),
            *(Cell(f"{one[key]}") for key in ("frames", "not_kept", "bytes")),
        ]
        for run in analysis.stored.values()
        for one in run.record["notes"].get("captures", ())
    ]
    if not rows:
        return None
    return Table(
        _HEAD, rows, 3, note=f"Read those of a run with: twinnet analyze {analysis.store.folder / rows[0][0].text}"
    )
