"""The results of validation, as a table for people and as records for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from twinnet_validation.law import Law, Row

__all__ = ["HEAD", "Finding", "cells", "print_findings", "records", "worded_number"]

Finding = tuple[Law, Sequence[Row]]

HEAD = ("setting", "quantity", "expected", "seen", "tolerance", "verdict")


def worded_number(value: float) -> str:
    """Return `value` with five digits; whole numbers as they are."""
    if float(value).is_integer() and abs(value) < 1e16:
        return str(int(value))
    return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of `row` in the order of `HEAD`."""
    quantity = f"{row.quantity} ({row.unit})" if row.unit else row.quantity
    seen = worded_number(row.seen)
    if row.interval is not None:
        seen += f" [{worded_number(row.interval[0])}, {worded_number(row.interval[1])}]"
    expected = "-" if row.expected is None else worded_number(row.expected)
    return row.setting, quantity, expected, seen, row.tolerance, "holds" if row.passed else "FAILS"


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print one table of all laws, and how many rows hold."""
    table = Table("law", *HEAD)
    for law, rows in findings:
        for row in rows:
            table.add_row(law.title, *cells(row))
        table.add_section()
    console.print(table)
    every = [row for _, rows in findings for row in rows]
    console.print(f"{sum(row.passed for row in every)} of {len(every)} hold.")


def records(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return a record of each row."""
    return [{"law": law.name, **vars(row)} for law, rows in findings for row in rows]
