"""How commands print: aligned tables for people, one JSON value for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

__all__ = ["json_option", "print_json", "table"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that every command has."""


def print_json(value: Any) -> None:
    """Print `value` as one line of JSON."""
    click.echo(json.dumps(value, ensure_ascii=False))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return `rows` under `head` in aligned columns; columns of numbers are aligned to the right.

    Examples
    --------
    >>> print(table(["name", "bytes"], [["a", 5], ["bc", 1000]]))
    name  bytes
    a         5
    bc     1000
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head), *cells]) for i in range(len(head))]
    right = [bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(head))]
    lines: list[str] = []
    for row in [list(head), *cells]:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
