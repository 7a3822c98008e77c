"""Programs on this machine with what they read and write: the agent's side of a program that another machine started.

Descriptors do not travel. What a program writes is asked for piece by piece, and what it reads is sent to it.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import select
import struct
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import JobEndedReply
from twinnet.lab_process.requests import LabRequests
from twinnet.machines.machine_programs import MachinePrograms

__all__ = ["ProgramStreams"]

_PIECE_BYTES = 1 << 20
_MOST_TURN_S = 0.2


class _Program:
    """A program of the part with its streams."""

    def __init__(self, end: PendingReply[JobEndedReply], write: int | None, reads: Mapping[str, int]) -> None:
        self.end = end
        self.write = write
        self.reads = dict(reads)

    def close(self) -> None:
        for one in ([self.write] if self.write is not None else []) + list(self.reads.values()):
            # A terminal is both.
            with contextlib.suppress(OSError):
                os.close(one)
        self.write, self.reads = None, {}


class ProgramStreams:
    """The programs that `starter` starts, a part's lab or the machine itself, with their streams."""

    def __init__(self, starter: LabRequests | MachinePrograms) -> None:
        self._starter = starter
        self._programs: dict[int, _Program] = {}

    def answer(self, do: str, message: Mapping[str, Any]) -> Any:
        """Answer the request `do` of an agent; raises `TwinnetError` with the reason when it cannot be done."""
        match do:
            case "program.spawn":
                return self._spawn(dict(message["fields"]), list(message["streams"]), message.get("size"))
            case "program.job":
                return self._job(int(message["job"]), float(message["turn_s"]))
            case "program.feed":
                return self._feed(int(message["job"]), message.get("data"))
            case "program.ask" if message["request"] == "signal":
                return self._starter.signal(**message["fields"])
            case "program.ask" if message["request"] == "jobs":
                return self._starter.jobs()
            case _:
                raise ValueError(f"the agent does not know {do!r}")

    def _spawn(self, fields: dict[str, Any], streams: list[bool], size: str | None) -> Any:
        """Start a program; `streams` says which of its standard streams lead somewhere."""
        theirs: list[int] = []
        ours: list[tuple[str, int]] = []
        try:
            if fields.get("terminal"):
                near, far = os.openpty()
                theirs.append(far)
                ours.append(("terminal", near))
                if size:
                    fcntl.ioctl(
                        near, termios.TIOCSWINSZ, struct.pack("HHHH", *[int(one) for one in size.split()], 0, 0)
                    )
            else:
                for name, wanted in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                    if not wanted:
                        theirs.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
                        continue
                    read, write = os.pipe2(os.O_CLOEXEC)
                    theirs.append(read if name == "stdin" else write)
                    ours.append((name, write if name == "stdin" else read))
            if changed := fields.pop("changed", None):
                fields["env"] = {**os.environ, **changed}
            if fields.get("cwd") and not Path(str(fields["cwd"])).is_dir():
                # A folder of the machine at which one sits need not be here.
                fields["cwd"] = None
            started = self._starter.spawn(**fields, descriptors=theirs)
        except BaseException:
            for _, one in ours:
                os.close(one)
            raise
        finally:
            for one in theirs:
                os.close(one)
        number = started["job"]
        write = next((one for name, one in ours if name in ("stdin", "terminal")), None)
        if write is not None:
            os.set_blocking(write, False)
        reads = {name: one for name, one in ours if name != "stdin"}
        self._programs[number] = _Program(self._starter.wait_later(job=number), write, reads)
        return started

    def _job(self, number: int, turn_s: float) -> dict[str, Any]:
        """What the program wrote, and how it ended: at once when there is something, otherwise after `turn_s`."""
        program = self._programs[number]
        ended = program.end.done()
        wrote: dict[str, str] = {}
        wait_s = 0.0 if ended else min(max(turn_s, 0.0), _MOST_TURN_S)
        ready, _, _ = select.select(list(program.reads.values()), [], [], wait_s)
        for name, one in list(program.reads.items()):
            if one not in ready:
                continue
            try:
                data = os.read(one, _PIECE_BYTES)
            except OSError:
                # EIO: the last program on the terminal has closed it.
                data = b""
            if data:
                wrote[name] = base64.b64encode(data).decode()
            else:
                del program.reads[name]
                if one != program.write:
                    os.close(one)
        answer: dict[str, Any] = {"wrote": wrote, "end": None}
        if ended and not wrote:
            # What it left running in the background keeps the pipes, and is not waited for.
            answer["end"] = program.end.result(0)
            program.close()
            del self._programs[number]
        return answer

    def _feed(self, number: int, data: str | None) -> dict[str, Any]:
        """Give the program input; no data: there will be none. Returns how many bytes it took."""
        program = self._programs.get(number)
        if program is None or program.write is None:
            return {"taken": None}
        if data is None:
            if "terminal" not in program.reads:
                os.close(program.write)
            program.write = None
            return {"taken": 0}
        try:
            return {"taken": os.write(program.write, base64.b64decode(data))}
        except BlockingIOError:
            return {"taken": 0}
        except OSError:
            return {"taken": None}

    def close(self) -> None:
        """Let go of all streams."""
        for program in self._programs.values():
            program.close()
