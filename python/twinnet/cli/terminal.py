"""Programs on a terminal: a pseudo-terminal in the lab, joined with the user's own while the program runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator, Sequence

from twinnet.lab.lab import Lab
from twinnet.lab_process.job import Ending, Job

__all__ = ["on_terminal", "run_on_terminal"]


def on_terminal() -> bool:
    """Return whether the user sits at a terminal, with input and output."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def run_on_terminal(lab: Lab, host: str, argv: Sequence[str], cwd: str | None = None) -> Ending:
    """Run `argv` in `host` on a pseudo-terminal that is joined with the user's terminal, and return how it ended."""
    master, slave = os.openpty()
    try:
        _copy_size(sys.stdin.fileno(), slave)
        started = lab.connection.spawn(
            host=host, argv=list(argv), env=dict(os.environ), cwd=cwd, terminal=True, descriptors=[slave]
        )
        job = Job(lab.connection, host, argv, started)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
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
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)
