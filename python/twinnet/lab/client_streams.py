"""The streams of a program on the virtual clock that another process has started: pipes, files and terminals of that
process, which may be slow while the lab is to go on."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from twinnet.errors import BadValue

__all__ = ["Feeder", "SlowReader", "is_whole", "whole_input"]

_PIECE = 4096
"""What a pipe takes whole once it takes anything."""
_FULL_BYTES = 1 << 20
_LOOK_S = 0.05
_ENDS_WITHIN_S = 5.0
_MOST_BYTES = 256 << 20


def is_whole(descriptor: int) -> bool:
    """Return whether all that can be read there is there already."""
    found = os.fstat(descriptor)
    nothing = stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev
    return stat.S_ISREG(found.st_mode) or nothing


def whole_input(descriptor: int) -> bytes:
    """Return all that can be read there, to its end.

    Raises
    ------
    BadValue
        It has no end, or not soon enough, or is too long.
    """
    if os.isatty(descriptor):
        raise _endless("it is a terminal")
    kept = bytearray()
    while is_whole(descriptor) or select.select([descriptor], [], [], _ENDS_WITHIN_S)[0]:
        if not (piece := os.read(descriptor, _FULL_BYTES)):
            return bytes(kept)
        kept += piece
        if len(kept) > _MOST_BYTES:
            raise _endless(f"it holds more than {_MOST_BYTES >> 20} MiB")
    raise _endless(f"nothing came for {_ENDS_WITHIN_S:g} s of real time, and no end")


def _endless(why: str) -> BadValue:
    return BadValue(
        f"the program's stdin is read whole before it starts, for time stands meanwhile: {why}",
        "give input=, or a file; or take stdin=tn.lab.PIPE and write to job.stdin when the lab's clock says so",
    )


class SlowReader:
    """Writes to `descriptor`, which it owns, from a thread of its own: whoever reads it may take long.

    Parameters
    ----------
    descriptor
        A pipe, a file or a terminal.
    change
        What returns what is to be written in place of what is taken in; ``None``: all is written.
    """

    def __init__(self, descriptor: int, change: Callable[[bytes], bytes] | None = None) -> None:
        self._descriptor = descriptor
        self._change = change
        self._changed = threading.Condition()
        self._pieces: deque[bytes] = deque()
        self._left = 0
        self._users = 1
        self._over = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._write, name="twinnet-client-output", daemon=True)
        self._thread.start()

    def join_in(self) -> None:
        """One more stream is written here."""
        self._users += 1

    def take_in(self, data: bytes) -> None:
        """Write `data` when those before it are written."""
        if self._change is not None:
            data = self._change(data)
        with self._changed:
            if data and not self._over:
                self._pieces.append(data)
                self._left += len(data)
                self._changed.notify_all()

    def end(self) -> None:
        """One of the streams has ended; after the last one, and what is left, the descriptor is closed."""
        with self._changed:
            self._users -= 1
            self._changed.notify_all()

    @property
    def full(self) -> bool:
        """Whether so much is left that the program should wait."""
        return self._left > _FULL_BYTES

    def wait_for_room(self, given_up: Callable[[], bool]) -> None:
        """Wait until it is not full, or `given_up` says yes."""
        self._wait(lambda: not self.full, given_up)

    def wait_written(self, given_up: Callable[[], bool]) -> None:
        """Wait until all is written, or cannot be, or `given_up` says yes."""
        self._wait(lambda: self._left == 0, given_up)

    def abandon(self) -> None:
        """Write no more, and close the descriptor."""
        with self._changed:
            self._users = 0
            self._pieces.clear()
            self._changed.notify_all()
            if not self._over:
                os.eventfd_write(self._stop, 1)
        self._thread.join()

    def _wait(self, reached: Callable[[], bool], given_up: Callable[[], bool]) -> None:
        with self._changed:
            while not (self._over or reached() or given_up()):
                self._changed.wait(_LOOK_S)

    def _write(self) -> None:
        try:
            while (data := self._next()) is not None:
                self._write_out(memoryview(data))
        except OSError:
            # Nobody reads it any more, or its disk is full: the program goes on without it, as it does when its own
            # file cannot be written.
            pass
        with self._changed:
            self._over = True
            self._left = 0
            self._changed.notify_all()
            os.close(self._descriptor)
            os.close(self._stop)

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._users <= 0)
            return self._pieces.popleft() if self._pieces else None

    def _write_out(self, left: memoryview) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        poll.register(self._stop, select.POLLIN)
        while left:
            if any(number == self._stop for number, _ in poll.poll()):
                return
            written = os.write(self._descriptor, left[:_PIECE])
            left = left[written:]
            with self._changed:
                self._left -= written
                self._changed.notify_all()


class Feeder:
    """Reads `descriptor`, which it owns, in a thread of its own and calls `feed` with what comes, and with ``None`` at
    the end."""

    def __init__(self, descriptor: int, feed: Callable[[bytes | None], None]) -> None:
        self._descriptor = descriptor
        self._feed = feed
        self._changed = threading.Condition()
        self._over = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._read, name="twinnet-client-input", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait until all that was written so far is fed."""
        with self._changed:
            while not self._over and select.select([self._descriptor], [], [], 0)[0]:
                self._changed.wait(_LOOK_S)

    def abandon(self) -> None:
        """Read no more, and close the descriptor."""
        with self._changed:
            if not self._over:
                os.eventfd_write(self._stop, 1)
        self._thread.join()

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        data: bytes | None = b""
        while data is not None:
            if any(number == self._stop for number, _ in poll.poll()):
                break
            try:
                data = os.read(self._descriptor, 1 << 16) or None
            except OSError:
                data = None
            self._feed(data)
            with self._changed:
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()
            os.close(self._descriptor)
            os.close(self._stop)
