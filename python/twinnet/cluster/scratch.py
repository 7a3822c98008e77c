"""The folder that the engine wants on disk for each slot and scheduler, which goes whatever becomes of its process."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["remove_for_good", "remove_left", "scratch"]

_PREFIX = "twinnet-slot-"
_NAME = re.compile(r"twinnet-slot-[0-9]+-[a-z0-9_]{8}")
_MOST_TRIES = 1000
_mine: dict[Path, int] = {}
"""The folders of this process, each with the descriptor that locks it."""
_making = threading.Lock()


@contextmanager
def scratch() -> Generator[Path]:
    """A folder of this process, removed at the end.

    A lock on it shows that its process lives. The lock of one that was killed is free, and whoever calls
    :func:`remove_left` next removes its folder.
    """
    with _making:
        folder, descriptor = _locked_folder()
        _mine[folder] = descriptor
    try:
        yield folder
    finally:
        with _making:
            _remove_mine()


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():
            return folder, descriptor
        # Somebody took it for one that was left, between the two.
        os.close(descriptor)


def remove_for_good() -> None:
    """Remove the folders of this process, which is about to end, and make no more of them."""
    _making.acquire()
    _remove_mine()


def _remove_mine() -> None:
    while _mine:
        folder, descriptor = _mine.popitem()
        _remove(folder)
        os.close(descriptor)


def _remove(folder: Path) -> None:
    # Threads of the process may still write there.
    for _ in range(_MOST_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def remove_left() -> None:
    """Remove the folders of slots and schedulers of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if not _NAME.fullmatch(folder.name):
            continue
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            # Removed just now, or not ours.
            continue
        try:
            if os.fstat(descriptor).st_uid == os.getuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        except BlockingIOError:
            # Its process lives.
            continue
        finally:
            os.close(descriptor)
