"""Programs of a physical machine: what a lab's hosts answer about programs, answered by the machine itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal as signals
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import cast

from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.pending_reply import JsonObject, PendingReply
from twinnet.lab_process.replies import JobEndedReply, JobReply, JobRow

__all__ = ["MachinePrograms"]

_PS_PER_S = 1e12
_END_PATIENCE_S = 5.0


class _Running:
    """A program in a process group of its own."""

    def __init__(self, number: int, host: str, argv: Sequence[str], process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.host = host
        self.argv = list(argv)
        self.process = process
        self.end = PendingReply[JobEndedReply]()
        self.ended: JobEndedReply | None = None

    def wait(self, limit_s: float | None) -> None:
        """Wait until it has ended, and settle the answer; it is killed after `limit_s`."""
        begin_s, too_long = time.monotonic(), False
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            too_long = True
            self.signal(signals.SIGKILL)
            self.process.wait()
        code = self.process.returncode
        self.ended = {
            "status": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "limit": too_long,
            "elapsed_ps": int((time.monotonic() - begin_s) * _PS_PER_S),
        }
        self.end.settle({"ok": cast("JsonObject", self.ended)})

    def signal(self, number: int) -> None:
        """Send the process group a signal, unless it has ended."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def row(self) -> JobRow:
        """Return what ``jobs`` of the lab protocol reports of it."""
        return {
            "job": self.number,
            "host": self.host,
            "argv": self.argv,
            "pid": self.process.pid,
            "state": "running" if self.ended is None else "ended",
            "status": self.ended["status"] if self.ended is not None else None,
            "signal": self.ended["signal"] if self.ended is not None else None,
        }


class MachinePrograms:
    """Starts programs on this machine, as the user that the agent runs as; all end with the agent."""

    def __init__(self) -> None:
        self._programs: dict[int, _Running] = {}

    def spawn(
        self,
        *,
        host: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        terminal: bool | None = None,
        limit_ps: int | None = None,
        descriptors: Sequence[int] = (),
    ) -> JobReply:
        """Start a program, as ``spawn`` of the lab protocol does.

        Raises
        ------
        LabError
            The program cannot be started.
        NotAvailable
            It is to have a terminal.
        """
        if terminal:
            raise NotAvailable("a program on a physical machine has no terminal of a lab", "use ssh for that")
        environment: Mapping[str, str] = env or os.environ
        if shutil.which(argv[0], path=environment.get("PATH")) is None:
            raise LabError(f"there is no program {argv[0]!r}", "install it on that machine", "ProgramNotFound")
        stdin, stdout, stderr = descriptors
        try:
            process = subprocess.Popen(
                [*_ending_with_us(), *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(
                f"{argv[0]} cannot be started: {error.strerror or error}",
                "try it by hand with ssh",
                "ProgramNotStarted",
            ) from None
        number = len(self._programs) + 1
        program = self._programs[number] = _Running(number, host, argv, process)
        limit_s = None if limit_ps is None else limit_ps / _PS_PER_S
        threading.Thread(target=program.wait, args=(limit_s,), name="program", daemon=True).start()
        return {"job": number, "pid": process.pid}

    def wait_later(self, *, job: int) -> PendingReply[JobEndedReply]:
        """Return the answer that comes when the program ends."""
        return self._programs[job].end

    def signal(self, *, job: int, signal: int) -> None:
        """Send a signal to the process group of the program."""
        self._programs[job].signal(signal)

    def jobs(self) -> list[JobRow]:
        """List the programs."""
        return [program.row() for program in self._programs.values()]

    def close(self) -> None:
        """End all programs."""
        for program in self._programs.values():
            program.signal(signals.SIGKILL)
        for program in self._programs.values():
            with contextlib.suppress(TimeoutError):
                program.end.result(_END_PATIENCE_S)


def _ending_with_us() -> list[str]:
    """The words before a command that have the kernel end it when the agent dies, however that comes about."""
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
