"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return twinnet's folder for what can be made again (XDG Base Directory Specification); it need not be there.

    Raises
    ------
    RuntimeError
        The user has no home.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification: relative paths are invalid and are to be ignored.
    return (Path(given) if Path(given).is_absolute() else Path("~/.cache").expanduser()) / "twinnet"
