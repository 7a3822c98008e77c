"""Entries of a study's `published`: those that stand for the rows of a table beside it, and the sides of each."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinnet.errors import did_you_mean
from twinnet.study.predicate import SHARE_UNIT, Names, Side, parse_side, unit_of_side
from twinnet.study.specification import Published

__all__ = ["PublishedSides", "each_published", "sides_of", "unit_wanted"]

MOST_ROWS = 10_000
_COLUMN = re.compile(r"\{([^{}]*)\}")
_FILLED = ("text", "source", "value", "to", "deviation", "measured", "over", "table")


@dataclass(frozen=True, slots=True)
class PublishedSides:
    """What an entry measures, the published value, its deviation, what both are over, and the upper end of a published
    range; each of the last three is empty where there is none."""

    measured: Side
    value: Side
    deviation: Side
    over: Side
    to: Side


def sides_of(published: Published, names: Names) -> PublishedSides:
    """Read what `published` says; raises `ValueError` as :func:`~twinnet.study.predicate.parse_check` does."""
    texts = (published.measured, published.value, published.deviation, published.over, published.to)
    return PublishedSides(*(parse_side(text, names) if text else () for text in texts))


def unit_wanted(published: Published, key: str, names: Names) -> str | None:
    """The unit that `key` of an entry must have; `None` where any will do."""
    if key == "measured":
        return None
    return SHARE_UNIT if published.over and key != "over" else unit_of_side(published.measured, names)


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
