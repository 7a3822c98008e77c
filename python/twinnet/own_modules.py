"""Modules of the user's own that are named as ``module:name``, also those in the current folder."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

__all__ = ["load_own"]


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
