"""Writes a table of `twinnet send` and `twinnet recv` to a file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

__all__ = ["check_table", "write_table"]


def check_table(path: Path | None) -> None:
    """Raise `UsageError` when the name does not tell the form of the table."""
    if path is not None and path.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"the table {str(path)!r} is neither .csv nor .parquet")


def write_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any], path: Path) -> None:
    """Write `rows`; by the name's end as CSV or Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([row[name] for name in columns] for row in rows)
        return
    import polars

    polars.DataFrame(rows, schema=columns, orient="row", strict=False).write_parquet(path)
