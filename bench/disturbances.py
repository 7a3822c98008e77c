"""What the verdict's campaign does to a lab at work, at ten strengths each. All of it ends with the block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import twinnet as tn

__all__ = ["DISTURBANCES", "STRENGTHS", "NotPermitted", "busy_programs"]

STRENGTHS = range(1, 11)
_STOPS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500)
_SPIN = """
import os, sys, time
share, period, policy, processor = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
if processor != "any":
    os.sched_setaffinity(0, {int(processor)})
if policy == "fifo":
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
while os.getppid() == int(sys.argv[5]):
    end = time.monotonic() + period * share
    while time.monotonic() < end:
        pass
    if share < 1:
        time.sleep(period * (1 - share))
"""
_THRASH = """
import mmap, os, sys, tempfile
size = int(sys.argv[1]) << 20
with tempfile.TemporaryFile(dir=sys.argv[2]) as file:
    file.truncate(size)
    area = mmap.mmap(file.fileno(), size)
    while os.getppid() == int(sys.argv[3]):
        for place in range(0, size, 4096):
            area[place] = 1
"""


class NotPermitted(Exception):
    """This machine does not let the disturbance be made; why."""


def _task(lab: tn.Lab, name: str) -> int:
    """The thread of the lab process with this name."""
    for task in Path(f"/proc/{lab.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise NotPermitted(f"the lab has no thread named {name}")


@contextmanager
def _programs(*commands: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        started: list[subprocess.Popen[bytes]] = []
        for command in commands:
            program = subprocess.Popen([sys.executable, "-c", *command], stderr=subprocess.DEVNULL)
            stack.callback(program.wait)
            stack.callback(program.kill)
            started.append(program)
        yield started


def _spinner(share: float, period_s: float, policy: str = "other", processor: int | None = None) -> list[str]:
    where = "any" if processor is None else str(processor)
    return [_SPIN, str(share), str(period_s), policy, where, str(os.getpid())]


@contextmanager
def _stop_lab(lab: tn.Lab, strength: int) -> Iterator[None]:
    """The lab process is stopped four times for 1 to 500 ms."""
    ended = threading.Event()
    pid, length_s = lab.pid, _STOPS_MS[strength - 1] / 1000

    def stop() -> None:
        for _ in range(4):
            if ended.wait(0.3):
                return
            os.kill(pid, signal.SIGSTOP)
            try:
                ended.wait(length_s)
            finally:
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def busy_programs(strength: int) -> Iterator[None]:
    """Two ordinary programs for each processor, busy for a tenth to all of the time."""
    count = 2 * (os.cpu_count() or 1)
    with _programs(*[_spinner(strength / 10, 0.05)] * count):
        yield


def _busy(lab: tn.Lab, strength: int) -> AbstractContextManager[None]:
    return busy_programs(strength)


@contextmanager
def _starved_hosts(lab: tn.Lab, strength: int) -> Iterator[None]:
    """The thread that runs the hosts' apps has the lowest class, and programs are busy on all processors."""
    agent = _task(lab, "agent")
    os.sched_setscheduler(agent, os.SCHED_IDLE, os.sched_param(0))
    with busy_programs(strength):
        yield


@contextmanager
def _stopped_hosts(lab: tn.Lab, strength: int) -> Iterator[None]:
    """The thread that runs the hosts' apps, senders and receivers, is stopped four times for 1 to 500 ms."""
    root = Path("/sys/fs/cgroup/freezer")
    group = root / f"twinnet-bench-{os.getpid()}"
    agent = str(_task(lab, "agent"))
    try:
        group.mkdir()
        (group / "tasks").write_text(agent)
    except OSError as error:
        raise NotPermitted(f"a single thread cannot be stopped: {error}") from None
    ended = threading.Event()

    def stop() -> None:
        for _ in range(4):
            if ended.wait(0.3):
                return
            (group / "freezer.state").write_text("FROZEN")
            try:
                ended.wait(_STOPS_MS[strength - 1] / 1000)
            finally:
                (group / "freezer.state").write_text("THAWED")

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        (root / "tasks").write_text(agent)
        group.rmdir()


@contextmanager
def _hog(lab: tn.Lab, strength: int) -> Iterator[None]:
    """A real-time program on the loop's processor, for 5 to 50 ms in each tenth of a second."""
    loop = _task(lab, "fabric")
    # The last field but some: docs of proc(5), field 39, counted behind the name's bracket.
    processor = int(Path(f"/proc/{lab.pid}/task/{loop}/stat").read_text().rsplit(")", 1)[1].split()[36])
    with _programs(_spinner(strength / 20, 0.1, "fifo", processor)):
        yield


@contextmanager
def _quota(lab: tn.Lab, strength: int) -> Iterator[None]:
    """The lab's control group may use 100 down to 10 ms of processor time in each tenth of a second."""
    quota_us = 110_000 - 10_000 * strength
    version_1 = Path("/sys/fs/cgroup/cpu")
    root = version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")
    group = root / f"twinnet-bench-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise NotPermitted(f"no control group can be made: {error}") from None
    try:
        if root == version_1:
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
            # Kernels that schedule real-time threads by groups admit none to a group without a share of their own.
            share = group / "cpu.rt_runtime_us"
            if share.exists():
                share.write_text("900000")
        else:
            (group / "cpu.max").write_text(f"{quota_us} 100000")
        try:
            (group / "cgroup.procs").write_text(str(lab.pid))
        except OSError as error:
            raise NotPermitted(f"the lab cannot be moved into a control group: {error}") from None
        try:
            yield
        finally:
            (root / "cgroup.procs").write_text(str(lab.pid))
    finally:
        group.rmdir()


@contextmanager
def _memory(lab: tn.Lab, strength: int) -> Iterator[None]:
    """A program writes through 40 to 130 MB of a file though its control group may have 32 MB."""
    version_1 = Path("/sys/fs/cgroup/memory")
    root = version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")
    group = root / f"twinnet-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if root == version_1 else "memory.max")).write_text(str(32 << 20))
    except OSError as error:
        raise NotPermitted(f"no control group for memory can be made: {error}") from None
    try:
        command = [_THRASH, str(30 + 10 * strength), "/var/tmp", str(os.getpid())]
        with _programs(command) as (program,):
            (group / "cgroup.procs").write_text(str(program.pid))
            yield
    finally:
        group.rmdir()


@contextmanager
def _slow_timers(lab: tn.Lab, strength: int) -> Iterator[None]:
    """The timers of the lab's ordinary threads may fire 1 to 10 ms late."""
    for name in ("agent", "fabric"):
        place = Path(f"/proc/{_task(lab, name)}/timerslack_ns")
        try:
            place.write_text(str(strength * 1_000_000))
        except OSError as error:
            raise NotPermitted(f"the slack of timers cannot be set: {error}") from None
    yield


Disturbance = Callable[[tn.Lab, int], AbstractContextManager[None]]
DISTURBANCES: Mapping[str, Disturbance] = {
    "the lab is stopped": _stop_lab,
    "busy programs": _busy,
    "starved hosts": _starved_hosts,
    "stopped hosts": _stopped_hosts,
    "a real-time hog": _hog,
    "a quota": _quota,
    "memory pressure": _memory,
    "slow timers": _slow_timers,
}
