"""Python's own HTTP server (``http.server``), and the files that it gives."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from twinnet.interpreter import PYTHON
from twinnet.units import Size, size_bytes

__all__ = ["object_of", "python_server", "served_folder"]

_CHANGED_S = 1_767_225_600
"""When the served files were last changed: the server tells it, and equal runs are to send equal bytes."""
_SERVER = (*PYTHON, "-m", "twinnet.programs.python_http_server")


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of this process; it goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="twinnet-served-")


def served_folder() -> Path:
    """Return the folder whose files the servers of this process give."""
    return Path(_folder().name)


def object_of(size: Size) -> str:
    """Return the name of a served file of `size`; it holds zeros and takes no room on the disk."""
    wanted = size_bytes(size, "size")
    path = served_folder() / f"{wanted}.bin"
    if not path.exists():
        with path.open("wb") as file:
            file.truncate(wanted)
        os.utime(path, (_CHANGED_S, _CHANGED_S))
    return path.name


def python_server(port: int, congestion_control: str | None = None) -> tuple[str, ...]:
    """Return the command of a server at `port` of its host's own address.

    It speaks HTTP/1.0: every request has a connection of its own. It has a thread for each, and lets five connections
    wait to be accepted.
    """
    controlled = (congestion_control,) if congestion_control is not None else ()
    return (*_SERVER, "{to}", str(port), str(served_folder()), *controlled)
