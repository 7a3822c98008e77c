"""The code that this machine runs, as a text to compare: two ends of a connection must have the same."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import twinnet
from twinnet import _core

__all__ = ["code_version"]

_SHOWN = 12
"""Hexadecimal digits of the hash: two codes have the same once in 10**14."""


def code_version() -> str:
    """Return the version and a hash of the code, such as ``0.1.0 (code 3f2a90c41b7d)``.

    A version names a release, and between two releases code and protocol change. The hash is of the package's Python
    and of the forms that the compiled core takes; it does not change with folders, builds or processors.
    """
    return f"{twinnet.__version__} (code {_hash()})"


@functools.cache
def _hash() -> str:
    folder = Path(__file__).parent
    found = hashlib.sha256(_core.vocabulary().encode())
    for path in sorted(folder.rglob("*.py"), key=lambda one: one.relative_to(folder).parts):
        found.update(b"\0" + path.relative_to(folder).as_posix().encode() + b"\0")
        found.update(path.read_bytes())
    return found.hexdigest()[:_SHOWN]
