"""Listening on a path, which goes when the owner does, however the owner ends.

A second process waits for the owner's end of a pipe to close, and then removes the path. Where that process was killed
too, the path stays, and whoever listens there next sees that nobody answers, and takes it over.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["UnixListener"]

_BACKLOG = 16
_PATIENCE_S = 5.0
_MOST_TRIES = 3
# Only the socket that it was started for is removed: another may listen under that name by then.
_REMOVER = """\
import os, sys
sys.stdin.buffer.read()
path, device, inode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    found = os.lstat(path)
    if (found.st_dev, found.st_ino) == (device, inode):
        os.unlink(path)
except FileNotFoundError:
    pass
"""


class UnixListener:
    """A socket that listens at `path`.

    Attributes
    ----------
    socket
        That socket.

    Raises
    ------
    OSError
        When that is not possible: somebody listens there, for example.
    """

    def __init__(self, path: Path) -> None:
        self.socket: socket.socket = socket.socket(socket.AF_UNIX)
        try:
            _bind(self.socket, path)
            self.socket.listen(_BACKLOG)
            found = path.lstat()
            arguments = [str(path.absolute()), str(found.st_dev), str(found.st_ino)]
            self._remover = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _REMOVER, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self.socket.close()
            raise

    def close(self) -> None:
        """Stop listening, and remove the path."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        if self._remover.stdin is not None:
            self._remover.stdin.close()
        # It only removes a path; one that hangs in that would hang for everybody.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._remover.wait(_PATIENCE_S)


def _bind(sock: socket.socket, path: Path) -> None:
    """Bind `sock`; a path that nobody listens at any more is taken over."""
    for _ in range(_MOST_TRIES):
        try:
            sock.bind(os.fspath(path))
            return
        except OSError as error:
            if not path.is_socket() or _is_served(path):
                raise error from None
            path.unlink(missing_ok=True)
    sock.bind(os.fspath(path))


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PATIENCE_S)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            # It may be served, and be busy or not ours.
            return True
        return True
