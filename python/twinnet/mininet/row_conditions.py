"""Conditions on rows, as ``ovs-vsctl find`` and ``wait-until`` take them (``ovs-vsctl(8)``)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from twinnet.mininet.column_checks import check_columns
from twinnet.ovsdb.qos_rows import Refused
from twinnet.ovsdb.row_texts import members

__all__ = ["met"]

_CONDITION = re.compile(r"(\w+)(:[^=!<>{]*)?(\{(?:=|!=|<=|>=|<|>)\}|!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KNOWN = '"=", "!=", "<", ">", "<=", ">=", "{=}", "{!=}", "{<}", "{>}", "{<=}", "{>=}"'


def met(table: str, row: Mapping[str, Any], condition: str) -> bool:
    """Return whether a row of `table` is as `condition` wants it; raises :class:`Refused` where it is none. In braces
    sets are compared: ``{>=}`` holds where the row has all that is named."""
    found = _CONDITION.fullmatch(condition)
    if found is None or not found[4]:
        raise Refused(f"{condition}: argument does not end in {_KNOWN} followed by a value.")
    column, key, sign, wanted = found[1], found[2], found[3], found[4]
    if column != "_uuid":
        check_columns(table, (), {column + (key or ""): wanted} if key or "=" not in wanted else {})
    cell = row[column]
    if key is not None:
        if not isinstance(cell, dict):
            raise Refused(f"cannot specify key to get for non-map column {column}")
        texts = {str(name): str(one) for name, one in cast("dict[Any, Any]", cell).items()}
        if key[1:] not in texts:
            return False
        cell = texts[key[1:]]
    held, asked = _atoms(cell), set(members(wanted))
    compare = _OPERATORS[sign.strip("{}")]
    if sign.startswith("{") or sign in ("=", "!="):
        return compare(held, asked)
    if len(held) != 1 or len(asked) != 1:
        return False
    return compare(*_comparable(*held, *asked))


def _atoms(cell: Any) -> set[str]:
    if isinstance(cell, dict):
        return {f"{name}={one}" for name, one in cast("dict[Any, Any]", cell).items()}
    return set(members(str(cell)))


def _comparable(one: str, other: str) -> tuple[int, int] | tuple[str, str]:
    try:
        return int(one), int(other)
    except ValueError:
        return one, other
