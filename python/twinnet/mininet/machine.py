"""A machine of its own for a script: new user, PID, mount, network, IPC and UTS namespaces on the caller's files.

Three processes stand between the caller and the script. The caller's own process stays outside: it writes the maps of
users, passes signals on, and connects to controllers that run beside the machine (:mod:`twinnet.mininet.outside`). Its
child makes the namespaces. The child of that is the first process of the machine; when it ends, by whatever cause, the
kernel ends all others, and every interface goes with them.
"""

from __future__ import annotations

import errno
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, cast

from twinnet import _core
from twinnet.errors import LabError
from twinnet.lab_process.control_groups import ControlGroups
from twinnet.mininet import outside, programs
from twinnet.mininet.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_PRIVATE,
    MS_REC,
    die_with_parent,
    mount,
    unshare,
)
from twinnet.mininet.rtnetlink import take_up
from twinnet.mininet.tool_clients import TELL_NOTHING_OF_LOCALES
from twinnet.mininet.tool_doors import RUN_VARIABLE
from twinnet.mininet.user_mode_nat import UserModeNat

__all__ = ["MACHINE_VARIABLE", "inside", "run"]

MACHINE_VARIABLE = "TWINNET_MININET_MACHINE"
"""The variable that says that a process is in such a machine."""
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends these to all processes of the script's group, and `kill` to one alone."""
_ASKED_FOR = {number: signal.SIGRTMIN + place for place, number in enumerate(_OF_THE_TERMINAL, 1)}
"""What tells the first process of a machine that the outermost one got such a signal."""
_OF_ONE_KEY_S = 1.0
_ARRIVES_WITHIN_S = 0.1
_REAL_TIME_PRIORITY = 99
_OPEN_FILES = 1 << 20
_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
_USER_NAMESPACES = (
    "let users create user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); `twinnet doctor` says what this machine permits"
)
_PROC = (
    "container engines mask parts of /proc, and the kernel then permits no fresh one: start the container with "
    "--security-opt systempaths=unconfined (Docker, Podman: unmask=ALL), or run outside of it"
)


def inside() -> bool:
    """Return whether this process is in a machine of a script."""
    return os.environ.get(MACHINE_VARIABLE) == "1"


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run `command` in a machine of its own, and return its status (128 + signal when a signal ended it).

    Parameters
    ----------
    command
        The program and its arguments.
    environment
        Variables that it has beside those of this process.

    Raises
    ------
    LabError
        ``NamespacesRefused`` or ``ProcNotMounted``: what this machine does not permit, with the remedy.
    """
    _raise_limits()
    door, inner_door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, tell = os.pipe()
    go, let_go = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            door.close()
            os.close(let_go)
            _make(command, dict(environment or {}), inner_door.detach(), go, tell)
        except BaseException as failure:
            _fail(tell, failure)
    for descriptor in (go, tell):
        os.close(descriptor)
    inner_door.close()
    if os.read(reading, 1) == b"n":
        _write_maps(child)
        os.write(let_go, b"g")
    os.close(let_go)
    failure = os.read(reading, 4096).decode()
    os.close(reading)
    status = _attend(child, door)
    if failure:
        name, message, remedy = failure.split("\n")
        raise LabError(message, remedy, name)
    return status


def _raise_limits() -> None:
    """Let the machine use real-time scheduling and many files, where we may: inside nobody has the right to that."""
    for limit, wanted in ((resource.RLIMIT_RTPRIO, _REAL_TIME_PRIORITY), (resource.RLIMIT_NOFILE, _OPEN_FILES)):
        soft, hard = resource.getrlimit(limit)
        raised = wanted if limit == resource.RLIMIT_RTPRIO else soft
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (raised, max(hard, wanted)))


def _fail(tell: int, failure: BaseException) -> NoReturn:
    """Tell why the machine could not be made, and end."""
    if isinstance(failure, LabError):
        os.write(tell, "\n".join((failure.name, failure.message, failure.remedy)).encode())
    else:
        os.write(tell, f"MachineNotMade\nthe script's machine: {failure}\nrun `twinnet doctor`".encode())
    os._exit(1)


def _attend(child: int, door: socket.socket) -> int:
    """Pass signals on and answer questions until `child` ends; return its status."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    def ask(number: int, _frame: FrameType | None) -> None:
        pass_on(_ASKED_FOR[signal.Signals(number)], None)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    heard = [number for number in _OF_THE_TERMINAL if signal.getsignal(number) is not signal.SIG_IGN]
    before |= {number: signal.signal(number, ask) for number in heard}
    ended = os.pidfd_open(child)
    groups, way = ControlGroups(os.getpid()), UserModeNat()
    try:
        with selectors.DefaultSelector() as selector, door:
            selector.register(ended, selectors.EVENT_READ)
            selector.register(door, selectors.EVENT_READ)
            while True:
                ready = [key for key, _ in selector.select()]
                if any(key.fileobj == ended for key in ready):
                    break
                for key in ready:
                    if key.fileobj is not door:
                        outside.answer(cast("socket.socket", key.fileobj), groups, way)
                        continue
                    selector.unregister(door)
                    for descriptor in socket.recv_fds(door, 1, 1)[1]:
                        selector.register(socket.socket(fileno=descriptor), selectors.EVENT_READ)
        return _status(os.waitpid(child, 0)[1])
    finally:
        way.end()
        groups.end()
        os.close(ended)
        for number, handler in before.items():
            signal.signal(number, handler)


def _status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return 128 - code if code < 0 else code


