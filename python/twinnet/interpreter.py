"""The Python interpreter that runs our own programs."""

from __future__ import annotations

import os
import sys

__all__ = ["PYTHON", "leave_current_folder"]

PYTHON = (sys.executable, "-P")
"""The interpreter and the option that keeps the current folder out of the search for modules: there a user's own
``http.py`` would stand in for the standard library's."""


def leave_current_folder() -> None:
    """Take the current folder out of the search for modules, where ``python -m`` has put it first."""
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
        del sys.path[0]
