"""``import mininet`` in a script: the same module objects as those of this package."""

from __future__ import annotations

import importlib
import pkgutil
import sys

__all__ = ["MODULES", "install"]

MODULES = ("clean", "cli", "link", "log", "moduledeps", "net", "node", "nodelib", "term", "topo", "topolib", "util")
"""The modules of Mininet that there are."""


def install() -> None:
    """Make ``mininet`` and ``mininet.X`` names of ``twinnet.mininet`` and its modules, in this process. Other modules
    of a package ``mininet`` on the path are found under their names too, such as ``mininet.examples``."""
    package = importlib.import_module("twinnet.mininet")
    package.__path__ = pkgutil.extend_path(package.__path__, "mininet")
    sys.modules["mininet"] = package
    for name in MODULES:
        sys.modules[f"mininet.{name}"] = importlib.import_module(f"twinnet.mininet.{name}")
