"""Running other programs, and reading what they write, as Mininet's scripts do."""

from __future__ import annotations

import codecs
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fcntl import F_GETFL, F_SETFL, fcntl
from select import POLLHUP, POLLIN, poll
from subprocess import PIPE, STDOUT, Popen
from typing import Any, NamedTuple

from twinnet.mininet.log import debug, error, info, output

__all__ = [
    "CmdResult",
    "checkRun",
    "decode",
    "encode",
    "errFail",
    "errRun",
    "getincrementaldecoder",
    "isShellBuiltin",
    "oldQuietRun",
    "pmonitor",
    "quietRun",
    "retry",
    "run",
    "which",
]

getincrementaldecoder: Callable[..., codecs.IncrementalDecoder] = codecs.getincrementaldecoder("utf-8")


def decode(buf: bytes) -> str:
    """Return the text of `buf`."""
    return buf.decode(errors="replace")


def encode(buf: str) -> bytes:
    """Return the bytes of the text `buf`."""
    return buf.encode(errors="surrogateescape")


def run(cmd: str) -> int:
    """Run `cmd`, split at blanks, and return its status."""
    return subprocess.call(cmd.split(" "))


def checkRun(cmd: str) -> int:
    """Run `cmd`; raises `subprocess.CalledProcessError` unless its status is 0."""
    return subprocess.check_call(cmd.split(" "))


class CmdResult(NamedTuple):
    """What a program wrote, and its status."""

    out: str
    err: str
    ret: int


def errRun(*cmd: Any, **kwargs: Any) -> CmdResult:
    """Run `cmd`, a text that is split at blanks, a list, or several words.

    Parameters
    ----------
    kwargs
        ``stderr=STDOUT`` joins both outputs, ``shell=True`` gives the text to a shell, ``echo=True`` shows both
        outputs as they come.
    """
    stderr, shell, echo = kwargs.get("stderr", PIPE), kwargs.get("shell", False), kwargs.get("echo", False)
    given: Any = cmd[0] if len(cmd) == 1 else list(cmd)
    if echo:
        info(given, "\n")
    if shell:
        given = given if isinstance(given, str) else " ".join(str(one) for one in given)
    else:
        given = given.split() if isinstance(given, str) else [str(one) for one in given]
    debug("*** errRun:", given, "\n")
    with Popen(given, stdout=PIPE, stderr=stderr, shell=shell) as process:
        out, err = (decode(text or b"") for text in process.communicate())
        status = process.returncode
    if echo:
        output(out + err)
    return CmdResult(out, err, status)


def errFail(*cmd: Any, **kwargs: Any) -> CmdResult:
    """As :func:`errRun`; raises `Exception` unless the status is 0."""
    result = errRun(*cmd, **kwargs)
    if result.ret:
        raise Exception(f"errFail: {cmd} failed with return code {result.ret}: {result.err}")
    return result


def quietRun(cmd: str | list[str], **kwargs: Any) -> str:
    """Return what `cmd` writes to both outputs."""
    return errRun(cmd, stderr=STDOUT, **kwargs).out


def oldQuietRun(*cmd: Any) -> str:
    """Return what `cmd` writes to both outputs."""
    return errRun(*cmd, stderr=STDOUT).out


def which(cmd: str, **_kwargs: Any) -> str | None:
    """Return the path of the program `cmd`, if it is installed."""
    return shutil.which(cmd)


def isShellBuiltin(cmd: str) -> bool:
    """Return whether `cmd` begins with a command of bash itself."""
    if not _builtins:
        _builtins.update(quietRun(["bash", "-c", "enable"]).split())
    return cmd.split(" ")[0] in _builtins


_builtins: set[str] = set()


def retry(retries: int, delaySecs: float, fn: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    """Call `fn` until its result is true, at most `retries` times more, `delaySecs` seconds apart; then give up and
    end the script."""
    for _ in range(retries):
        if fn(*args, **keywords):
            return
        time.sleep(delaySecs)
    if not fn(*args, **keywords):
        error(f"*** gave up after {retries} retries\n")
        sys.exit(1)


def pmonitor(
    popens: dict[Any, Popen[Any]], timeoutms: int | None = 500, readline: bool = True, readmax: int = 1024
) -> Iterator[tuple[Any, str]]:
    """Yield what the processes `popens` write, by key, until all have ended.

    Parameters
    ----------
    popens
        Processes whose stdout is a pipe; those that end are taken out.
    timeoutms
        After so many milliseconds without output ``(None, '')`` is yielded.
    readline
        Whether lines are yielded; otherwise pieces of `readmax` characters.
    """
    poller = poll()
    keys: dict[int, Any] = {}
    decoders: dict[int, codecs.IncrementalDecoder] = {}
    for key, process in popens.items():
        if process.stdout is None:
            continue
        descriptor = process.stdout.fileno()
        keys[descriptor], decoders[descriptor] = key, getincrementaldecoder(errors="replace")
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | os.O_NONBLOCK)
        poller.register(descriptor, POLLIN)
    while popens:
        ready = poller.poll(timeoutms)
        if not ready:
            yield None, ""
            continue
        for descriptor, event in ready:
            key = keys[descriptor]
            for piece in _pieces(popens[key].stdout, readline, readmax):
                yield key, piece if isinstance(piece, str) else decoders[descriptor].decode(piece)
            if event & POLLHUP:
                poller.unregister(descriptor)
                del popens[key]


def _pieces(stream: Any, readline: bool, readmax: int) -> Iterator[str | bytes]:
    """Yield what is there to be read of `stream`, which does not block."""
    while True:
        try:
            piece = stream.readline() if readline else stream.read(readmax)
        except (OSError, TypeError):
            return
        if not piece:
            return
        yield piece
