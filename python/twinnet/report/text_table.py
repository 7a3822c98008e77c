"""Text for a terminal: aligned tables and paragraphs that fit its width."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

__all__ = ["PIPE_COLUMNS", "table", "terminal_columns", "wrapped"]

_GAP = 2
_MOST_UNBROKEN = 40


PIPE_COLUMNS = 100
"""The width of tables that hold sentences where the output is no terminal. Tables of numbers keep one line for each
row there, so that programs can read them."""


def terminal_columns(stream: TextIO | None = None) -> int | None:
    """Return the width of the terminal that `stream` (default: standard output) is. Of a file or a pipe it is what
    ``COLUMNS`` says, or ``None``: it takes lines of any length."""
    chosen = stream or sys.stdout
    if chosen.isatty():
        return shutil.get_terminal_size().columns if stream is None else os.get_terminal_size(chosen.fileno()).columns
    wanted = os.environ.get("COLUMNS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) > 0 else None


def wrapped(text: str, width: int | None, hanging: int = 4) -> str:
    """Return `text` with lines that are longer than `width` broken between words, the rest indented by `hanging`.

    Examples
    --------
    >>> print(wrapped("h1: host with a long line\\n  b", 16))
    h1: host with a
        long line
      b
    """
    if width is None:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hanging)
        # A word that is longer than the line (a path) stays whole, so that it can be copied.
        lines += (
            textwrap.wrap(
                line,
                width,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
                drop_whitespace=True,
            )
            or [""]
            if len(line) > width
            else [line]
        )
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> str:
    """Return `rows` under `head` in aligned columns; columns of numbers are aligned to the right.

    Where the columns do not fit into `width`, cells are broken between words; where that is not enough, the table is
    printed in parts below each other, each with the first column.

    Examples
    --------
    >>> print(table(["name", "bytes"], [["a", 5], ["bc", 1000]]))
    name  bytes
    a         5
    bc     1000
    >>> print(table(["name", "sent bytes", "lost"], [["a", 5, 0]], width=17))
           sent
    name  bytes  lost
    a         5     0
    >>> print(table(["name", "bytes", "lost"], [["a", 5, 0]], width=12))
    name  bytes
    a         5
    <BLANKLINE>
    name  lost
    a        0
    """
    right = [bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(head))]
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    natural = [max(len(row[i]) for row in cells) for i in range(len(head))]
    if width is None or _total(natural) <= width:
        return _lines(cells, natural, right)
    least = [_longest_word([row[i] for row in cells]) for i in range(len(head))]
    parts: list[list[int]] = []
    for column in range(1, len(head)):
        if parts and _total([least[i] for i in (0, *parts[-1], column)]) <= width:
            parts[-1].append(column)
        else:
            parts.append([column])
    return "\n\n".join(
        _lines(
            [[row[i] for i in chosen] for row in cells],
            _shrunk([natural[i] for i in chosen], [least[i] for i in chosen], width),
            [right[i] for i in chosen],
        )
        for chosen in ([0, *part] for part in parts or [[]])
    )


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest_word(cells: Sequence[str]) -> int:
    return min(max((len(word) for cell in cells for word in cell.split()), default=1), _MOST_UNBROKEN)


def _shrunk(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Take from the widest column that can still give, until all fit or none can."""
    widths = list(natural)
    while _total(widths) > width:
        giving = [i for i in range(len(widths)) if widths[i] > least[i]]
        if not giving:
            break
        widths[max(giving, key=lambda i: widths[i])] -= 1
    return widths


def _lines(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    lines: list[str] = []
    for number, row in enumerate(cells):
        broken = [
            textwrap.wrap(cell, width, break_on_hyphens=False) or [""] for cell, width in zip(row, widths, strict=True)
        ]
        height = max(len(cell) for cell in broken)
        for line in range(height):
            padded: list[str] = []
            for cell, width, is_right in zip(broken, widths, right, strict=True):
                # Heads stand on their column, values hang from their row's first line.
                at = line - (height - len(cell)) if number == 0 else line
                text = cell[at] if 0 <= at < len(cell) else ""
                padded.append(text.rjust(width) if is_right else text.ljust(width))
            lines.append((" " * _GAP).join(padded).rstrip())
    return "\n".join(lines)
