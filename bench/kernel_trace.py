"""What the kernel's own tracer saw of a run: who had each processor, softirqs, and the system calls of one thread.

The tracer is set up in an instance of its own (``Documentation/trace/ftrace.rst``), which others do not see and which
vanishes with it. It needs root, and a kernel with ``CONFIG_FTRACE`` and ``CONFIG_FTRACE_SYSCALLS``; nothing is loaded.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["Event", "KernelTrace", "events_of"]

_BUFFER_KB = 64 * 1024
"""For each processor: some 20 s of a busy lab."""
_EVERYWHERE = ("sched/sched_switch", "sched/sched_stat_runtime", "irq/softirq_entry", "irq/softirq_exit")
_OF_THE_THREAD = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "timer/hrtimer_start", "sched/sched_waking")
_LINE = re.compile(
    r"\s*(?P<task>.+)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<at>\d+\.\d+): (?P<name>\w+): (?P<told>.*)"
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the trace.

    Parameters
    ----------
    at_us
        When, in microseconds of ``CLOCK_MONOTONIC``.
    processor
        On which processor.
    task, pid
        The thread that had it.
    name
        The kernel's name of the event.
    told
        What it tells, in the kernel's words.
    """

    at_us: float
    processor: int
    task: str
    pid: int
    name: str
    told: str


class KernelTrace:
    """Traces while it is open (``with``), and is read after that.

    Parameters
    ----------
    thread
        The name of the threads whose system calls, timers and wake-ups are traced too.

    Raises
    ------
    OSError
        When the kernel has no tracer, or does not let this user have it.
    """

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._stack = contextlib.ExitStack()
        self.lost = 0
        """Events for which the tracer had no room."""
        self.text = ""
        """The trace, as the kernel writes it."""

    def __enter__(self) -> KernelTrace:
        self._folder = self._stack.enter_context(_instance())
        self._set("trace_clock", "mono")
        self._set("buffer_size_kb", str(_BUFFER_KB))
        for event in _EVERYWHERE + _OF_THE_THREAD:
            if event in _OF_THE_THREAD:
                self._set(f"events/{event}/filter", f'comm == "{self._thread}"')
            self._set(f"events/{event}/enable", "1")
        self._set("tracing_on", "1")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._set("tracing_on", "0")
            if kind is None:
                self.text = (self._folder / "trace").read_text(errors="replace")
                counts = (path.read_text() for path in self._folder.glob("per_cpu/cpu*/stats"))
                self.lost = sum(int(lost) for text in counts for lost in re.findall(r"^overrun: (\d+)", text, re.M))

    def _set(self, name: str, value: str) -> None:
        (self._folder / name).write_text(value)


@contextlib.contextmanager
def _instance() -> Generator[Path]:
    """Yield the folder of a tracer of our own, which begins switched off."""
    # The file system of the tracer is mounted in a namespace of its own, so that the machine's mounts stay as they are.
    ready = "mount -t tracefs none /sys/kernel/tracing && echo ready && exec cat >/dev/null"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", ready], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as keeper:
        if keeper.stdout is None or keeper.stdout.readline().strip() != "ready":
            keeper.kill()
            raise OSError("the kernel's tracer cannot be had; run as root, with a kernel that has CONFIG_FTRACE")
        folder = Path(f"/proc/{keeper.pid}/root/sys/kernel/tracing/instances/twinnet-{os.getpid()}")
        try:
            folder.mkdir()
            (folder / "tracing_on").write_text("0")
            yield folder
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()
            keeper.kill()


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of a trace; other lines are comments."""
    for line in lines:
        found = _LINE.match(line)
        if found is not None:
            task, pid, cpu, at, name, told = found.groups()
            yield Event(float(at) * 1e6, int(cpu), task.strip(), int(pid), name, told)
