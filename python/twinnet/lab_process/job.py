"""A program that runs in a host of a lab: start it, feed it, read it, wait for it, end it."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal as signals
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

from twinnet.errors import BadValue, LabError, ProgramFailed, TimeLimit
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import JobEndedReply, JobReply
from twinnet.lab_process.requests import LabRequests
from twinnet.units import duration_ps, format_duration

__all__ = ["DEVNULL", "PIPE", "Completed", "Ending", "Job", "check_stream", "command_argv", "start_job"]

PIPE = -1
"""A stream of the program that is read or written through the job."""
DEVNULL = -3
"""A stream of the program that leads nowhere."""

Stream = int | IO[Any]


@dataclass(frozen=True)
class Ending:
    """The result of a program that ended.

    Parameters
    ----------
    returncode
        Its exit status, or minus the signal that ended it.
    elapsed_s
        How long it ran, in seconds.
    timed_out
        Whether it was ended because its time was up.
    """

    returncode: int
    elapsed_s: float
    timed_out: bool = False

    @property
    def shell_status(self) -> int:
        """The status as a shell gives it: 128 + signal for a signal."""
        return 128 - self.returncode if self.returncode < 0 else self.returncode


@dataclass(frozen=True)
class Completed(Ending):
    """A program that has run.

    Parameters
    ----------
    host
        Where it ran.
    argv
        The program and its arguments.
    stdout, stderr
        What it wrote, as text.
    """

    host: str = ""
    argv: tuple[str, ...] = ()
    stdout: str = field(default="", repr=False)
    stderr: str = field(default="", repr=False)

    def check(self) -> Completed:
        """Return self; raises `ProgramFailed` unless the exit status is 0."""
        if self.returncode == 0:
            return self
        code = self.returncode
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"gave status {code}"
        last = self.stderr.strip().splitlines()[-1:] or self.stdout.strip().splitlines()[-1:]
        said = f": {last[0]}" if last else ""
        raise ProgramFailed(f"{shlex.join(self.argv)} in {self.host} {how}{said}")


class Job:
    """A running program.

    Attributes
    ----------
    stdin, stdout, stderr
        Binary streams where `PIPE` was asked for, otherwise ``None``.
    """

    def __init__(self, connection: LabRequests, host: str, argv: Sequence[str], started: JobReply) -> None:
        self._connection = connection
        self.host = host
        self.argv: tuple[str, ...] = tuple(argv)
        self.number: int = started["job"]
        self.pid: int = started["pid"]
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._asked: PendingReply[JobEndedReply] | None = None
        self._begin()

    def _begin(self) -> None:
        """The program runs: ask at once how it ends."""
        self.ask()

    def ask(self) -> PendingReply[JobEndedReply]:
        """Ask how it ends, unless that was asked already, and return the answer to come."""
        if self._asked is None:
            self._asked = self._connection.wait_later(job=self.number)
        return self._asked

    def poll(self) -> Ending | None:
        """Return how it ended, ``None`` while it runs."""
        return self.wait() if self.ask().done() else None

    def wait(self, timeout: str | None = None) -> Ending:
        """Wait until the program ends; raises `TimeoutError` when it still runs after `timeout`."""
        ended = self.ask().result(duration_ps(timeout, "timeout") / 1e12 if timeout is not None else None)
        returncode = -ended["signal"] if ended["signal"] else ended["status"] or 0
        return Ending(returncode, ended["elapsed_ps"] / 1e12, ended["limit"])

    def signal(self, number: int) -> None:
        """Send signal `number` to the program's process group."""
        self._connection.signal(job=self.number, signal=int(number))

    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        self.signal(signals.SIGTERM)

    def kill(self) -> None:
        """End the program at once (SIGKILL)."""
        self.signal(signals.SIGKILL)

    def communicate(self, given: bytes | None = None) -> tuple[bytes, bytes]:
        """Write `given` to the program, read what it writes until it ends, and return stdout and stderr.

        What a program left running in the background keeps writing after the program itself ended is not waited for.
        """
        if given is not None and self.stdin is None:
            raise BadValue("the program's stdin is not a pipe", "start it with stdin=tn.lab.PIPE")
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.notify(wake)
        try:
            return _exchange(self, given, wake)
        finally:
            self.forget()
            os.close(wake)
            self.close_streams()

    def notify(self, eventfd: int) -> None:
        """Add 1 to `eventfd` when the program ends; :meth:`forget` undoes it."""
        self.ask().notify(eventfd)

    def forget(self) -> None:
        """Undo :meth:`notify`, before its descriptor is closed."""
        self.ask().forget()

    def _fed(self) -> None:
        """Note that it has all that it reads."""
        self.stdin = None

    def reader(self, pipe: int) -> IO[bytes]:
        """Return what reads `pipe`, which the program writes."""
        return os.fdopen(pipe, "rb", 0)

    def close_streams(self) -> None:
        """Close our ends of the program's pipes."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                # A program may close its stdin before it has read all; that is its right.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _exchange(job: Job, given: bytes | None, wake: int) -> tuple[bytes, bytes]:
    """Move bytes both ways until both outputs have ended, or the program has and its pipes are drained."""
    output: dict[int, bytearray] = {}
    left = memoryview(given or b"")
    with selectors.DefaultSelector() as selector:
        for stream in (job.stdout, job.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                output[stream.fileno()] = bytearray()
                selector.register(stream.fileno(), selectors.EVENT_READ)
        if job.stdin is not None:
            os.set_blocking(job.stdin.fileno(), False)
            selector.register(job.stdin.fileno(), selectors.EVENT_WRITE)
        selector.register(wake, selectors.EVENT_READ)
        opened = set(output)
        while True:
            ended = job.poll() is not None
            for key, _ in selector.select():
                if key.fd in output:
                    if not _drain(key.fd, output[key.fd]):
                        selector.unregister(key.fd)
                        opened.discard(key.fd)
                elif job.stdin is not None and key.fd == job.stdin.fileno():
                    left = _feed(key.fd, left)
                    if not left:
                        selector.unregister(key.fd)
                        job.stdin.close()
                        job.stdin = None
            if ended:
                for descriptor in opened:
                    _drain(descriptor, output[descriptor])
                break
    texts = [
        bytes(output.get(stream.fileno(), b"")) if stream is not None else b"" for stream in (job.stdout, job.stderr)
    ]
    return texts[0], texts[1]


def _drain(descriptor: int, into: bytearray) -> bool:
    """Read all that is there; return whether more may come."""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except BlockingIOError:
            return True
        if not piece:
            return False
        into += piece


def _feed(descriptor: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(descriptor, left[:65536]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        # The program no longer reads; what is left is of no use to it.
        return left[len(left) :]


def command_argv(command: str | Sequence[str], shell: bool = False) -> list[str]:
    """Return the program and arguments of `command`.

    Parameters
    ----------
    command
        A list, or text that is split as a shell would (without its operators).
    shell
        Whether the text is given to ``/bin/sh -c``.

    Raises
    ------
    BadValue
        For an empty command, or shell operators without ``shell=True``.

    Examples
    --------
    >>> command_argv("ping -c 3 'h 4'")
    ['ping', '-c', '3', 'h 4']
    """
    if not isinstance(command, str):
        argv = [os.fspath(one) for one in command]
    elif shell:
        return ["/bin/sh", "-c", command]
    else:
        operator = _shell_operator(command)
        if operator is not None:
            said = f"the command {command!r} has {operator!r}, which only a shell understands"
            raise BadValue(said, "give shell=True")
        try:
            argv = shlex.split(command)
        except ValueError as error:
            raise BadValue(f"the command {command!r} cannot be split: {error}", "close the quotation") from None
    if not argv or not argv[0]:
        raise BadValue("the command is empty", 'give a program, for example "ping -c 3 h4"')
    if any("\0" in one for one in argv):
        raise BadValue("the command has a NUL byte, which no program can be given")
    return argv


def _shell_operator(command: str) -> str | None:
    """Return the first operator of the shell in `command` that stands outside quotations."""
    quote = ""
    escaped = False
    for sign in command:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "|&;<>":
            return sign
    return None


def start_job(
    connection: LabRequests,
    host: str,
    argv: Sequence[str],
    streams: Sequence[Stream],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    limit_ps: int | None = None,
    kind: type[Job] = Job,
) -> Job:
    """Start `argv` in `host` with stdin, stdout and stderr as `streams` say (`PIPE`, `DEVNULL`, a descriptor or a
    file that is open)."""
    theirs: list[int] = []
    ours: list[int | None] = []
    close: list[int] = []
    started = False
    try:
        for index, stream in enumerate(streams):
            if stream == PIPE:
                read, write = os.pipe2(os.O_CLOEXEC)
                close.append(read if index == 0 else write)
                ours.append(write if index == 0 else read)
                theirs.append(read if index == 0 else write)
                continue
            ours.append(None)
            if stream == DEVNULL:
                close.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
                theirs.append(close[-1])
            else:
                theirs.append(stream if isinstance(stream, int) else stream.fileno())
        whole = dict(env) if env is not None else None
        begun = connection.spawn(host=host, argv=list(argv), env=whole, cwd=cwd, limit_ps=limit_ps, descriptors=theirs)
        job = kind(connection, host, argv, begun)
        started = True
    finally:
        for descriptor in close:
            os.close(descriptor)
        if not started:
            for kept in ours:
                if kept is not None:
                    os.close(kept)
    job.stdin = os.fdopen(ours[0], "wb", 0) if ours[0] is not None else None
    job.stdout, job.stderr = (job.reader(pipe) if pipe is not None else None for pipe in ours[1:])
    return job


def check_stream(stream: object, name: str) -> None:
    """Raise BadValue when `stream` cannot be the program's `name`: ``stdin``, ``stdout`` or ``stderr``."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        good = stream in (PIPE, DEVNULL) or stream >= 0
    else:
        try:
            good = cast("IO[Any]", stream).fileno() >= 0
        except (AttributeError, OSError):
            good = False
    if not good:
        remedy = f"open it: {name}=open({stream!r}, ...)" if isinstance(stream, (str, os.PathLike)) else ""
        raise BadValue(
            f"{name} is {stream!r}; allowed are tn.lab.PIPE, tn.lab.DEVNULL, a file that is open, or a descriptor",
            remedy,
        )


def run_job(job: Job, given: str | bytes | None, limit_ps: int | None, check: bool) -> Completed:
    """Carry `job` to its end and return what it wrote; it is killed when waiting is interrupted."""
    try:
        out, err = job.communicate(given.encode() if isinstance(given, str) else given)
    except BaseException:
        # The job may have ended, or its lab; the first error is the one to tell.
        with contextlib.suppress(LabError, OSError):
            job.kill()
        raise
    end = job.wait()
    texts = (out.decode(errors="replace"), err.decode(errors="replace"))
    completed = Completed(end.returncode, end.elapsed_s, end.timed_out, job.host, job.argv, *texts)
    if end.timed_out and limit_ps is not None:
        said = f"{shlex.join(job.argv)} in {job.host} did not end within {format_duration(limit_ps)} and was killed"
        error = TimeLimit(said, "allow more time with timeout=")
        error.completed = completed
        raise error
    return completed.check() if check else completed


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
