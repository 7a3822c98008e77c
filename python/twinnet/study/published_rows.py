"""Entries of a study's `published` that stand for the rows of a table beside it: one for each row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from twinnet.errors import did_you_mean
from twinnet.study.specification import Published

__all__ = ["each_published"]

MOST_ROWS = 10_000
_COLUMN = re.compile(r"\{([^{}]*)\}")
_FILLED = ("text", "source", "value", "deviation", "measured", "table")


def each_published(entries: Sequence[Published], beside: Mapping[str, str]) -> Iterator[tuple[int, Published]]:
    """Yield each published figure with the number of the entry that it comes from.

    Parameters
    ----------
    entries
        As written: one with `rows` stands for each row of that file in which the columns have the values of `where`.
    beside
        The files beside the study's, by name.

    Raises
    ------
    ValueError
        The file cannot be read, has no row of that kind, or lacks a column that is named.
    """
    for number, entry in enumerate(entries):
        if not entry.rows:
            if entry.where:
                raise ValueError("'where' chooses rows of a table; name its file with 'rows'")
            yield number, entry
            continue
        yield from ((number, one) for one in _of_rows(entry, beside))


def _of_rows(entry: Published, beside: Mapping[str, str]) -> Iterator[Published]:
    lines = [line for line in beside[entry.rows].splitlines() if line.strip() and line[0] != "#"]
    if len(lines) > MOST_ROWS:
        raise ValueError(f"{entry.rows} has more than {MOST_ROWS} lines")
    table = csv.DictReader(io.StringIO("\n".join(lines)), restkey="", restval="")
    head = list(table.fieldnames or ())
    named = [*entry.where, *(name for key in _FILLED for name in _COLUMN.findall(getattr(entry, key)))]
    for name in named:
        if name not in head:
            raise ValueError(f"{entry.rows} has no column {name!r}; {did_you_mean(name, head)}")
    found = False
    for row in table:
        if all(row[name].strip() == value for name, value in entry.where.items()):
            found = True
            filled = {key: _filled(getattr(entry, key), row) for key in _FILLED}
            yield entry.model_copy(update={**filled, "rows": "", "where": {}})
    if not found:
        wanted = ", ".join(f"{name} {value}" for name, value in entry.where.items())
        raise ValueError(f"{entry.rows} has no row with {wanted or 'figures'}")


def _filled(text: str, row: Mapping[str, str]) -> str:
    return _COLUMN.sub(lambda match: row[match[1]].strip(), text)
