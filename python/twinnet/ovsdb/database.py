"""A database in memory: transactions as RFC 7047 has them (4.1.3 and 5.2), and what they keep true.

A transaction is done whole or not at all. At its end rows that nothing keeps are gone, and so are weak references to
rows that are gone (3.2); then references, sizes and indexes are checked.
"""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from twinnet.ovsdb.schema import Schema, TableSchema
from twinnet.ovsdb.values import Atom, BadValue, BaseType, ColumnType, Reference, Value

__all__ = ["Database", "Row", "Tables", "TransactionRefused"]

Row = dict[str, Value]
Tables = dict[str, dict[str, Row]]
"""Rows by table and identifier."""

_MOST_OPERATIONS = 10_000
_IDENTIFIER = ColumnType(BaseType("uuid"))
_SYNTAX = "syntax error"
_CONSTRAINT = "constraint violation"
_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {"+=": operator.add, "-=": operator.sub, "*=": operator.mul}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class TransactionRefused(Exception):
    """A transaction that is not done.

    Parameters
    ----------
    error
        The protocol's word for the reason.
    details
        The reason in words.
    """

    def __init__(self, error: str, details: str) -> None:
        super().__init__(f"{error}: {details}")
        self.error = error
        self.details = details


class Database:
    """The rows of a schema.

    Parameters
    ----------
    schema
        Its tables and columns.
    agree
        Called with the rows that a transaction leads to, before they take the place of those that are there. It does
        what they ask for, or raises `TransactionRefused`: then nothing is changed.

    Attributes
    ----------
    tables
        The rows as they are. They are never changed in place: a transaction puts others in their place.
    """

    def __init__(self, schema: Schema, agree: Callable[[Tables], None] | None = None) -> None:
        self.schema = schema
        self._agree = agree
        self.tables: Tables = {name: {} for name in schema.tables}

    def put(self, tables: Tables) -> None:
        """Put `tables` in the place of the rows, as the end of a transaction would; raises `TransactionRefused`."""
        self.tables = _Transaction(self.schema, tables).finished()

    def transact(self, operations: list[Any]) -> list[Any]:
        """Do `operations` and return their results, in the form of the wire. After an operation that is refused no
        other is done, and nothing is changed."""
        if len(operations) > _MOST_OPERATIONS:
            return [_refusal(TransactionRefused("resources exhausted", f"at most {_MOST_OPERATIONS} operations"))]
        work = _Transaction(self.schema, self.tables)
        results: list[Any] = []
        for operation in operations:
            try:
                results.append(work.do(operation))
            except TransactionRefused as refused:
                return [*results, _refusal(refused), *[None] * (len(operations) - len(results) - 1)]
            except (BadValue, KeyError, TypeError, AttributeError) as wrong:
                why = f"{type(wrong).__name__}: {wrong}" if not isinstance(wrong, BadValue) else str(wrong)
                refused = TransactionRefused(_SYNTAX if not isinstance(wrong, BadValue) else _CONSTRAINT, why)
                return [*results, _refusal(refused), *[None] * (len(operations) - len(results) - 1)]
        try:
            tables = work.finished()
            if self._agree is not None:
                self._agree(tables)
            self.tables = tables
        except TransactionRefused as refused:
            return [*results, _refusal(refused)]
        return results


def _refusal(refused: TransactionRefused) -> dict[str, str]:
    return {"error": refused.error, "details": refused.details}