def _write_maps(child: int) -> None:
    """Map users into the machine: all of them where we may, or else the caller alone, as its root."""
    place = Path(f"/proc/{child}")
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            for kind in ("uid_map", "gid_map"):
                lines = [line.split() for line in Path(f"/proc/self/{kind}").read_text().splitlines()]
                (place / kind).write_text("".join(f"{first} {first} {count}\n" for first, _, count in lines))
            return
        except OSError:
            # Without the right to map others, our own user is mapped as for everybody.
            pass
    (place / "setgroups").write_text("deny")
    (place / "uid_map").write_text(f"0 {user} 1\n")
    (place / "gid_map").write_text(f"0 {group} 1\n")


def _make(command: Sequence[str], environment: dict[str, str], door: int, go: int, tell: int) -> NoReturn:
    """Make the namespaces and the first process of the machine, and end as that does."""
    owner = os.getppid()
    try:
        unshare(_NAMESPACES)
    except OSError as refused:
        remedy = "raise the limits user.max_user_namespaces and user.max_net_namespaces (sysctl)"
        remedy = remedy if refused.errno in (errno.ENOSPC, errno.EUSERS) else _USER_NAMESPACES
        raise LabError(f"creating the script's namespaces: {refused.strerror}", remedy, "NamespacesRefused") from None
    os.write(tell, b"n")
    if os.read(go, 1) != b"g":
        os._exit(1)
    die_with_parent(signal.SIGKILL)
    if os.getppid() != owner:
        os._exit(1)
    first = os.fork()
    if first == 0:
        try:
            die_with_parent(signal.SIGKILL)
            _be_first(command, environment, door, tell)
        except BaseException as failure:
            _fail(tell, failure)
    os.close(tell)
    _relay(first)
    os._exit(_status(os.waitpid(first, 0)[1]))


def _relay(to: int) -> None:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(to, number)

    for number in (*_PASSED_ON, *_ASKED_FOR.values()):
        signal.signal(number, pass_on)
    for number in _OF_THE_TERMINAL:
        signal.signal(number, signal.SIG_IGN)


def _relay_what_came_alone(script: int) -> None:
    """Pass on to `script` what was sent to the outermost process alone: what a terminal sends, it gets by itself."""
    arrived: dict[int, float] = {}

    def note(number: int, _frame: FrameType | None) -> None:
        arrived[number] = time.monotonic()

    def hear(asked: int, _frame: FrameType | None) -> None:
        number = next(one for one, told in _ASKED_FOR.items() if told == asked)
        # What is sent to all does not reach all at the same moment.
        time.sleep(_ARRIVES_WITHIN_S)
        if number not in arrived or time.monotonic() - arrived[number] > _OF_ONE_KEY_S:
            with suppress(ProcessLookupError):
                os.kill(script, number)

    for number, asked in _ASKED_FOR.items():
        signal.signal(number, note)
        signal.signal(asked, hear)


def _opened(folder: str) -> int | None:
    """A descriptor of `folder`, which may be covered afterwards; ``None`` where it cannot be had."""
    try:
        return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _be_first(command: Sequence[str], environment: dict[str, str], door: int, tell: int) -> NoReturn:
    """Furnish the machine, start the command in it, and end as it does."""
    mount("none", "/", "", MS_PRIVATE | MS_REC)
    control_groups = _opened("/sys/fs/cgroup")
    try:
        mount("proc", "/proc", "proc", 0)
        mount("sysfs", "/sys", "sysfs", 0)
    except OSError as refused:
        raise LabError(f"mounting /proc and /sys of the machine: {refused.strerror}", _PROC, "ProcNotMounted") from None
    if control_groups is not None:
        # Without them the verdict cannot know what a quota takes, and says so.
        with suppress(OSError):
            _core.show_control_groups(control_groups)
        os.close(control_groups)
    programs.install()
    # The fabric's namespaces may mount these anew only where one is whole.
    for kind in ("proc", "sysfs"):
        place = programs.FOLDER / "whole" / kind
        place.mkdir(parents=True)
        mount(kind, str(place), kind, 0)
        _core.keep_kernel_files(proc=kind == "proc")
    # The outer machine's Open vSwitch is out of reach.
    if programs.OPEN_VSWITCH.is_dir():
        mount("twinnet", str(programs.OPEN_VSWITCH), "tmpfs", 0, "mode=755")
        sockets = programs.OPEN_VSWITCH
    else:
        sockets = programs.FOLDER
    take_up("lo")
    place = programs.FOLDER / "outside"
    with outside.listen(place) as questions, socket.socket(fileno=door) as there:
        socket.send_fds(there, [b"l"], [questions.fileno()])
    variables = {**TELL_NOTHING_OF_LOCALES, **os.environ, **environment}
    variables |= {MACHINE_VARIABLE: "1", outside.OUTSIDE_VARIABLE: str(place)}
    variables[RUN_VARIABLE] = str(sockets)
    variables["PATH"] = f"{programs.FOLDER}:{variables.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(programs.MODULES), variables.get("PYTHONPATH"))))
    variables.setdefault("SHELL", "/bin/bash")
    # Interfaces of a script come and go; the fabric's warnings of it would stand among its output.
    variables.setdefault("TWINNET_LOG", "error")
    script = os.fork()
    if script == 0:
        for number in (*_PASSED_ON, *_OF_THE_TERMINAL, *_ASKED_FOR.values()):
            signal.signal(number, signal.SIG_DFL)
        os.set_inheritable(tell, False)
        os.execvpe(command[0], list(command), variables)
    os.close(tell)
    _relay(script)
    _relay_what_came_alone(script)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == script:
            os._exit(_status(status))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
