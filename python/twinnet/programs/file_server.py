"""What clients fetch by HTTP: from the built-in server, or from Python's own (``http.server``) and its files."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from twinnet.errors import BadValue
from twinnet.interpreter import PYTHON
from twinnet.traffic.app import App
from twinnet.traffic.apps import http_server
from twinnet.units import Size, size_bytes

__all__ = ["object_of", "python_server", "served", "served_folder"]

_CHANGED_S = 1_767_225_600
"""When the served files were last changed: the server gives it, and equal runs are to send equal bytes."""
_SERVER = (*PYTHON, str(Path(__file__).with_name("python_http_server.py")))
"""By its path it imports nothing of the package, which would take seconds of a guest's processor."""


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


def served(
    size: Size, server: str, server_by: str, port: int, congestion_control: str | None
) -> tuple[str, tuple[str, ...] | None, App | None]:
    """Return the URL of an object of `size` in the host `server`, whose address is ``{to}``, and what serves it: the
    command of Python's server, or the built-in one.

    Raises
    ------
    BadValue
        `server_by` is neither ``"twinnet"`` nor ``"python"``.
    """
    if server_by not in ("twinnet", "python"):
        raise BadValue(f"the server is by {server_by!r}; allowed are 'twinnet' and 'python'")
    url = f"http://{{to}}:{port}/"
    if server_by == "python":
        return url + object_of(size), python_server(port, congestion_control), None
    app = http_server(server, port=port, congestion_control=congestion_control)
    return f"{url}bytes/{size_bytes(size, 'size')}", None, app
