"""The folder that the engine wants on disk for each slot and scheduler, which goes whatever becomes of its process."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

__all__ = ["end_suddenly", "remove_left", "scratch"]

_PREFIX = "twinnet-slot-"
_NAME = re.compile(r"twinnet-slot-[0-9]+-[a-z0-9_]{8}")
_MOST_TRIES = 1000
_REMOVE = "import shutil, sys\nfor folder in sys.argv[1:]:\n    shutil.rmtree(folder, ignore_errors=True)"
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


def end_suddenly() -> NoReturn:
    """End this process with status 0, whatever its threads do, and remove its folders.

    A thread that still writes makes its folder anew, with all parents, as often as it is removed. So another program
    takes this process's place, which ends all threads, and removes the folders then.
    """
    _making.acquire()
    with suppress(OSError):
        os.execv(sys.executable, (sys.executable, "-I", "-S", "-c", _REMOVE, *map(str, _mine)))
    _remove_mine()
    os._exit(0)


def _remove_mine() -> None:
    while _mine:
        folder, descriptor = _mine.popitem()
        _remove(folder)
        os.close(descriptor)


def _remove(folder: Path) -> None:
    # Threads of the process may still write there, faster than it is removed, and find it no more.
    away = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    for _ in range(_MOST_TRIES):
        with suppress(OSError):
            folder.rename(away)
        shutil.rmtree(away, ignore_errors=True)
        if not folder.exists() and not away.exists():
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
