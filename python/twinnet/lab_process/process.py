"""The lab process as its owner holds it: started from any Python, ended and reaped without a trace."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys

from twinnet.errors import LabError
from twinnet.lab_process.compiled_part import require_compiled_part
from twinnet.lab_process.connection import LabConnection

__all__ = ["LabProcess"]


class LabProcess:
    """A running lab process; it ends when its connection is closed.

    Parameters
    ----------
    name
        The name under which other terminals find it; chosen when it is ``None``.

    Raises
    ------
    LabError
        When the name is taken, or the machine does not permit what a lab needs.
    """

    def __init__(self, name: str | None) -> None:
        require_compiled_part()
        from twinnet import _core

        try:
            handle = _core.spawn_lab(name, sys.executable, str(_core.__file__))
        except _core.CoreError as error:
            kind, message, remedy = error.args
            raise LabError(message, remedy, kind) from None
        self.name: str = handle.name
        self.pid: int = handle.pid
        self._pidfd: int = handle.pidfd
        self.connection: LabConnection = LabConnection(socket.socket(fileno=handle.socket))

    def promote(self) -> bool:
        """Ask for real-time scheduling of the fabric, which only somebody outside of the lab's user namespace may have;
        return whether it was granted."""
        from twinnet import _core

        return _core.promote_lab(self.pid)

    def end(self, patience_s: float) -> None:
        """Close the connection, wait up to `patience_s` seconds for the process to end by itself, then kill and reap
        it."""
        self.connection.close()
        if self._pidfd < 0:
            return
        if not select.select([self._pidfd], [], [], patience_s)[0]:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        # A caller that ignores SIGCHLD has its children reaped by the kernel.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        os.close(self._pidfd)
        self._pidfd = -1
