"""Programs that real hosts run on the virtual clock: they live in a guest kernel, and time goes on only while somebody
waits for them.

What a program writes comes while time passes. It is kept for whoever reads the pipe, or goes to a file.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from twinnet.control.in_guest import GuestJob
from twinnet.errors import LabError, reason
from twinnet.lab.client_streams import SlowReader, whole_input
from twinnet.lab.virtual_terminal import VirtualTerminal
from twinnet.lab_process.job import DEVNULL, PIPE, Ending, Job, Stream
from twinnet.lab_process.replies import JobRow
from twinnet.units import duration_ps

if TYPE_CHECKING:
    from twinnet._core import VirtualLab
    from twinnet.lab.virtual_connection import VirtualConnection

__all__ = ["VirtualJob", "VirtualPrograms"]

_PIECE = 1 << 16


class VirtualPrograms:
    """The programs of a lab on the virtual clock.

    Parameters
    ----------
    lab
        The lab.
    connection
        What lets its time pass.
    """

    def __init__(self, lab: VirtualLab, connection: VirtualConnection) -> None:
        self._lab = lab
        self._connection = connection
        self._jobs: dict[int, VirtualJob] = {}

    def start(
        self,
        host: str,
        argv: Sequence[str],
        given: Stream,
        outputs: Sequence[Stream | SlowReader],
        fields: Mapping[str, Any],
        size: tuple[int, int] | None = None,
    ) -> VirtualJob:
        """Start `argv` in `host` with stdin as `given` says, and stdout and stderr as `outputs` do, or with a terminal
        of `size` rows and columns; it runs when this returns.

        Raises
        ------
        BadValue
            When what it is to read has no end.
        LabError
            When it cannot be started.
        """
        whole = None if given in (PIPE, DEVNULL) else whole_input(given if isinstance(given, int) else given.fileno())
        body = json.dumps({"do": "spawn", "host": host, "argv": list(argv), **fields})
        with self._connection.turns:
            answer = self._connection.guarded(lambda: self._lab.spawn(body, given != DEVNULL, size))
            number = int(json.loads(answer)["job"])
            job = VirtualJob(self._connection, host, argv, number, outputs)
            self._jobs[number] = job
        if given == PIPE:
            job.stdin = cast("IO[bytes]", _Input(self, number))
        elif whole is not None:
            for begin in range(0, len(whole), _PIECE):
                self.feed(number, whole[begin : begin + _PIECE])
            self.feed(number, None)
        self._connection.pass_until(lambda: job.pid != 0 or job.refusal is not None)
        if job.refusal is not None:
            del self._jobs[number]
            job.close_streams()
            raise job.refusal
        return job

    def start_on_terminal(
        self,
        host: str,
        argv: Sequence[str],
        end: int,
        fields: Mapping[str, Any],
        tells_when_it_reads: bool = False,
    ) -> VirtualJob:
        """Start `argv` in `host` with a terminal that is joined with the pseudo-terminal whose `end` is for programs.
        Time goes as :class:`twinnet.lab.virtual_terminal.VirtualTerminal` says while it runs.

        Raises
        ------
        LabError
            When it cannot be started.
        """
        terminal = VirtualTerminal(self, self._connection, end, tells_when_it_reads)
        try:
            job = self.start(host, argv, DEVNULL, (terminal.screen, DEVNULL), fields, terminal.size)
        except BaseException:
            terminal.give_up()
            raise
        job.terminal = terminal
        terminal.join(job)
        return job

    def resize(self, job: int, size: tuple[int, int]) -> None:
        """The terminal of the program `job` has `size` rows and columns now."""
        self._connection.guarded(lambda: self._lab.resize(job, *size))

    def feed_to(self, job: GuestJob, data: bytes | None) -> None:
        """Have `job` read `data`; ``None``: there will be no more."""
        if isinstance(job, VirtualJob) and not job.over:
            self.feed(job.number, data)

    def feed(self, job: int, data: bytes | None) -> None:
        """Have `job` read `data`; ``None``: there will be no more."""
        self._connection.guarded(lambda: self._lab.feed(job, data))

    def take_news(self) -> None:
        """Take in what programs have done since this was last called."""
        for number, said, stream, written in self._connection.guarded(self._lab.take_news):
            job = self._jobs.get(number)
            if job is None:
                continue
            if said is None:
                job.has_written(stream, written)
            else:
                job.has_done(json.loads(said))

    def job(self, number: int) -> VirtualJob:
        """Return the program `number`; raises `LabError` when there is none."""
        if (job := self._jobs.get(number)) is None:
            raise LabError(f"there is no program {number}", "see `jobs`", "UnknownJob")
        return job

    def rows(self) -> list[JobRow]:
        """Return all programs in the form of the lab protocol."""
        return [job.row() for job in self._jobs.values()]


class VirtualJob(Job):
    """A program on the virtual clock. Waiting for it lets time pass; see :class:`Job`."""

    def __init__(
        self,
        connection: VirtualConnection,
        host: str,
        argv: Sequence[str],
        number: int,
        outputs: Sequence[Stream | SlowReader],
    ) -> None:
        self._virtual = connection
        self.host = host
        self.argv: tuple[str, ...] = tuple(argv)
        self.number = number
        self.pid: int = 0
        self.refusal: LabError | None = None
        self.ending: Ending | None = None
        self.terminal: VirtualTerminal | None = None
        self._woken: set[int] = set()
        self.stdin: IO[bytes] | None = None
        self._outputs = [_Output(self, stream) for stream in outputs]
        out, error = (cast("IO[bytes]", output) if output.is_pipe else None for output in self._outputs)
        self.stdout: IO[bytes] | None = out
        self.stderr: IO[bytes] | None = error

    def has_written(self, stream: int, data: bytes) -> None:
        """It has written `data` to the stream 1 or 2."""
        self._outputs[stream - 1].take_in(data)

    def has_done(self, said: Mapping[str, Any]) -> None:
        """It has started, could not be started, or has ended."""
        if started := said.get("started"):
            self.pid = int(started["pid"])
        if refused := said.get("refused"):
            self.refusal = LabError(refused["message"], refused["remedy"], refused["name"])
        if ended := said.get("ended"):
            returncode = -int(ended["signal"]) if ended["signal"] else int(ended["status"] or 0)
            self.ending = Ending(returncode, int(ended["elapsed_ns"]) / 1e9, bool(ended["limit"]))
        if refused or ended:
            for output in self._outputs:
                output.end()
            if self.terminal is None:
                self.wake()

    def wake(self) -> None:
        """It is over, and so is its terminal, if it has one: whoever asked to be told of that is."""
        for descriptor in self._woken:
            os.eventfd_write(descriptor, 1)

    @property
    def over(self) -> bool:
        """Whether it has ended, or its host has."""
        return self.ending is not None or self.refusal is not None

    def _is_settled(self) -> bool:
        """Whether it is over, and its terminal, if it has one, shows all that it wrote."""
        return self.over and (self.terminal is None or self.terminal.over)

    def row(self) -> JobRow:
        """Return it in the form of the lab protocol."""
        code = None if self.ending is None else self.ending.returncode
        return {
            "job": self.number,
            "host": self.host,
            "argv": list(self.argv),
            "pid": self.pid,
            "state": "ended" if self.over else "running",
            "status": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
        }

    def poll(self) -> Ending | None:
        """Return how it ended, ``None`` while it runs. No time passes."""
        return self.wait() if self.over else None

    def wait(self, timeout: str | None = None) -> Ending:
        """Let time pass until the program ends; raises `TimeoutError` when it still runs after `timeout`, and
        `LabError` when its output could not be written where it was to go."""
        limit_ps = duration_ps(timeout, "timeout") if timeout is not None else None
        self.stand_until(self._is_settled, limit_ps)
        if self.refusal is not None:
            raise self.refusal
        if self.ending is None:
            raise TimeoutError(f"{self.argv[0]} in {self.host} still runs")
        for output in self._outputs:
            if output.failure is not None:
                raise LabError(
                    f"what {self.argv[0]} in {self.host} wrote could not be kept: {reason(output.failure)}",
                    "make room, or name another file for its output",
                    "OutputLost",
                )
        return self.ending

    def taken(self) -> bytes:
        """Return what it has written to its standard output since this was last called. No time passes."""
        return self._outputs[0].take()

    def pass_time(self, stop: Callable[[], bool]) -> None:
        """Let time pass until `stop` says yes, or the program has ended."""
        self.stand_until(lambda: stop() or self.over)

    def stand_until(self, stop: Callable[[], bool], limit_ps: int | None = None) -> bool:
        """Let time pass until `stop` says yes, at most `limit_ps` picoseconds; return whether it did. Where the program
        has a terminal, that lets time pass."""
        if self.terminal is None:
            return self._virtual.pass_until(stop, limit_ps)
        due_ps = math.inf if limit_ps is None else self._virtual.now()["now_ps"] + limit_ps
        self.terminal.stand_until(lambda: stop() or self._virtual.now()["now_ps"] >= due_ps)
        return stop()

    def signal(self, number: int) -> None:
        """Send signal `number` to the program's process group."""
        if not self.over:
            self._virtual.signal(job=self.number, signal=int(number))

    def communicate(self, given: bytes | None = None) -> tuple[bytes, bytes]:
        """Have the program read `given`, let time pass until it ends, and return stdout and stderr."""
        if self.stdin is not None:
            self.stdin.write(given or b"")
            self.stdin.close()
        self.wait()
        out, error = (output.take() if output.is_pipe else b"" for output in self._outputs)
        return out, error

    def notify(self, eventfd: int) -> None:
        """Add 1 to `eventfd` when the program ends."""
        if self._is_settled():
            os.eventfd_write(eventfd, 1)
        self._woken.add(eventfd)

    def forget(self) -> None:
        """Undo :meth:`notify`."""
        self._woken.clear()

    def close_streams(self) -> None:
        """Close our ends of the program's pipes."""
        for stream in (self.stdin, *self._outputs):
            if stream is not None:
                stream.close()


