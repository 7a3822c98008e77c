"""A controller that is a program of its own, beside the lab: in its owner's network namespace, ended with its owner."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from twinnet.errors import BadValue, NotAvailable

__all__ = ["ControllerProgram", "end_of"]

_PATIENCE_S = 5.0
_LAST_BYTES = 4000
# The program is ended by the kernel when the process that started it dies, however that happens (PR_SET_PDEATHSIG = 1).
_WRAPPER = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


class ControllerProgram:
    """A controller that runs; ``with`` starts and ends it.

    Parameters
    ----------
    command
        A list, or text that is split as a shell would.
    env
        Variables beside those of this process.
    cwd
        The folder that it starts in.

    Raises
    ------
    BadValue
        When the command is empty.
    """

    def __init__(
        self, command: str | Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        self.argv: list[str] = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.argv:
            raise BadValue("the command of the controller is empty", 'write for example "python3 controller.py"')
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object

    def start(self) -> ControllerProgram:
        """Start the program; what it writes is kept for :meth:`last_words`."""
        wrapper = [sys.executable, "-I", "-S", "-c", _WRAPPER, str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                [*wrapper, *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise NotAvailable(f"the controller cannot be started: {error}", "see the command and its folder") from None
        return self

    @property
    def running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status; ``None`` while it runs or before."""
        return None if self._process is None else self._process.poll()

    def ends_within(self, patience_s: float) -> bool:
        """Wait until it has ended, at most `patience_s` seconds; return whether it was started and has ended."""
        if self._process is None:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        return self._process.poll() is not None

    @property
    def working(self) -> bool:
        """True if it or a process of its own is running at this moment, or waits for a processor or a disk."""
        left = [] if self._process is None else [str(self._process.pid)]
        while left:
            tasks = Path("/proc", left.pop(), "task")
            # What has ended meanwhile works no more.
            with contextlib.suppress(OSError):
                for task in tasks.iterdir():
                    if (task / "stat").read_text().rpartition(")")[2].split()[0] in "RD":
                        return True
                    left += (task / "children").read_text().split()
        return False

    def last_words(self) -> str:
        """Return the end of what it wrote."""
        return end_of(self._output)

    def stop(self) -> None:
        """End it: by SIGTERM, and after 5 s by SIGKILL, with all processes of its group."""
        if self._process is None:
            return
        for one, patience_s in ((signal.SIGTERM, _PATIENCE_S), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, one)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
                break

    def __enter__(self) -> ControllerProgram:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def end_of(output: IO[bytes]) -> str:
    """Return the end of what was written to the file `output`."""
    size = os.fstat(output.fileno()).st_size
    text = os.pread(output.fileno(), _LAST_BYTES, max(0, size - _LAST_BYTES))
    return text.decode(errors="replace").strip()
