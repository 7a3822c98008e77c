"""The contents of a page before it is markup: tables of cells. Only templates make HTML of it, and they escape its
text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Cell", "Table", "interval_cell"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes
    ----------
    text
        What stands in it.
    soft
        What follows in a paler colour, such as an interval.
    kind
        The classes of its text, such as ``verdict supported``.
    code
        Whether it is a name of a file or a setting.
    link
        Where a name leads to, beside the page.
    """

    text: str
    soft: str = ""
    kind: str = ""
    code: bool = False
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its heading.

    Attributes
    ----------
    head
        The titles of the columns; none when all are empty.
    rows
        The rows; text stands for a plain cell.
    right_from
        The first column that is aligned right.
    title, note
        A heading above it, and a sentence below that.
    level
        Of the heading: 3 or 4.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]] = field(default=())
    right_from: int = 99
    title: str = ""
    note: str = ""
    level: int = 3


def interval_cell(shown: str) -> Cell:
    """A number with its interval, such as ``480 [470, 490]``, the interval paler than the number."""
    number, bracket, rest = shown.partition(" [")
    return Cell(number, bracket.strip() + rest)
