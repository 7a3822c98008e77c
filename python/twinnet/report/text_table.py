"""Text for a terminal: aligned tables and paragraphs that fit its width."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

__all__ = ["sentence_columns", "table", "terminal_columns", "wrapped"]

_GAP = 2
_MOST_UNBROKEN = 40


_PIPE_COLUMNS = 100


def terminal_columns(stream: TextIO | None = None) -> int | None:
    """Return the width of the terminal that `stream` (default: standard output) is; ``None`` when it is a file or pipe,
    which take lines of any length: programs read them."""
    if stream is None:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None


def sentence_columns() -> int:
    """Return the width for sentences and for tables that hold them: that of the terminal, else what ``COLUMNS`` says,
    else 100."""
    wanted = os.environ.get("COLUMNS", "")
    return terminal_columns() or (int(wanted) if wanted.isdigit() and int(wanted) > 0 else _PIPE_COLUMNS)


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
