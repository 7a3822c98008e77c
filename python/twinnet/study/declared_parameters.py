"""The parameters that a study file declares, and the values that they may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from twinnet.study.quantity import Quantity, parse_quantity
from twinnet.yaml_source import Document, Problem, SourceError

__all__ = ["REFERENCE", "Declared", "declared_parameters", "typed_value"]

REFERENCE = re.compile(r"\$\{([^}]*)\}|\$")
"""A parameter as a text of the file names it; or a dollar sign that begins none."""
Declared = Mapping[str, tuple[Quantity, list[str] | None]]
"""Parameters by name: their defaults, and the words that each allows."""


def declared_parameters(document: Document) -> tuple[Declared, dict[str, Problem]]:
    """The parameters of the file, with the words that each allows; and what is wrong with the others."""
    section = document.data.get("parameters", {})
    if not isinstance(section, dict):
        raise document.error(("parameters",), "is a mapping of names to defaults, such as 'link_rate: 1 Gbit'")
    declared: dict[str, tuple[Quantity, list[str] | None]] = {}
    unreadable: dict[str, Problem] = {}
    for name, given in cast(dict[str, Any], section).items():
        try:
            declared[name] = _declaration(document, name, given)
        except SourceError as error:
            (unreadable[name],) = error.problems
    return declared, unreadable


def _declaration(document: Document, name: str, given: object) -> tuple[Quantity, list[str] | None]:
    value, one_of = given, None
    path: tuple[str, ...] = ("parameters", name)
    if isinstance(given, dict):
        entry = cast(dict[str, Any], given)
        value, one_of = entry.get("default"), entry.get("one_of")
        if value is None:
            raise document.error(path, "needs 'default', such as 'default: 1 Gbit'", key=True)
        path = (*path, "default")
    try:
        quantity = parse_quantity(value)
    except ValueError as error:
        raise document.error(path, str(error)) from None
    allowed = cast(list[str], one_of) if isinstance(one_of, list) else None
    if allowed is not None and quantity.text not in allowed:
        raise document.error(path, f"{quantity.text!r} is not one of {', '.join(map(str, allowed))}")
    return quantity, allowed


def typed_value(declared: Declared, name: str, value: object) -> Quantity:
    """`value` as the parameter `name`, of the same kind as its default."""
    quantity = parse_quantity(value)
    default, one_of = declared[name]
    if quantity.kind != default.kind:
        raise ValueError(f"{name} is a {default.kind} such as {default.text!r}; {quantity.text!r} is a {quantity.kind}")
    if one_of is not None and quantity.text not in one_of:
        raise ValueError(f"{name} is one of {', '.join(one_of)}; {quantity.text!r} is not")
    return quantity
