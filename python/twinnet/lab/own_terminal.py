"""The user's own terminal, joined with that of a program while it runs."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from twinnet.lab_process.job import Ending, Job

__all__ = ["is_terminal", "join_terminals", "on_terminal"]


def on_terminal() -> bool:
    """Return whether the user sits at a terminal, with input and output."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether `stream` is a terminal; ``None``, a stream of this process that is closed, is none."""
    return stream is not None and stream.isatty()


def join_terminals(start: Callable[[tuple[int, int]], tuple[Job, int]]) -> Ending:
    """Join the user's terminal with that of the program that `start` starts until it ends, and return how it ended.

    Parameters
    ----------
    start
        Called with the rows and columns of the user's terminal; returns the program and its terminal's master.
    """
    job, master = start(termios.tcgetwinsize(sys.stdin.fileno()))
    wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    job.notify(wake)
    try:
        with _raw(sys.stdin.fileno()), _resizing(lambda: _copy_size(sys.stdin.fileno(), master)):
            _join(master, wake)
    finally:
        job.forget()
        os.close(wake)
        os.close(master)
    return job.wait()


def _join(master: int, wake: int) -> None:
    """Copy bytes both ways until the program has ended and its last output is shown."""
    keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
    watched = [master, wake, keyboard]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if keyboard in ready:
            typed = os.read(keyboard, 4096)
            if typed:
                os.write(master, typed)
            else:
                watched.remove(keyboard)
        if master in ready and not _show(master, screen):
            watched.remove(master)
        if wake in ready:
            while master in watched and select.select([master], [], [], 0)[0] and _show(master, screen):
                pass
            return


def _show(master: int, screen: int) -> bool:
    try:
        output = os.read(master, 65536)
    except OSError:
        # EIO: the last program on the pseudo-terminal has closed it.
        return False
    left = memoryview(output)
    while left:
        left = left[os.write(screen, left) :]
    return bool(output)


@contextlib.contextmanager
def _raw(terminal: int) -> Generator[None]:
    before = termios.tcgetattr(terminal)
    # Not TCSAFLUSH, the default: what was typed ahead is for the program.
    tty.setraw(terminal, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _resizing(resized: Callable[[], None]) -> Generator[None]:
    before = signal.signal(signal.SIGWINCH, lambda number, frame: resized())
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _copy_size(source: int, target: int) -> None:
    with contextlib.suppress(termios.error):
        termios.tcsetwinsize(target, termios.tcgetwinsize(source))
