"""Processes in the namespaces of nodes, without a program between them and us."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from subprocess import Popen
from typing import Any

from twinnet.mininet import outside
from twinnet.mininet.kernel import CLONE_NEWNET, CLONE_NEWNS, MS_REC, MS_SLAVE, mount, setns, unshare
from twinnet.mininet.log import debug

__all__ = ["start_process"]


def start_process(cmd: list[str], **params: Any) -> Popen[Any]:
    """Start `cmd`, with what `subprocess.Popen` takes. One that begins with ``mnexec`` and options is started without
    that program: ``c`` closes descriptors, ``d`` leaves the terminal, ``n`` makes namespaces, ``a PID`` enters those
    of a process, ``g HOST`` puts it under the host's limit of processor time."""
    group: str | None = None
    if cmd[0] == "mnexec":
        steps, rest = _steps(cmd)
        if steps is not None:
            params.setdefault("start_new_session", steps.detached)
            params["close_fds"] = steps.close or params.get("close_fds", True)
            params["preexec_fn"] = steps.take
            cmd, group = rest, steps.group
    process: Popen[Any] = Popen(cmd, **params)
    if group is not None:
        outside.join_processor_share(group, process.pid)
    debug("_popen", cmd, process.pid, "\n")
    return process


class _Steps:
    """What is done between fork and exec."""

    def __init__(self) -> None:
        self.detached = False
        self.close = False
        self.new = False
        self.entered: int | None = None
        self.group: str | None = None

    def take(self) -> None:
        """Do it, in the new process."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.new:
            unshare(CLONE_NEWNET | CLONE_NEWNS)
            mount("none", "/", "", MS_REC | MS_SLAVE)
            mount("sysfs", "/sys", "sysfs", 0)
        if self.entered is not None:
            folder = os.getcwd()  # noqa: PTH109
            _enter(self.entered, "net", CLONE_NEWNET)
            _enter(self.entered, "mnt", CLONE_NEWNS)
            os.chdir(folder)


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
