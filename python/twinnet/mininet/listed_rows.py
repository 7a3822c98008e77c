"""Rows of tables as ``ovs-vsctl list`` and ``find`` print them: the formats and forms of data of ``ovs-vsctl(8)``."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twinnet.mininet.column_checks import column_type
from twinnet.mininet.switch_columns import atom_text, cell_text
from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import members
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.values import ColumnType

__all__ = ["Form", "every_column", "full_row", "listed"]

_FORMATS = ("list", "table", "csv", "json", "html")
_DATA = ("string", "bare", "json")


@dataclass(frozen=True)
class Form:
    """How rows are printed.

    Parameters
    ----------
    format
        ``list``, ``table``, ``csv``, ``json`` or ``html``.
    data
        How cells are written: ``string``, ``bare`` or ``json``.
    headings
        Whether the names of columns are written.
    """

    format: str = "list"
    data: str = "string"
    headings: bool = True

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise Refused(f'unknown output format "{self.format}"')
        if self.data not in _DATA:
            raise Refused(f'unknown data format "{self.data}"')

    def cell(self, table: str, column: str, value: Any) -> str:
        """Return a cell as text."""
        if self.data == "json":
            return _json(_of_wire(table, column, value))
        if self.data == "string":
            return cell_text(value)
        if isinstance(value, dict):
            return " ".join(f"{key}={one}" for key, one in cast("dict[str, Any]", value).items())
        text = str(value)
        return " ".join(members(text)) if text.startswith("[") else text.strip('"')


def full_row(table: str, held: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of `table` that is `held` with those of its columns that are set, the keys of maps by
    ``column:key``: all columns in the order of their names."""
    row: dict[str, Any] = {}
    for column, kind in sorted(open_vswitch().tables[table].columns.items()):
        if kind.value is None:
            row[column] = _cell(kind, held[column]) if column in held else _empty(table, column)
            continue
        texts = {one.removeprefix(f"{column}:"): text for one, text in held.items() if one.startswith(f"{column}:")}
        number = kind.key.kind == "integer"
        row[column] = {int(key) if number else key: text for key, text in sorted(texts.items())}
    return row


def every_column(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return `row` with all columns of `table`, in the order of their names, and with no others."""
    columns = sorted(open_vswitch().tables[table].columns)
    return {"_uuid": row["_uuid"]} | {one: row[one] if one in row else _empty(table, one) for one in columns}


def _cell(kind: ColumnType, text: str) -> str:
    """A cell as ``ovs-vsctl`` prints it, of a text that it was given."""
    is_text = kind.key.kind == "string"
    atoms = members(text) if not is_text or kind.most > 1 else [text]
    said = ", ".join(atom_text(one) if is_text else one for one in atoms)
    return f"[{said}]" if kind.most > 1 or not atoms else said


def listed(table: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], form: Form) -> str:
    """Return `rows` of `table` as text; `columns`: those of them, in their order, or all if there are none."""
    wanted = list(columns) or list(dict.fromkeys(column for row in rows for column in row if column != "table"))
    full = [{column: row[column] if column in row else _empty(table, column) for column in wanted} for row in rows]
    if form.format == "json":
        data = [[_of_wire(table, column, row[column]) for column in wanted] for row in full]
        return _json({"data": data, "headings": wanted}) + "\n"
    cells = [[form.cell(table, column, row[column]) for column in wanted] for row in full]
    if form.format == "list":
        heads = [f"{column:<20}: " if form.headings else "" for column in wanted]
        return "\n".join("".join(f"{head}{cell}\n" for head, cell in zip(heads, row, strict=True)) for row in cells)
    if form.format == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([wanted, *cells] if form.headings else cells)
        return text.getvalue()
    return (_table if form.format == "table" else _page)(wanted, cells, form.headings)


def _table(columns: list[str], cells: list[list[str]], headings: bool) -> str:
    widths = [max(map(len, column)) for column in zip(*([columns, *cells] if headings else cells), strict=True)]
    rules = [["-" * width for width in widths]]
    lines = [columns, *rules, *cells] if headings else cells
    pairs = [zip(line, widths, strict=True) for line in lines]
    return "".join(" ".join(cell.ljust(width) for cell, width in line).rstrip() + "\n" for line in pairs)


def _page(columns: list[str], cells: list[list[str]], headings: bool) -> str:
    def row(tag: str, texts: list[str]) -> str:
        inner = "".join(f"    <{tag}>{html.escape(text)}</{tag}>\n" for text in texts)
        return f"  <tr>\n{inner}  </tr>\n"

    head = row("th", columns) if headings else ""
    return f"<table border=1>\n{head}{''.join(row('td', line) for line in cells)}</table>\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _empty(table: str, column: str) -> Any:
    """The cell of a column that our rows do not have and the schema has."""
    value = column_type(table, column).default()
    if isinstance(value, dict):
        return {}
    if not value:
        return "[]"
    return '""' if value[0] == "" else str(value[0]).lower() if isinstance(value[0], bool) else value[0]


def _of_wire(table: str, column: str, value: Any) -> Any:
    """A cell as the protocol of OVSDB writes it (RFC 7047, 5.1)."""
    known = open_vswitch().tables[table].columns
    if isinstance(value, dict):
        held = known[column].value if column in known else None
        kind = "string" if held is None else held.kind
        pairs = cast("dict[str, Any]", value).items()
        return ["map", [[key, _atom(kind, str(one))] for key, one in pairs]]
    # Rows of ports are those of two tables in one: the port's and its interface's.
    kind = "uuid" if column == "_uuid" else known[column].key.kind if column in known else "string"
    text = str(value)
    if not text.startswith("["):
        return _atom(kind, text.strip('"'))
    atoms = [_atom(kind, one) for one in members(text)]
    return atoms[0] if len(atoms) == 1 else ["set", atoms]


def _atom(kind: str, text: str) -> Any:
    if kind == "uuid":
        return ["uuid", text]
    if kind == "boolean":
        return text == "true"
    return int(text) if kind == "integer" and text.lstrip("-").isdecimal() else text
