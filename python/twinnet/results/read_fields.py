"""Classes of reports, read from the lab protocol by the names and types of their fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Self, TypeVar, cast

__all__ = ["Reported", "ReportedIfAny", "read_fields"]

_Report = TypeVar("_Report")


class Reported:
    """A dataclass that is read from the lab protocol by the names of its fields."""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Self:
        """Return it in the form of the lab protocol; a field that `spec` lacks keeps its default."""
        return read_fields(cls, spec)


class ReportedIfAny:
    """A dataclass that is read from the lab protocol by the names of its fields, where there is anything to read."""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any] | None) -> Self | None:
        """Return it in the form of the lab protocol, ``None`` where there is none: nothing was measured or asked for,
        or it has no meaning for the flow."""
        return None if spec is None else read_fields(cls, spec)


def read_fields(kind: type[_Report], spec: Mapping[str, Any] | None, /, **given: Any) -> _Report:
    """Return a `kind`, a dataclass, of the fields that `spec` has by their names, and of those that are `given`.

    Numbers and texts become what their field says, lists become tuples, and objects become what their class reads. A
    field that `spec` lacks keeps its default; a list or an object that is null is empty.

    Raises
    ------
    TypeError, ValueError
        A field without a default is missing, or a value is not what its field says.
    """
    found = spec or {}
    for name, read in _readers(kind).items():
        if name in found and name not in given:
            given[name] = read(found[name])
    return kind(**given)


@cache
def _readers(kind: Any) -> Mapping[str, Callable[[Any], Any]]:
    hints = typing.get_type_hints(kind)
    return {one.name: _reader(hints[one.name]) for one in dataclasses.fields(kind)}


def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of the type `hint` of one of the lab protocol."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        read = _reader(next(one for one in inner if one is not types.NoneType))
        return _as_it_is if read in _PLAIN else lambda value: None if value is None else read(value)
    if origin in (tuple, Sequence):
        item = _reader(inner[0])
        # There may be a million, and the core writes of them what the type says.
        return lambda value: tuple(value or ()) if item in _PLAIN else tuple(map(item, value or ()))
    if origin is Mapping:
        item = _reader(inner[1])
        return lambda value: {name: item(one) for name, one in cast("Mapping[str, Any]", value or {}).items()}
    if dataclasses.is_dataclass(hint):
        return getattr(hint, "from_spec", None) or partial(read_fields, cast("type[Any]", hint))
    return hint if hint in _PLAIN else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


_PLAIN = (int, float, str, bool, _as_it_is)
