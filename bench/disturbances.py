"""What the verdict's campaign does to a lab at work, at ten strengths each. All of it ends with the block.

Each disturbance has a counter of the lab's record by which it is seen to disturb. One without is no disturbance: timers
of real-time threads have no slack on Linux, and a quota passes real-time threads by, so for that the lab's threads are
ordinary.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import twinnet as tn

__all__ = [
    "DISTURBANCES",
    "OF_APPS",
    "OF_PROGRAMS",
    "SEEN_BY",
    "STRENGTHS",
    "Disturbance",
    "NotPermitted",
    "busy_programs",
    "debugged",
    "frozen",
    "short_hog_beside",
]

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
def _at_times(seconds: float, length_s: float, stop: Callable[[], None], go_on: Callable[[], None]) -> Iterator[None]:
    """Stop something four times for `length_s` in a run of `seconds`, once in one that is shorter than a second; what
    is stopped goes on when the block ends."""
    ended = threading.Event()
    times = 4 if seconds >= 1 else 1

    def work() -> None:
        begin = time.monotonic()
        for number in range(times):
            if ended.wait(max(begin + seconds * (number + 0.5) / (times + 0.5) - time.monotonic(), 0.0)):
                return
            stop()
            try:
                ended.wait(length_s)
            finally:
                go_on()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _stop_lab(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The lab process is stopped for 1 to 500 ms."""
    pid = lab.pid
    with _at_times(
        seconds,
        _STOPS_MS[strength - 1] / 1000,
        lambda: os.kill(pid, signal.SIGSTOP),
        lambda: os.kill(pid, signal.SIGCONT),
    ):
        yield


def _programs_of(lab: tn.Lab) -> list[int]:
    """The programs that the lab's hosts run, as this process sees them: all that descend from the lab but its own
    processes."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        # A process may end at any moment.
        with suppress(OSError):
            own = (folder / "cmdline").read_text().startswith("twinnet: ") if folder.name.isdigit() else True
            if not own and lab.pid in _parents(int(folder.name)):
                found.append(int(folder.name))
    return found


def _parents(pid: int) -> list[int]:
    """The parents of a process up to the machine's first."""
    found: list[int] = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


