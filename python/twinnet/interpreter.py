"""The Python interpreter that runs our own programs."""

from __future__ import annotations

import sys

__all__ = ["PYTHON"]

PYTHON = (sys.executable, "-P")
"""The interpreter and the option that keeps the current folder out of the search for modules: there a user's own
``http.py`` would stand in for the standard library's."""
