"""Values of columns as texts, as ``ovs-vsctl`` writes them, and texts as values."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinnet.ovsdb.database import Row
from twinnet.ovsdb.schema import TableSchema
from twinnet.ovsdb.values import Atom, ColumnType, Reference, Value

__all__ = [
    "first",
    "map_of",
    "members",
    "references",
    "row_identifier",
    "row_of",
    "strings_of",
    "text_of",
    "value_of",
    "whole_number",
]

_FROM_TEXT: Mapping[str, Callable[[str], Atom]] = {
    "integer": int,
    "real": float,
    "boolean": "true".__eq__,
    "string": str,
    "uuid": Reference,
}


def members(value: str) -> list[str]:
    """Return the members of a set as ``ovs-vsctl`` writes them: ``10``, ``10,20`` or ``[10, 20]``."""
    return [one for one in re.split(r"[,\s\[\]\"]+", value) if one]


def row_identifier(table: str, name: str) -> str:
    """Return the identifier of the row of `table` that is made for `name`."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{table} {name}"))


def references(identifiers: Sequence[str]) -> Value:
    """Return the value of a column that leads to the rows `identifiers`."""
    return ColumnType.ordered({Reference(one) for one in identifiers})


def map_of(pairs: Mapping[Any, Atom]) -> Value:
    """Return the value of a column with these keys and values."""
    return dict[Atom, Atom](pairs.items())


def first(value: Value) -> Atom | None:
    """Return the first atom of `value`; ``None`` where it is empty."""
    return next(iter(value), None)


def whole_number(value: Value) -> int | None:
    """Return the first atom of `value` if it is a whole number."""
    found = first(value)
    return found if isinstance(found, int) else None


def text_of(value: Value) -> str:
    """Return a set as text, its members parted by commas."""
    return ",".join(str(one).lower() if isinstance(one, bool) else str(one) for one in value)


def value_of(kind: ColumnType, text: str) -> Value:
    """Return the set of the type `kind` that `text` writes."""
    return ColumnType.ordered({_FROM_TEXT[kind.key.kind](one) for one in members(text)}) or kind.default()


def row_of(table: TableSchema, strings: Mapping[str, str], ports: Mapping[str, str]) -> Row:
    """Return the row that ``ovs-vsctl`` holds as `strings`; ports are named by their names there."""
    row: Row = {}
    for name, kind in table.columns.items():
        if kind.value is not None:
            read, prefix = _FROM_TEXT[kind.value.kind], f"{name}:"
            keys = {one.removeprefix(prefix): text for one, text in strings.items() if one.startswith(prefix)}
            row[name] = {_FROM_TEXT[kind.key.kind](key): read(text) for key, text in keys.items()}
        elif kind.key.table == "Port":
            by_row = {row_identifier("Port", port): identifier for port, identifier in ports.items()}
            given = members(strings.get(name, ""))
            row[name] = references([{**by_row, **ports}.get(one, one) for one in given])
        elif name in strings:
            row[name] = value_of(kind, strings[name])
    return row


def strings_of(table: TableSchema, row: Row, ports: Mapping[str, str]) -> dict[str, str]:
    """Return `row` as ``ovs-vsctl`` holds it, ports by their names (`ports`: by identifier)."""
    strings: dict[str, str] = {}
    for name, kind in table.columns.items():
        value = row[name]
        if isinstance(value, Mapping):
            strings |= {f"{name}:{key}": str(one) for key, one in value.items()}
        elif value != kind.default():
            named = [ports.get(str(one), str(one)) for one in value] if kind.key.table == "Port" else None
            strings[name] = text_of(value) if named is None else ",".join(named)
    return strings