@contextmanager
def _stop_program(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The programs of hosts that run by now, servers, are stopped by a signal for 1 to 500 ms."""
    programs = _programs_of(lab)
    if not programs:
        raise NotPermitted("no host runs a program")

    def send(number: int) -> None:
        for pid in programs:
            os.kill(pid, number)

    length_s = _STOPS_MS[strength - 1] / 1000
    with _at_times(seconds, length_s, lambda: send(signal.SIGSTOP), lambda: send(signal.SIGCONT)):
        yield


_LIBC = ctypes.CDLL(None, use_errno=True)
_SEIZE, _INTERRUPT, _DETACH, _WAIT_FOR_ANY = 0x4206, 0x4207, 17, 0x40000000


def _ptrace(request: int, thread: int) -> None:
    if _LIBC.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of {thread}")


@contextmanager
def debugged(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """A debugger attaches to the programs that hosts run by now, and lets them go on after 1 to 500 ms."""
    programs = _programs_of(lab)
    if not programs:
        raise NotPermitted("no host runs a program")
    attached: list[int] = []

    def attach() -> None:
        for pid in programs:
            for thread in (int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()):
                # A thread may end at any moment.
                with suppress(OSError):
                    _ptrace(_SEIZE, thread)
                    attached.append(thread)
                    _ptrace(_INTERRUPT, thread)
                    os.waitpid(thread, _WAIT_FOR_ANY)

    def detach() -> None:
        while attached:
            with suppress(OSError):
                _ptrace(_DETACH, attached.pop())

    with _at_times(seconds, _STOPS_MS[strength - 1] / 1000, attach, detach):
        yield


_VERSION_2 = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))


@contextmanager
def frozen(lab: tn.Lab, strength: int, seconds: float, version: int | None = None) -> Iterator[None]:
    """The control group of the programs that hosts run by now is frozen for 1 to 500 ms, as containers are that pause:
    one of version 2 where there is one, or of `version`."""
    programs = _programs_of(lab)
    if not programs:
        raise NotPermitted("no host runs a program")
    second = next((root for root in _VERSION_2 if (root / "cgroup.procs").exists()), None)
    root = second if version != 1 and second is not None else Path("/sys/fs/cgroup/freezer")
    group = root / f"twinnet-bench-{os.getpid()}"
    file, on, off = ("cgroup.freeze", "1", "0") if root == second else ("freezer.state", "FROZEN", "THAWED")
    if version == 2 and second is None:
        raise NotPermitted("this machine has no control groups of version 2")
    try:
        group.mkdir()
    except OSError as error:
        raise NotPermitted(f"no control group can be made: {error}") from None
    try:
        for pid in programs:
            (group / "cgroup.procs").write_text(str(pid))
        state = group / file
        with _at_times(seconds, _STOPS_MS[strength - 1] / 1000, lambda: _write(state, on), lambda: _write(state, off)):
            yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(pid)
        group.rmdir()


def _put_programs_apart(lab: tn.Lab) -> int:
    """Have the hosts' programs stand on one processor and the lab on the others; return the programs'."""
    programs = _programs_of(lab)
    processor = (os.cpu_count() or 1) - 1
    if not programs:
        raise NotPermitted("no host runs a program")
    for pid in programs:
        os.sched_setaffinity(pid, {processor})
    for name in ("fabric", "agent"):
        os.sched_setaffinity(_task(lab, name), set(range(max(processor, 1))))
    return processor


@contextmanager
def _hog_beside(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The hosts' programs stand on one processor, beside a real-time program that takes 2 to 20 ms of each tenth of a
    second there; the loop does not."""
    with _programs(_spinner(strength / 50, 0.1, "fifo", _put_programs_apart(lab))):
        yield


@contextmanager
def short_hog_beside(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The same, with 0.7 to 7 ms of each 20 ms."""
    with _programs(_spinner(0.035 * strength, 0.02, "fifo", _put_programs_apart(lab))):
        yield


@contextmanager
def _busy_beside(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The hosts' programs share one processor with an ordinary program that is busy for a tenth to all of the time."""
    with _programs(_spinner(strength / 10, 0.05, processor=_put_programs_apart(lab))):
        yield


@contextmanager
def _quota_of_programs(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The control group of the programs that hosts run by now may use 100 down to 10 ms of each tenth of a second."""
    programs = _programs_of(lab)
    if not programs:
        raise NotPermitted("no host runs a program")
    with _quota_for(programs, 110_000 - 10_000 * strength):
        yield


@contextmanager
def busy_programs(strength: int) -> Iterator[None]:
    """Two ordinary programs for each processor, busy for a tenth to all of the time."""
    count = 2 * (os.cpu_count() or 1)
    with _programs(*[_spinner(strength / 10, 0.05)] * count):
        yield


def _busy(lab: tn.Lab, strength: int, seconds: float) -> AbstractContextManager[None]:
    return busy_programs(strength)


@contextmanager
def _starved_hosts(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The thread that runs the hosts' apps has the lowest class, and programs are busy on all processors."""
    agent = _task(lab, "agent")
    os.sched_setscheduler(agent, os.SCHED_IDLE, os.sched_param(0))
    with busy_programs(strength):
        yield


@contextmanager
def _stopped_hosts(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The thread that runs the hosts' apps, senders and receivers, is stopped for 1 to 500 ms."""
    root = Path("/sys/fs/cgroup/freezer")
    group = root / f"twinnet-bench-{os.getpid()}"
    agent = str(_task(lab, "agent"))
    try:
        group.mkdir()
        (group / "tasks").write_text(agent)
    except OSError as error:
        raise NotPermitted(f"a single thread cannot be stopped: {error}") from None
    state = group / "freezer.state"
    try:
        with _at_times(
            seconds,
            _STOPS_MS[strength - 1] / 1000,
            lambda: _write(state, "FROZEN"),
            lambda: _write(state, "THAWED"),
        ):
            yield
    finally:
        (root / "tasks").write_text(agent)
        group.rmdir()


def _write(place: Path, text: str) -> None:
    place.write_text(text)


@contextmanager
def _hog(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """A real-time program on the loop's processor, for 5 to 50 ms in each tenth of a second."""
    loop = _task(lab, "fabric")
    # The last field but some: docs of proc(5), field 39, counted behind the name's bracket.
    processor = int(Path(f"/proc/{lab.pid}/task/{loop}/stat").read_text().rsplit(")", 1)[1].split()[36])
    with _programs(_spinner(strength / 20, 0.1, "fifo", processor)):
        yield


@contextmanager
def _quota(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
    """The lab's control group may use 100 down to 10 ms of processor time in each tenth of a second. Its threads are
    ordinary meanwhile, for the kernel applies a quota to no others."""
    for task in Path(f"/proc/{lab.pid}/task").iterdir():
        os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))
    with _quota_for([lab.pid], 110_000 - 10_000 * strength):
        yield


@contextmanager
def _quota_for(processes: list[int], quota_us: int) -> Iterator[None]:
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
        else:
            (group / "cpu.max").write_text(f"{quota_us} 100000")
        try:
            for process in processes:
                (group / "cgroup.procs").write_text(str(process))
        except OSError as error:
            raise NotPermitted(f"it cannot be moved into a control group: {error}") from None
        try:
            yield
        finally:
            for process in (group / "cgroup.procs").read_text().split():
                (root / "cgroup.procs").write_text(process)
    finally:
        group.rmdir()


@contextmanager
def _memory(lab: tn.Lab, strength: int, seconds: float) -> Iterator[None]:
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


Disturbance = Callable[[tn.Lab, int, float], AbstractContextManager[None]]
DISTURBANCES: Mapping[str, Disturbance] = {
    "the lab is stopped": _stop_lab,
    "busy programs": _busy,
    "starved hosts": _starved_hosts,
    "stopped hosts": _stopped_hosts,
    "a real-time hog": _hog,
    "a quota": _quota,
    "memory pressure": _memory,
    "a stopped program": _stop_program,
    "a hog beside programs": _hog_beside,
    "a short hog beside programs": short_hog_beside,
    "programs beside a busy one": _busy_beside,
    "a quota of programs": _quota_of_programs,
    "a debugger": debugged,
    "a frozen group": frozen,
}
"""What is done to a lab, how strongly (one of `STRENGTHS`) and within how many seconds."""
OF_PROGRAMS = (
    "a stopped program",
    "a hog beside programs",
    "a short hog beside programs",
    "programs beside a busy one",
    "a quota of programs",
    "a debugger",
    "a frozen group",
    "a slow receiver",
)
"""Those that need programs of hosts. A slow receiver is no deed of the machine: the case itself makes it."""
OF_APPS = ("starved hosts", "stopped hosts")
"""Those of the thread that runs the built-in apps."""

_SeenBy = Callable[[tn.FidelityRecord], float]


def _worst_wait(name: str) -> _SeenBy:
    return lambda record: record.took(name).worst_second_s


def _agent_pause(record: tn.FidelityRecord) -> float:
    return record.agent.pauses_ps.get("longest", 0) / 1e12 if record.agent is not None else 0.0


SEEN_BY: Mapping[str, _SeenBy] = {
    "the lab is stopped": lambda record: record.longest_pause_ps / 1e12,
    "busy programs": _worst_wait("processor_pressure"),
    "starved hosts": _worst_wait("agent_waited"),
    "stopped hosts": _agent_pause,
    "a real-time hog": _worst_wait("fabric_waited"),
    "a quota": _worst_wait("throttled"),
    "memory pressure": _worst_wait("memory_pressure"),
    "a stopped program": lambda record: record.programs.longest_stop_ps / 1e12,
    "a hog beside programs": lambda record: record.program_wait.waited_s,
    "a short hog beside programs": lambda record: record.late_turns.waited_s,
    "programs beside a busy one": lambda record: record.program_wait.waited_s,
    "a quota of programs": lambda record: record.late_turns.waited_s,
    "a debugger": lambda record: record.held.longest_s,
    "a frozen group": lambda record: record.held.longest_s,
    "a slow receiver": lambda record: sum(record.programs.dropped_datagrams.values()),
}
"""The figure of a run's record in which each disturbance shows, in seconds or datagrams: 0 where it did nothing."""