class _Transaction:
    """Operations on a copy of the rows."""

    def __init__(self, schema: Schema, tables: Tables) -> None:
        self._schema = schema
        self._tables: Tables = {name: dict(rows) for name, rows in tables.items()}
        self._names: dict[str, str] = {}

    def _identifier_of(self, name: str) -> str:
        return self._names.setdefault(name, str(uuid.uuid4()))

    def do(self, operation: Any) -> dict[str, Any]:
        """Do one operation."""
        kind = operation["op"]
        work = {
            "insert": self._insert,
            "select": self._select,
            "update": self._update,
            "mutate": self._mutate,
            "delete": self._delete,
            "wait": self._wait,
        }.get(kind)
        if work is not None:
            table = self._schema.tables.get(operation["table"])
            if table is None:
                raise TransactionRefused(_SYNTAX, f"no table named {operation['table']!r}")
            return work(operation, table)
        if kind in ("commit", "comment", "assert"):
            return {}
        if kind == "abort":
            raise TransactionRefused("aborted", "aborted by request")
        raise TransactionRefused(_SYNTAX, f"no operation named {str(kind)[:40]!r}")

    def _read_row(self, given: Mapping[str, Any], table: TableSchema) -> Row:
        return {
            column: _column(table, column).decode(value, self._identifier_of)
            for column, value in given.items()
            if not column.startswith("_")
        }

    def _chosen(self, operation: Mapping[str, Any], table: TableSchema) -> list[str]:
        """The identifiers of the rows that all conditions hold for."""
        rows = self._tables[operation["table"]]
        found = list(rows)
        for column, function, given in operation["where"]:
            kind = _IDENTIFIER if column == "_uuid" else _column(table, column)
            most = None if function in ("==", "!=", *_ORDERS) else 1 << 30
            wanted = (
                kind.decode(given, self._identifier_of, most)
                if kind.value is not None or function not in ("includes", "excludes")
                else ColumnType(kind.key, None, 0, 1 << 30).decode(given, self._identifier_of)
            )
            found = [
                one
                for one in found
                if _holds((Reference(one),) if column == "_uuid" else rows[one][column], str(function), wanted)
            ]
        return found

    def _insert(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        name = operation.get("uuid-name")
        identifier = str(uuid.uuid4()) if name is None else self._identifier_of(name)
        if "uuid" in operation:
            [identifier] = _IDENTIFIER.decode(["uuid", operation["uuid"]], self._identifier_of)
        identifier = str(identifier)
        rows = self._tables[operation["table"]]
        if identifier in rows:
            raise TransactionRefused("duplicate uuid", f"a row {identifier} is there already")
        given = self._read_row(operation.get("row", {}), table)
        rows[identifier] = {column: given.get(column, kind.default()) for column, kind in table.columns.items()}
        return {"uuid": ["uuid", identifier]}

    def _select(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        columns = operation.get("columns") or ["_uuid", *table.columns]
        rows = self._tables[operation["table"]]
        return {"rows": [_shown(table, one, rows[one], columns) for one in self._chosen(operation, table)]}

    def _update(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        changes = self._read_row(operation["row"], table)
        rows, chosen = self._tables[operation["table"]], self._chosen(operation, table)
        for identifier in chosen:
            rows[identifier] = rows[identifier] | changes
        return {"count": len(chosen)}

    def _mutate(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        rows, chosen = self._tables[operation["table"]], self._chosen(operation, table)
        for identifier in chosen:
            row = dict(rows[identifier])
            for column, mutator, given in operation["mutations"]:
                kind = _column(table, column)
                row[column] = _mutated(kind, row[column], str(mutator), given, self._identifier_of)
            rows[identifier] = row
        return {"count": len(chosen)}

    def _delete(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        chosen = self._chosen(operation, table)
        for identifier in chosen:
            del self._tables[operation["table"]][identifier]
        return {"count": len(chosen)}

    def _wait(self, operation: Mapping[str, Any], table: TableSchema) -> dict[str, Any]:
        """Whether the rows are as given: nobody waits here, as if the timeout were 0."""
        columns = operation.get("columns") or list(table.columns)
        rows = self._tables[operation["table"]]
        there = [{column: rows[one][column] for column in columns} for one in self._chosen(operation, table)]
        wanted = [self._read_row(row, table) for row in operation["rows"]]
        same = all(row in there for row in wanted) and all(row in wanted for row in there)
        if same != (operation["until"] == "=="):
            raise TransactionRefused("timed out", "the rows are not as they are waited for")
        return {}

    def finished(self) -> Tables:
        """Return the rows at the end of the transaction."""
        self._drop_rows_that_nothing_keeps()
        for name, table in self._schema.tables.items():
            rows = self._tables[name]
            for identifier, row in rows.items():
                rows[identifier] = self._with_live_references(name, table, row)
            if table.most_rows is not None and len(rows) > table.most_rows:
                raise TransactionRefused(_CONSTRAINT, f"table {name} has {len(rows)} rows; at most {table.most_rows}")
            for index in table.indexes:
                seen: set[Any] = set()
                for row in rows.values():
                    key = tuple(row[column] for column in index)
                    if key in seen:
                        raise TransactionRefused(
                            _CONSTRAINT, f"two rows of {name} have the same {', '.join(index)}: {key}"
                        )
                    seen.add(key)
        return self._tables

    def _drop_rows_that_nothing_keeps(self) -> None:
        kept: set[tuple[str, str]] = set()
        left = [
            (name, one) for name, table in self._schema.tables.items() if table.is_root for one in self._tables[name]
        ]
        while left:
            name, identifier = left.pop()
            if (name, identifier) in kept or identifier not in self._tables[name]:
                continue
            kept.add((name, identifier))
            row = self._tables[name][identifier]
            for column, kind in self._schema.tables[name].columns.items():
                for base, atoms in _references(kind, row[column]):
                    if not base.weak and base.table is not None:
                        left += [(base.table, str(atom)) for atom in atoms]
        self._tables = {
            name: {one: row for one, row in rows.items() if (name, one) in kept} for name, rows in self._tables.items()
        }

    def _with_live_references(self, name: str, table: TableSchema, row: Row) -> Row:
        for column, kind in table.columns.items():
            for base, atoms in _references(kind, row[column]):
                assert base.table is not None
                gone = {atom for atom in atoms if atom not in self._tables[base.table]}
                if not gone:
                    continue
                if not base.weak:
                    why = f"{column} of {name} names {sorted(gone)[0]}, which is no row of {base.table}"
                    raise TransactionRefused("referential integrity violation", why)
                value = row[column]
                if isinstance(value, Mapping):
                    live: Value = {key: one for key, one in value.items() if not {key, one} & gone}
                else:
                    live = tuple(atom for atom in value if atom not in gone)
                row = row | {column: live}
        return row


def _column(table: TableSchema, column: str) -> ColumnType:
    if column not in table.columns:
        raise TransactionRefused(_SYNTAX, f"no column named {str(column)[:60]!r}")
    return table.columns[column]


def _references(kind: ColumnType, value: Value) -> list[tuple[BaseType, list[Atom]]]:
    """The references in `value`, with their types."""
    found: list[tuple[BaseType, list[Atom]]] = []
    if kind.key.table is not None:
        found.append((kind.key, list(value)))
    if kind.value is not None and kind.value.table is not None:
        found.append((kind.value, list(cast("dict[Atom, Atom]", value).values())))
    return found


def _shown(table: TableSchema, identifier: str, row: Row, columns: list[str]) -> dict[str, Any]:
    own = {"_uuid": ["uuid", identifier], "_version": ["uuid", identifier]}
    return {one: own[one] if one in own else _column(table, one).encode(row[one]) for one in columns}


def _holds(value: Value, function: str, wanted: Value) -> bool:
    if function == "==":
        return value == wanted
    if function == "!=":
        return value != wanted
    if function in _ORDERS and isinstance(value, tuple) and isinstance(wanted, tuple):
        return bool(value) and _ORDERS[function](value[0], wanted[0])
    have, want = (
        set(one.items()) if isinstance(one, dict) else set(one)  # pyright: ignore[reportUnknownArgumentType]
        for one in (value, wanted)
    )
    if function == "includes":
        return want <= have
    if function == "excludes":
        return not want & have
    raise TransactionRefused(_SYNTAX, f"no function named {function[:40]!r}")


def _mutated(kind: ColumnType, value: Value, mutator: str, given: Any, name: Callable[[str], str]) -> Value:
    """Return `value` as `mutator` leaves it (RFC 7047, 5.1)."""
    if mutator in _NUMBERS or mutator in ("/=", "%="):
        [by] = ColumnType(BaseType(kind.key.kind)).decode(given, name)
        assert isinstance(value, tuple)
        if kind.key.kind not in ("integer", "real") or not isinstance(by, (int, float)):
            raise TransactionRefused(_SYNTAX, f"{mutator} is for numbers")
        if mutator in _NUMBERS:
            changed: set[Atom] = {_NUMBERS[mutator](atom, by) for atom in value}
        elif not by:
            raise TransactionRefused("domain error", "division by zero")
        else:
            changed = {_divided(cast("float", atom), by, mutator) for atom in value}
        return kind.sized(kind.ordered(changed))
    if mutator not in ("insert", "delete"):
        raise TransactionRefused(_SYNTAX, f"no mutator named {mutator[:40]!r}")
    several = ColumnType(kind.key, kind.value, 0, 1 << 30)
    if isinstance(value, tuple):
        atoms = set(several.decode(given, name))
        return kind.sized(kind.ordered(set(value) | atoms if mutator == "insert" else set(value) - atoms))
    if mutator == "insert":
        # A key that is there keeps its value.
        return kind.sized({**cast("dict[Atom, Atom]", several.decode(given, name)), **value})
    if isinstance(given, list) and given[:1] == ["map"]:
        pairs = cast("dict[Atom, Atom]", several.decode(given, name))
        return kind.sized({key: one for key, one in value.items() if key not in pairs or pairs[key] != one})
    keys = ColumnType(kind.key, None, 0, 1 << 30).decode(given, name)
    return kind.sized({key: one for key, one in value.items() if key not in keys})


def _divided(atom: float, by: float, mutator: str) -> Atom:
    """Whole numbers are divided towards zero, as in C."""
    if mutator == "/=":
        return int(atom / by) if isinstance(atom, int) and isinstance(by, int) else atom / by
    return int(abs(atom) % abs(by)) * (1 if atom >= 0 else -1)
