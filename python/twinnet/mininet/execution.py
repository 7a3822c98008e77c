"""Processes in the namespaces of nodes, without a program between them and us."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Mapping
from subprocess import Popen
from typing import Any

from twinnet import _core
from twinnet.mininet import outside
from twinnet.mininet.inherited_settings import SETTINGS
from twinnet.mininet.kernel import CLONE_FS, CLONE_NEWNET, CLONE_NEWNS, MS_REC, MS_SLAVE, mount, setns, unshare
from twinnet.mininet.log import debug

__all__ = ["EXECUTION", "start_process"]


class _Execution(threading.local):
    """Whether this thread starts a program: what it forks is not a script that goes on."""

    starts: bool = False


EXECUTION = _Execution()
_STREAMS = ("stdin", "stdout", "stderr")


def start_process(cmd: list[str], **params: Any) -> Popen[Any]:
    """Start `cmd`, with what `subprocess.Popen` takes. One that begins with ``mnexec`` and options is started without
    that program: ``c`` closes descriptors, ``d`` leaves the terminal, ``n`` makes namespaces, ``a PID`` enters those
    of a process, ``g HOST`` puts it under the host's limit of processor time. A program that cannot be had is then a
    process that says so and ends with status 1, as ``mnexec`` does."""
    steps = None
    if cmd[0] == "mnexec":
        steps, rest = _steps(cmd)
        if steps is not None:
            params.setdefault("start_new_session", steps.detached)
            params["close_fds"] = steps.close or params.get("close_fds", True)
            cmd = rest
    try:
        process = _started(cmd, params) if steps is None else _by(steps, cmd, params)
    except OSError as refused:
        if steps is None or refused.filename != cmd[0]:
            raise
        # The program `mnexec` would be there, and would say so.
        words = ["/bin/sh", "-c", 'echo "$0: $1" >&2; exit 1', cmd[0], os.strerror(refused.errno or 0)]
        process = _by(steps, words, params)
    debug("_popen", cmd, process.pid, "\n")
    return process


def _by(steps: _Steps, cmd: list[str], params: dict[str, Any]) -> Popen[Any]:
    own: Callable[[], None] | None = params.get("preexec_fn")
    if steps.new_alone and _is_plain(params) and not SETTINGS.changed():
        return _Direct(cmd, params)
    if steps.by_a_thread and own is None:
        return _in_a_thread(steps, cmd, params) if steps.elsewhere else _started(cmd, params)

    def take() -> None:
        steps.take_in_child()
        if own is not None:
            own()

    return _started(cmd, {**params, "preexec_fn": take})


def _started(cmd: list[str], params: dict[str, Any]) -> Popen[Any]:
    EXECUTION.starts = True
    try:
        return Popen(cmd, **params)
    finally:
        EXECUTION.starts = False


def _is_plain(params: Mapping[str, Any]) -> bool:
    """Whether a process with `params` has descriptors for its streams, an environment, and all else as usual."""
    others = params.keys() - {*_STREAMS, "env", "close_fds", "start_new_session"}
    streams = [params.get(stream) for stream in _STREAMS]
    return not others and "env" in params and all(isinstance(one, int) and one >= 0 for one in streams)


class _Direct(Popen[Any]):
    """A process in namespaces of its own that the core starts, as it starts shells of nodes: nothing is copied, and no
    thread goes there first. All else is the class above."""

    def __init__(self, cmd: list[str], params: dict[str, Any]) -> None:
        self._started_directly = False
        self._params = params
        super().__init__(cmd, **params)
        if not self._started_directly:
            self.kill()
            raise RuntimeError("subprocess.Popen of this Python starts processes in a way of its own")

    def _execute_child(self, args: list[str], *_: Any) -> None:
        self._started_directly = True
        name = args[0]
        files = [name] if "/" in name else [f"{folder}/{name}" for folder in os.get_exec_path(self._params["env"])]
        try:
            self.pid = _core.start_apart(
                files,
                args,
                [f"{variable}={value}" for variable, value in self._params["env"].items()],
                (self._params["stdin"], self._params["stdout"], self._params["stderr"]),
                own_session=self._params["start_new_session"],
            )
        except OSError as refused:
            refused.filename = name
            raise
        self._child_created = True


def _in_a_thread(steps: _Steps, cmd: list[str], params: dict[str, Any]) -> Popen[Any]:
    """Start `cmd` from a thread that is where the process is to be. So this process is not copied for it, which takes
    longer than all the rest."""
    outcome: list[Popen[Any] | BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def start() -> None:
        try:
            steps.take()
            outcome.append(_started(cmd, params))
        except BaseException as failure:
            outcome.append(failure)
        finally:
            done.release()

    # A `threading.Thread` is waited for twice, at its start and at its end.
    _thread.start_new_thread(start, ())
    done.acquire()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


class _Steps:
    """What is done between fork and exec, or by a thread that starts the process."""

    def __init__(self) -> None:
        self.detached = False
        self.close = False
        self.new = False
        self.entered: int | None = None
        self.group: str | None = None

    @property
    def new_alone(self) -> bool:
        """Whether the process is to have namespaces of its own, and no descriptors, and that is all."""
        return self.new and self.close and self.entered is None and self.group is None

    @property
    def elsewhere(self) -> bool:
        """Whether the process is to be elsewhere than this one."""
        return self.new or self.entered is not None

    @property
    def by_a_thread(self) -> bool:
        """Whether a thread can do it: not what is for the new process alone."""
        return self.group is None and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN

    def take_in_child(self) -> None:
        """Do it, in the new process."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.group is not None:
            # Before there are children of it, and while the way out of the machine is there.
            outside.join_limits(self.group, os.getpid())
        self.take()

    def take(self) -> None:
        """Enter or make the namespaces, by this thread alone."""
        if self.new:
            settings = SETTINGS.changed()
            unshare(CLONE_NEWNET | CLONE_NEWNS)
            SETTINGS.set(settings)
            mount("none", "/", "", MS_REC | MS_SLAVE)
            mount("sysfs", "/sys", "sysfs", 0)
            _core.keep_kernel_files(proc=False)
        if self.entered is not None:
            folder = os.getcwd()  # noqa: PTH109
            # Only a thread with a folder of its own can enter other mounts.
            unshare(CLONE_FS)
            _enter(self.entered, "net", CLONE_NEWNET)
            _enter(self.entered, "mnt", CLONE_NEWNS)
            try:
                os.chdir(folder)
            except OSError:
                # A container has folders of its own.
                os.chdir("/")


def _enter(pid: int, kind: str, flag: int) -> None:
    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    setns(descriptor, flag)
    os.close(descriptor)


def _steps(cmd: list[str]) -> tuple[_Steps | None, list[str]]:
    """Return what ``mnexec`` is asked for, and the command; ``None`` where only the program itself can do it."""
    steps = _Steps()
    flags: dict[str, Callable[[], None]] = {
        "c": lambda: setattr(steps, "close", True),
        "d": lambda: setattr(steps, "detached", True),
        "n": lambda: setattr(steps, "new", True),
    }
    words = cmd[1:]
    while words and words[0].startswith("-"):
        word = words.pop(0)
        for letter in word[1:]:
            if letter in flags:
                flags[letter]()
            elif letter == "a" and words:
                steps.entered = int(words.pop(0))
            elif letter == "g" and words:
                steps.group = words.pop(0)
            elif letter == "r" and words:
                # Nobody in this machine has the right to real-time scheduling.
                words.pop(0)
            else:
                return None, cmd
    return steps, words
