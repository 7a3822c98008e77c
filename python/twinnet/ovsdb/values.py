"""Values of columns (RFC 7047, 3.2 and 5.1): sets and maps of atoms, as Python has them and as the wire has them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Atom", "BadValue", "BaseType", "ColumnType", "Reference", "Value"]

_UNLIMITED = 1 << 30


class BadValue(ValueError):
    """A value that its column cannot have, or a message that is no request of the protocol."""


class Reference(str):
    """The identifier of a row, as the value of a column."""

    __slots__ = ()


Atom = int | float | bool | str | Reference
Value = tuple[Atom, ...] | dict[Atom, Atom]
"""A set (a scalar is a set of one), without repetitions and in order, or a map."""

_PYTHON: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "real": (float, int),
    "boolean": (bool,),
    "string": (str,),
    "uuid": (Reference,),
}
_DEFAULTS: dict[str, Atom] = {
    "integer": 0,
    "real": 0.0,
    "boolean": False,
    "string": "",
    "uuid": Reference(uuid.UUID(int=0)),
}


def _short(given: Any) -> str:
    return str(given)[:60]


@dataclass(frozen=True)
class BaseType:
    """The type of an atom (``<base-type>``).

    Parameters
    ----------
    kind
        ``integer``, ``real``, ``boolean``, ``string`` or ``uuid``.
    words
        What it may be, where that is listed one by one.
    least, most
        The range of a number.
    table
        The table that a reference leads to.
    weak
        Whether the reference goes with its row, instead of keeping it.
    """

    kind: str
    words: tuple[Atom, ...] = ()
    least: float = float("-inf")
    most: float = float("inf")
    table: str | None = None
    weak: bool = False

    @classmethod
    def read(cls, given: Any) -> BaseType:
        """Return the type that the schema writes as `given`."""
        if isinstance(given, str):
            return cls(given)
        words = given.get("enum", ["set", []])
        return cls(
            given["type"],
            tuple(cast("list[Any]", words)[1]) if isinstance(words, list) else (words,),
            given.get("minInteger", given.get("minReal", float("-inf"))),
            given.get("maxInteger", given.get("maxReal", float("inf"))),
            given.get("refTable"),
            given.get("refType") == "weak",
        )

    def decode(self, given: Any, name: Callable[[str], str]) -> Atom:
        """Return the atom that the wire writes as `given`; `name` gives the identifier of a named row."""
        atom = given
        if isinstance(given, list) and len(cast("list[Any]", given)) == 2:
            tag, content = cast("list[Any]", given)
            if tag == "named-uuid" and isinstance(content, str):
                atom = Reference(name(content))
            elif tag == "uuid" and isinstance(content, str):
                try:
                    atom = Reference(uuid.UUID(content))
                except ValueError:
                    raise BadValue(f"{content[:60]!r} is no identifier of a row") from None
        if not isinstance(atom, _PYTHON[self.kind]) or (isinstance(atom, bool) and self.kind != "boolean"):
            raise BadValue(f"{_short(given)!r} is no {self.kind}")
        if self.words and atom not in self.words:
            raise BadValue(f"{atom!r} is not one of the allowed values {self.words}")
        if isinstance(atom, (int, float)) and not self.least <= atom <= self.most:
            raise BadValue(f"{atom} is not in the allowed range {self.least} to {self.most}")
        return atom

    def encode(self, atom: Atom) -> Any:
        """Return `atom` as the wire has it."""
        return ["uuid", str(atom)] if isinstance(atom, Reference) else atom


@dataclass(frozen=True)
class ColumnType:
    """The type of a column (``<type>``): of its atoms, and how many there are."""

    key: BaseType
    value: BaseType | None = None
    least: int = 1
    most: int = 1

    @classmethod
    def read(cls, given: Any) -> ColumnType:
        """Return the type that the schema writes as `given`."""
        if isinstance(given, str):
            return cls(BaseType(given))
        most = given.get("max", 1)
        value = given.get("value")
        return cls(
            BaseType.read(given["key"]),
            None if value is None else BaseType.read(value),
            given.get("min", 1),
            _UNLIMITED if most == "unlimited" else most,
        )

    def default(self) -> Value:
        """Return the value of a column that is not given."""
        if self.value is not None:
            return {}
        return (self.key.words[0] if self.key.words else _DEFAULTS[self.key.kind],) if self.least else ()

    def decode(self, given: Any, name: Callable[[str], str], most: int | None = None) -> Value:
        """Return the value that the wire writes as `given`, of no more than `most` atoms."""
        content = cast("list[Any]", given) if isinstance(given, list) else []
        tag = content[0] if len(content) == 2 else None
        if self.value is not None:
            if tag != "map" or not isinstance(content[1], list):
                raise BadValue(f"{_short(given)} is no map")
            pairs = cast("list[Any]", content[1])
            if not all(isinstance(pair, list) and len(cast("list[Any]", pair)) == 2 for pair in pairs):
                raise BadValue("a map consists of pairs")
            found: Value = {self.key.decode(key, name): self.value.decode(value, name) for key, value in pairs}
        else:
            atoms: Any = content[1] if tag == "set" else [cast("Any", given)]
            if not isinstance(atoms, list):
                raise BadValue(f"{_short(given)} is no set")
            found = self.ordered({self.key.decode(atom, name) for atom in cast("list[Any]", atoms)})
        return self.sized(found, most)

    def sized(self, value: Value, most: int | None = None) -> Value:
        """Return `value`, unless it has too many or too few atoms."""
        if not self.least <= len(value) <= (self.most if most is None else most):
            raise BadValue(f"{len(value)} values; allowed are {self.least} to {self.most}")
        return value

    @staticmethod
    def ordered(atoms: set[Atom]) -> tuple[Atom, ...]:
        """Return `atoms` in an order that is always the same."""
        return tuple(sorted(atoms, key=lambda atom: (isinstance(atom, str), atom)))

    def encode(self, value: Value) -> Any:
        """Return `value` as the wire has it."""
        if isinstance(value, Mapping):
            assert self.value is not None
            return ["map", [[self.key.encode(key), self.value.encode(one)] for key, one in value.items()]]
        if len(value) == 1:
            return self.key.encode(value[0])
        return ["set", [self.key.encode(atom) for atom in value]]
