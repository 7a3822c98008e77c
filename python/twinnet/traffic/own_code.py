"""Python of one's own that hosts run, by the short names that the core knows it by."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from twinnet.errors import BadValue, NotAvailable

__all__ = ["OWN_PATTERN", "OwnCode", "bring", "brought", "handed_once", "know", "name_of_class", "run_source"]

OWN_PATTERN = r"^[A-Za-z_][\w.-]*(:[A-Za-z_]\w*)?$"
"""How studies name what is one's own: `module:Class`, or the name that a package gives it."""
_LONGEST = 15
"""The longest name of a congestion control (Linux's `TCP_CA_NAME_MAX`), and of all that is one's own."""
_OF_THE_CLASS = 6
_Own = TypeVar("_Own")


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
    of
        Where another process finds it: ``module:name``.
    source
        The text of its file, which is run there; ``None``: the module is imported.
    """

    name: str
    file: str
    sha256: str
    load: Callable[[], object]
    of: str
    source: str | None = None

    def load_class(self, base: type[_Own], what: str, known_as: str, error: type[BadValue] = BadValue) -> type[_Own]:
        """Return the class; raises `error` unless it derives from `base`, `what` users know as `known_as`."""
        made = self.load()
        if not (isinstance(made, type) and issubclass(made, base)):
            raise error(f"{self.name} is no {what}", f"write: class Mine({known_as})")
        return made

    def for_another_process(self) -> dict[str, Any]:
        """Return what a lab process is to know of it.

        Raises
        ------
        NotAvailable
            No other process can import it.
        """
        module, _, name = self.of.partition(":")
        if self.source is None and (module == "__main__" or not name.replace(".", "").isidentifier()):
            raise NotAvailable(
                f"{self.name} is of the program that runs: hosts on the wall clock cannot import it",
                "put the class at the top of a file of its own and import it, or use net.simulate()",
            )
        search = [one or str(Path.cwd()) for one in sys.path]
        return {"called": self.name, "of": self.of, "file": self.file, "source": self.source, "search": search}


_brought: dict[str, OwnCode] = {}
_of_classes: dict[type, str] = {}


def bring(code: OwnCode) -> str:
    """Make `code` known; return the name by which the core knows it, which has a hash of its source."""
    of_the_class = code.name.rpartition(":")[2][:_OF_THE_CLASS]
    key = hashlib.sha256(f"{code.name} {code.sha256}".encode()).hexdigest()
    name = f"{of_the_class}-{key}"[:_LONGEST]
    know(name, code)
    return name


def know(name: str, code: OwnCode) -> None:
    """Make `code` known as `name`, unless something is."""
    _brought.setdefault(name, code)


def brought(name: str | None) -> OwnCode | None:
    """Return what was brought along under `name`, or `None`."""
    return _brought.get(name) if name is not None else None


def handed_once(register: Callable[[str, OwnCode], None]) -> Callable[[str], None]:
    """Make of `register`, which makes code known to the core, what is called with each use of a name: it does so the
    first time, where something was brought along under that name."""
    handed: set[str] = set()

    @wraps(register)
    def hand(name: str) -> None:
        own = brought(name)
        if own is not None and name not in handed:
            register(name, own)
            handed.add(name)

    return hand


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
        _of_classes[own] = bring(OwnCode(own.__name__, file, key, lambda: own, f"{own.__module__}:{own.__qualname__}"))
    return _of_classes[own]


def run_source(source: str, file: str) -> ModuleType:
    """Run the text of `file` as a module, once for each text, and return the module."""
    name = f"twinnet_own_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    module = sys.modules.get(name)
    if module is None:
        module = ModuleType(name)
        module.__file__ = file
        # Classes with annotations look their module up.
        sys.modules[name] = module
        try:
            exec(compile(source, file, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return module
