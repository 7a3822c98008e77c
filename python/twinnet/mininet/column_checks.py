"""What a column of Open vSwitch's tables may be, by its schema and in the words of ``ovs-vsctl``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import members
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.values import BaseType, ColumnType

__all__ = ["boolean", "check_columns", "column_named", "column_type", "table_named"]


def table_named(word: str) -> str:
    """Return the name of the table that `word` means, whatever its case and perhaps cut short; raises
    :class:`Refused`."""
    names = _meant(word, open_vswitch().tables)
    if not names:
        raise Refused(f'unknown table "{word}"')
    if len(names) > 1:
        raise Refused(f'"{word}" matches multiple table names: {", ".join(names)}')
    return names[0]


def column_named(table: str, word: str) -> str:
    """Return the name of the column of `table` that `word` means, as :func:`table_named` does."""
    if word.lower() == "_uuid":
        return "_uuid"
    names = _meant(word, open_vswitch().tables[table].columns)
    if not names:
        raise Refused(f'{table} does not contain a column whose name matches "{word}"')
    if len(names) > 1:
        raise Refused(f'{table} contains more than one column whose name matches "{word}": {", ".join(names)}')
    return names[0]


def _meant(word: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that `word` is, or that begin so where it is none: ``-`` is ``_`` and letters have no case."""
    plain = word.lower().replace("-", "_")
    by_plain = {name.lower(): name for name in sorted(names)}
    if plain in by_plain:
        return [by_plain[plain]]
    return sorted(name for text, name in by_plain.items() if plain and text.startswith(plain))


def column_type(table: str, column: str) -> ColumnType:
    """Return the type of a column; raises :class:`Refused` where the table has none of that name."""
    columns = open_vswitch().tables[table].columns
    if column not in columns:
        raise Refused(f'{table} does not contain a column whose name matches "{column}"')
    return columns[column]


def check_columns(table: str, settings: Iterable[str], columns: Mapping[str, str]) -> None:
    """Raise :class:`Refused` unless `columns`, which the words `settings` give to a row of `table`, may be so."""
    for setting in settings:
        if "=" not in setting:
            raise Refused(f'{setting}: argument does not end in "=" followed by a value.')
    for name, value in columns.items():
        column, colon, key = name.partition(":")
        kind = column_type(table, column)
        if colon:
            _check_atom(kind.key, key)
            values = [value] if kind.value is None or kind.value.kind == "string" else members(value)
            for one in values if kind.value is not None else ():
                _check_atom(kind.value or kind.key, one)
        else:
            for one in [value] if kind.key.kind == "string" and not kind.key.words else members(value):
                _check_atom(kind.key, one)


def _check_atom(kind: BaseType, given: str) -> None:
    if given.startswith("@"):
        raise Refused(f'row id "{given}" is referenced but never created (e.g. with "-- --id={given} create ...")')
    if kind.kind == "integer":
        if not re.fullmatch(r"-?[0-9]{1,19}", given):
            raise Refused(f'"{given}" is not a valid integer or range')
        _check_range(kind, int(given))
    elif kind.kind == "boolean":
        boolean(given)
    if kind.words and given not in [str(one) for one in kind.words]:
        allowed = ", ".join(sorted(str(one) for one in kind.words))
        raise Refused(f"constraint violation: {given} is not one of the allowed values ([{allowed}])")


def _check_range(kind: BaseType, number: int) -> None:
    if kind.least <= number <= kind.most:
        return
    if kind.most == float("inf"):
        raise Refused(f"constraint violation: {number} is less than minimum allowed value {int(kind.least)}")
    limits = f"{int(kind.least)} to {int(kind.most)}"
    raise Refused(f"constraint violation: {number} is not in the valid range {limits} (inclusive)")


def boolean(given: str) -> bool:
    """Return the truth value that `given` writes; raises :class:`Refused`."""
    if given not in ("true", "false"):
        raise Refused(f'"{given}" is not a valid boolean (use "true" or "false")')
    return given == "true"
