"""Modules in files that belong to no package: tools, examples, makers of pages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["module_in"]


def module_in(file: Path) -> ModuleType:
    """The module that `file` makes, by the file's name."""
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    # Where dataclasses look for the names in their annotations.
    sys.modules[file.stem] = module
    found.loader.exec_module(module)
    return module
