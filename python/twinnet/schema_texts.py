"""The texts of a JSON schema, from the docstrings of the classes that it is made from; editors show them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, cast

__all__ = ["attribute_texts", "docstring_texts", "with_texts"]

_SECTION = re.compile(r"\n\s*(?:Parameters|Attributes)\n\s*-+\n")
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_NEXT_SECTION = re.compile(r"\n[A-Z][a-z ]+\n-+\n")


@cache
def attribute_texts(kind: type) -> Mapping[str, str]:
    """Return the docstrings below the attributes of the class `kind` and its bases, in one line each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for written in tree.bases:
        # A TypedDict does not tell its bases before Python 3.12.
        base = vars(sys.modules[kind.__module__])[ast.unparse(written)]
        if base.__module__ == kind.__module__ or base.__module__.startswith("twinnet."):
            found |= attribute_texts(base)
    for attribute, after in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(attribute, ast.AnnAssign) and isinstance(attribute.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found[attribute.target.id] = _ROLE.sub(r"`\1`", " ".join(after.value.value.split()))
    return found


@cache
def docstring_texts(of: type | Callable[..., Any]) -> Mapping[str, str]:
    """Return what the docstring of a function, or of a class and its bases, says of the parameters, in one line
    each."""
    found: dict[str, str] = {}
    for base in reversed(of.__mro__) if isinstance(of, type) else (of,):
        found |= _texts_in(inspect.cleandoc(base.__doc__ or ""))
    return found


def with_texts(schema: Any) -> Any:
    """Return `schema` in which each object's docstring is a summary, and its properties have what the docstring says of
    them in a section ``Parameters`` or ``Attributes``. A ``kind`` of one word is described by the summary."""
    if isinstance(schema, list):
        return [with_texts(one) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    entries = {key: with_texts(value) for key, value in cast(dict[str, Any], schema).items()}
    properties, description = entries.get("properties"), entries.get("description")
    if not isinstance(properties, dict) or not isinstance(description, str):
        return entries
    texts = _texts_in(description)
    entries["description"] = " ".join(_SECTION.split(description)[0].split())
    for name, found in cast(dict[str, dict[str, Any]], properties).items():
        text = texts.get(name) or (entries["description"] if "const" in found else None)
        if text is not None:
            found.setdefault("description", text)
    return entries


def _texts_in(docstring: str) -> dict[str, str]:
    return dict(text for section in _SECTION.split(docstring)[1:] for text in _texts_of(section))


def _texts_of(section: str) -> Iterator[tuple[str, str]]:
    """The names that a section of a docstring (numpydoc) explains, each with its text in one line."""
    names, lines = list[str](), list[str]()
    for line in [*_NEXT_SECTION.split(section)[0].splitlines(), "end"]:
        if line.startswith(" "):
            lines.append(line.strip())
        elif line.strip():
            yield from ((name, _ROLE.sub(r"`\1`", " ".join(lines))) for name in names)
            # Files write a duration's key without the unit that the attribute has.
            names = [name.strip().removesuffix("_ps") for name in line.split(",")]
            lines = []
