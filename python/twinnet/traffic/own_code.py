"""Python of one's own that model hosts run on the virtual clock, by the short names that the core knows it by."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["OwnCode", "bring", "brought", "name_of_class"]

_LONGEST = 15
"""The longest name of a congestion control (Linux's `TCP_CA_NAME_MAX`), and of all that is one's own."""
_OF_THE_CLASS = 6


@dataclass(frozen=True)
class OwnCode:
    """A class that was brought along.

    Attributes
    ----------
    name
        As it was named: ``module:name``, or the class's own.
    file
        The file that its source is in.
    sha256
        The hash of its source.
    load
        Returns the class.
    """

    name: str
    file: str
    sha256: str
    load: Callable[[], object]


_brought: dict[str, OwnCode] = {}
_of_classes: dict[type, str] = {}


def bring(code: OwnCode) -> str:
    """Make `code` known; return the name by which the core knows it, which tells its source by a hash."""
    of_the_class = code.name.rpartition(":")[2][:_OF_THE_CLASS]
    key = hashlib.sha256(f"{code.name} {code.sha256}".encode()).hexdigest()
    name = f"{of_the_class}-{key}"[:_LONGEST]
    _brought.setdefault(name, code)
    return name


def brought(name: str | None) -> OwnCode | None:
    """Return what was brought along under `name`, or `None`."""
    return _brought.get(name) if name is not None else None


def name_of_class(own: type) -> str:
    """Make a class known; return its name as :func:`bring` does. Two classes of the same text have two names: what
    surrounds them may differ."""
    if own not in _of_classes:
        try:
            source, file = inspect.getsource(own), inspect.getfile(own)
        except (OSError, TypeError):
            # Typed at a prompt, or made by a program.
            source, file = own.__qualname__, own.__module__
        key = hashlib.sha256(f"{source} {len(_of_classes)}".encode()).hexdigest()
        _of_classes[own] = bring(OwnCode(own.__name__, file, key, lambda: own))
    return _of_classes[own]
