"""Tables and columns of a database (RFC 7047, 3.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twinnet.ovsdb.values import ColumnType

__all__ = ["VERSION", "Schema", "TableSchema", "open_vswitch"]

VERSION = "2.17.0"
"""The version of Open vSwitch that clients are told: they choose by it what they ask for."""


@dataclass(frozen=True)
class TableSchema:
    """A table.

    Parameters
    ----------
    columns
        The types of its columns, by name.
    is_root
        Whether its rows stay without a reference that keeps them.
    indexes
        Columns whose values no two rows share.
    most_rows
        The most rows that it has; ``None``: any number.
    """

    columns: Mapping[str, ColumnType]
    is_root: bool
    indexes: tuple[tuple[str, ...], ...]
    most_rows: int | None


@dataclass(frozen=True)
class Schema:
    """A database.

    Parameters
    ----------
    name
        Its name.
    tables
        Its tables, by name.
    text
        The schema as the wire has it.
    """

    name: str
    tables: Mapping[str, TableSchema]
    text: Mapping[str, Any]

    @classmethod
    def read(cls, text: Mapping[str, Any]) -> Schema:
        """Return the schema that the wire writes as `text`."""
        tables = {
            name: TableSchema(
                {column: ColumnType.read(one["type"]) for column, one in table["columns"].items()},
                bool(table.get("isRoot", False)),
                tuple(tuple(index) for index in table.get("indexes", ())),
                table.get("maxRows"),
            )
            for name, table in text["tables"].items()
        }
        return cls(text["name"], tables, text)


@cache
def open_vswitch() -> Schema:
    """Return the schema of Open vSwitch."""
    return Schema.read(json.loads((Path(__file__).parent / "vswitch.ovsschema").read_text()))
