"""Processes of this machine by their parent or group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["children", "living_group"]


def children(parent: int) -> list[int]:
    """The processes whose parent is `parent`."""
    return [pid for pid, fields in _processes() if int(fields[1]) == parent]


def living_group(leader: int) -> list[int]:
    """The processes of the process group of `leader` that have not ended."""
    return [pid for pid, fields in _processes() if int(fields[2]) == leader and fields[0] != "Z"]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """All processes, with what stands behind their names in `stat`: state, parent, group (proc(5))."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(process.name), (process / "stat").read_text().rpartition(")")[2].split()
