"""Modules of the user's own that are named as ``module:name``, also those in the current folder: found, or loaded. And
the names that installed packages give to what they bring."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoints, entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any

__all__ = ["brought_by_packages", "found_module", "load_own"]


def found_module(name: str, also_here: bool = False) -> ModuleSpec | None:
    """Return where the module `name` is, without running it or a package that it is in; `None` if it is nowhere.

    ``importlib.util.find_spec`` imports the packages around a module.

    Parameters
    ----------
    name
        Such as ``package.module``.
    also_here
        Whether the current folder is searched too, after all others.
    """
    importlib.invalidate_caches()
    parts = name.split(".")
    found: ModuleSpec | None = None
    search: Sequence[str] | None = None
    for place in range(len(parts)):
        if place:
            if found is None or found.submodule_search_locations is None:
                return None
            search = list(found.submodule_search_locations)
        found = _found(".".join(parts[: place + 1]), search, also_here and not place)
    return found


def _found(name: str, search: Sequence[str] | None, also_here: bool) -> ModuleSpec | None:
    looks = [(finder, search) for finder in sys.meta_path]
    if also_here:
        looks.append((PathFinder, [str(Path.cwd())]))
    for finder, path in looks:
        try:
            spec = finder.find_spec(name, path)
        except (ImportError, AttributeError, KeyError, ValueError):
            # A namespace in one that was never imported, and names that are none.
            continue
        if spec is not None:
            return spec
    return None


def brought_by_packages(group: str) -> EntryPoints:
    """Return the entry points that the installed packages have in `group`. No package is run.

    They are a file of each package, so they are read again only where a folder of ``sys.path`` has changed.
    """
    return _entry_points(tuple((folder, _changed_ns(folder)) for folder in sys.path), group)


def _changed_ns(folder: str) -> int | None:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return None


@lru_cache
def _entry_points(_search: tuple[tuple[str, int | None], ...], group: str) -> EntryPoints:
    return entry_points(group=group)


def load_own(place: str) -> Any:
    """Return what `place`, a ``module:name``, names. The current folder is searched last: nothing there stands in for
    a module that is installed.

    Raises
    ------
    ImportError
        There is no such module, or it cannot be imported.
    AttributeError
        It has no such name.
    """
    module, _, attribute = place.partition(":")
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        importlib.invalidate_caches()
        return attrgetter(attribute)(importlib.import_module(module))
    finally:
        sys.path.remove(here)
