"""A program in a host on another machine: what it writes is brought here, and what it reads is taken there."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import select
import termios
import threading
import tty
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinnet.errors import LabError, TwinnetError
from twinnet.lab_process.pending_reply import JsonObject, PendingReply
from twinnet.lab_process.replies import JobEndedReply, JobReply
from twinnet.machines.session import AgentSession

__all__ = ["RemoteProgram"]

_TURN_S = 0.02
_PIECE_BYTES = 1 << 16
_NAMES = ("stdin", "stdout", "stderr")


class RemoteProgram:
    """A program of a host on the machine of `session`.

    Parameters
    ----------
    session
        The agent there.
    fields
        Of a ``spawn`` of the lab protocol.
    descriptors
        The descriptors of that request: stdin, stdout and stderr, or the slave of a terminal. They stay the caller's.

    Attributes
    ----------
    started
        The answer of ``spawn``: `job` and `pid`, both of that machine.
    """

    def __init__(self, session: AgentSession, fields: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        self._session = session
        self._ours: dict[str, int] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[PendingReply[JobEndedReply]] = []
        self._reply: JsonObject | None = None
        size: str | None = None
        names: Sequence[str] = ("terminal",) if fields.get("terminal") else _NAMES
        for name, one in zip(names, descriptors, strict=True):
            if not _leads_nowhere(one):
                self._ours[name] = os.dup(one)
        try:
            if "terminal" in self._ours:
                # The terminal over there does what a terminal does; this one only carries bytes.
                size = _size_of(self._ours["terminal"])
                tty.setraw(self._ours["terminal"])
            streams = [name in self._ours for name in _NAMES]
            self.started: JobReply = session.request("program.spawn", fields=dict(fields), streams=streams, size=size)
        except BaseException:
            self._close()
            raise
        self._job = self.started["job"]
        self._threads = [threading.Thread(target=self._bring, name="program-output", daemon=True)]
        if "stdin" in self._ours or "terminal" in self._ours:
            self._threads.append(threading.Thread(target=self._take, name="program-input", daemon=True))
        for thread in self._threads:
            thread.start()

    def wait(self) -> PendingReply[JobEndedReply]:
        """Return the answer of the lab protocol's ``wait``, when it comes."""
        pending = PendingReply[JobEndedReply]()
        with self._lock:
            if self._reply is None:
                self._waiting.append(pending)
            else:
                pending.settle(self._reply)
        return pending

    def _bring(self) -> None:
        """Carry what the program writes, until it has ended and all is here."""
        try:
            while True:
                state = self._session.request("program.job", job=self._job, turn_s=_TURN_S)
                for name, data in state["wrote"].items():
                    _write_all(self._ours[name], base64.b64decode(data))
                if state["end"] is not None:
                    reply = {"ok": state["end"]}
                    break
        except TwinnetError as error:
            reply = {"error": {"name": error.name, "message": error.message, "remedy": error.remedy}}
        self._ended.set()
        for thread in self._threads[1:]:
            thread.join()
        self._close()
        with self._lock:
            self._reply = reply
            waiting, self._waiting = self._waiting, []
        for pending in waiting:
            pending.settle(reply)

    def _take(self) -> None:
        """Carry what the program reads, until there is no more or it has ended."""
        source = self._ours["stdin"] if "stdin" in self._ours else self._ours["terminal"]
        with contextlib.suppress(LabError, OSError):
            while not self._ended.is_set():
                if not select.select([source], [], [], _TURN_S)[0]:
                    continue
                data = os.read(source, _PIECE_BYTES)
                if not data:
                    self._session.request("program.feed", job=self._job, data=None)
                    return
                while data and not self._ended.is_set():
                    text = base64.b64encode(data).decode()
                    taken = self._session.request("program.feed", job=self._job, data=text)["taken"]
                    if taken is None:
                        return
                    data = data[int(taken) :]
                    if not taken:
                        # Its pipe is full: it reads when it wants to.
                        self._ended.wait(_TURN_S)

    def _close(self) -> None:
        for one in self._ours.values():
            os.close(one)
        self._ours.clear()


def _leads_nowhere(descriptor: int) -> bool:
    null = Path(os.devnull).stat()
    return os.fstat(descriptor).st_rdev == null.st_rdev


def _size_of(terminal: int) -> str | None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns = int.from_bytes(size[:2], "little"), int.from_bytes(size[2:4], "little")
        return f"{rows} {columns}" if rows and columns else None
    return None


def _write_all(descriptor: int, data: bytes) -> None:
    """Write `data`; nobody reading any more is no failure of the program."""
    left = memoryview(data)
    with contextlib.suppress(BrokenPipeError, OSError):
        while left:
            left = left[os.write(descriptor, left) :]
