"""The folder that the engine wants on disk for each slot, which goes whatever becomes of the slot."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["remove_left", "remove_mine", "scratch"]

_PREFIX = "twinnet-slot-"
_LOCK = "in-use"
_mine: list[Path] = []


@contextmanager
def scratch() -> Generator[Path]:
    """A folder of this process, removed at the end.

    A lock shows that its process lives. The lock of one that was killed is free, and whoever calls
    :func:`remove_left` next removes its folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _mine.append(folder)
        try:
            yield folder
        finally:
            remove_mine()


def remove_mine() -> None:
    """Remove the folder of this process, which is about to end."""
    while _mine:
        shutil.rmtree(_mine.pop(), ignore_errors=True)


def remove_left() -> None:
    """Remove the folders of slots of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # Somebody's who lives, being made or removed just now, or not ours.
            continue
