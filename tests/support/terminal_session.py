"""A user at a terminal: a program on a pseudo-terminal whose screen is read and whose keys are typed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Mapping, Sequence

PATIENCE_S = 20.0


class TerminalSession:
    """`command` on a terminal of `rows` by `columns`."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], rows: int = 30, columns: int = 100
    ) -> None:
        self.screen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # The parent sizes the terminal before it lets the program go.
            os.read(0, 1)
            os.execve(command[0], list(command), dict(environment))
        self.resize(rows, columns)
        os.write(self.terminal, b"\n")

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size; what runs on it is told."""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press `keys`."""
        os.write(self.terminal, keys.encode())

    def await_text(self, text: str) -> None:
        """Read the screen until `text` has come; what came until then is forgotten."""
        wanted = text.encode()
        deadline = time.monotonic() + PATIENCE_S
        while wanted not in self.screen:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} did not come; the screen had {self.screen!r}")
        self.screen = self.screen.partition(wanted)[2]

    def status(self) -> int:
        """Read until the program has ended, and return its exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while (left := deadline - time.monotonic()) > 0 and self._read(left):
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self, seconds: float) -> bool:
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:
            # EIO: nobody has the terminal open any more.
            return False
        self.screen += piece
        return bool(piece)
