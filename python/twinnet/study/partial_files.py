"""Files and folders that land whole or not at all: they are written under a partial name, synced and renamed.

A partial name tells machine and process of who writes, so that what dead writers left can be removed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path

__all__ = ["partial_name", "remove_partial", "sync_folder", "write_synced"]

_PARTIAL = re.compile(r"\.(?P<of>.+)\.(?P<machine>[A-Za-z0-9_-]+)\.(?P<pid>\d+)\.(?P<start>\d+)\.partial")


def partial_name(name: str) -> str:
    """Return the name under which this process writes what is to be called `name`."""
    pid = os.getpid()
    return f".{name}.{_machine_word()}.{pid}.{_start_of_process(pid) or 0}.partial"


def remove_partial(folder: Path) -> list[Path]:
    """Remove what dead writers left in `folder`, and return it; that of living writers and other machines stays."""
    removed: list[Path] = []
    if not folder.is_dir():
        return removed
    for path in sorted(folder.iterdir()):
        found = _PARTIAL.fullmatch(path.name)
        if found is None or found["machine"] != _machine_word():
            continue
        if _start_of_process(int(found["pid"])) != found["start"]:
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def write_synced(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _machine_word() -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname()) or "_"


def _start_of_process(pid: int) -> str | None:
    """Return the start of the process in clock ticks since boot: it tells a process from a later one of the same
    number."""
    try:
        with Path(f"/proc/{pid}/stat").open(encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
