"""Aligned tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table"]


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