class _Output(io.RawIOBase):
    """What a program writes: kept for whoever reads it, or written on to a file or a slow reader."""

    def __init__(self, job: VirtualJob, stream: Stream | SlowReader) -> None:
        self._job = job
        self._kept = bytearray()
        self._ended = False
        self._file = -1
        self.failure: OSError | None = None
        self.is_pipe: bool = stream == PIPE
        self._reader = stream if isinstance(stream, SlowReader) else None
        if not self.is_pipe and stream != DEVNULL and not isinstance(stream, SlowReader):
            self._file = os.dup(stream if isinstance(stream, int) else stream.fileno())

    def take_in(self, data: bytes) -> None:
        """The program has written `data`."""
        if self.is_pipe:
            self._kept += data
        elif self._reader is not None:
            self._reader.take_in(data)
        elif self._file >= 0:
            left = memoryview(data)
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except BrokenPipeError:
                pass
            except OSError as error:
                self.failure = error
                self._close_file()

    def end(self) -> None:
        """The program has ended."""
        if self._reader is not None and not self._ended:
            self._reader.end()
        self._ended = True
        self._close_file()

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def take(self) -> bytes:
        """Return all that is kept."""
        taken = bytes(self._kept)
        self._kept.clear()
        return taken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what is there; while nothing is, time passes."""
        if not self._kept and not self._ended:
            self._job.pass_time(lambda: bool(self._kept))
        length = min(len(buffer), len(self._kept))
        buffer[:length] = self._kept[:length]
        del self._kept[:length]
        return length

    def close(self) -> None:
        self.end()
        super().close()


class _Input(io.RawIOBase):
    """What a program reads."""

    def __init__(self, programs: VirtualPrograms, job: int) -> None:
        self._programs = programs
        self._job = job

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        given = bytes(data)
        if given:
            self._programs.feed(self._job, given)
        return len(given)

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(LabError):
                self._programs.feed(self._job, None)
        super().close()
