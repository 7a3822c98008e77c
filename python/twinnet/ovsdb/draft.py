"""Rows that are being written anew, to be put in the place of those of a database."""

from __future__ import annotations

from twinnet.ovsdb.database import Database, Row, Tables
from twinnet.ovsdb.row_texts import row_identifier
from twinnet.ovsdb.values import ColumnType

__all__ = ["Draft"]


class Draft:
    """Rows that are being written; rows that stay as they are stay the same objects.

    Attributes
    ----------
    tables
        The rows, at first those of `database`.
    ports
        The identifiers of rows of ports that were written, by the ports' names.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tables: Tables = {name: dict(rows) for name, rows in database.tables.items()}
        self.ports: dict[str, str] = {}

    def column(self, table: str, column: str) -> ColumnType:
        """The type of a column."""
        return self._database.schema.tables[table].columns[column]

    def put(self, table: str, identifier: str, changes: Row) -> str:
        """Write `changes` into the row, which is made where there is none."""
        columns = self._database.schema.tables[table].columns
        held = self.tables[table].get(identifier) or {one: kind.default() for one, kind in columns.items()}
        if identifier not in self.tables[table] or any(held[one] != value for one, value in changes.items()):
            self.tables[table][identifier] = held | changes
        return identifier

    def find(self, table: str, column: str, value: str) -> Row | None:
        """Return the row with `value` in `column`."""
        return next((row for row in self.tables[table].values() if row[column] == (value,)), None)

    def named(self, table: str, column: str, value: str, changes: Row) -> str:
        """Write `changes` into the row with `value` in `column`, and return its identifier."""
        found = next((one for one, row in self.tables[table].items() if row[column] == (value,)), None)
        return self.put(table, found or row_identifier(table, value), {column: (value,), **changes})

    def put_new(self, table: str, name: str, changes: Row) -> str:
        """Write the row that is made for `name`."""
        return self.put(table, row_identifier(table, name), changes)
