"""The way out of a script's machine: who started it connects to controllers that run beside the machine, gives the
fabric real-time scheduling, which nobody inside may, and the machine a way to the network outside.

One connection has one question. One packet asks: an address and a port; or, with the descriptor of a process,
``promote``, ``way``, ``random``, or ``limit``, ``memory`` or ``join`` with the name of a host whose limits are meant;
or, with a packet socket, ``carry``. One answers: a byte, with the connected socket where there is one.
"""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

from twinnet.lab_process.control_groups import ControlGroups
from twinnet.mininet.user_mode_nat import UserModeNat
from twinnet.mininet.virtual_time import on_virtual_clock
from twinnet.outward import interface

__all__ = [
    "OUTSIDE_VARIABLE",
    "answer",
    "begin_random_numbers_anew",
    "connect",
    "join_limits",
    "limit_memory",
    "limit_processor_share",
    "listen",
    "open_way",
    "promote",
]

OUTSIDE_VARIABLE = "TWINNET_MININET_OUTSIDE"
"""The variable that holds the path at which questions are taken."""
_CLEAR_POOL = 0x5206
"""``RNDCLEARPOOL`` of linux/random.h; the kernel of a guest takes its seed anew then."""
_PATIENCE_S = 1.0
_QUESTION_BYTES = 256
_BACKLOG = 64


def connect(ip: str, port: int) -> socket.socket:
    """Return a TCP connection to `port` of `ip`: in this machine, or else beside it. Raises `OSError`."""
    try:
        return socket.create_connection((ip, port), _PATIENCE_S)
    except OSError as refused:
        _, descriptors = _ask(f"{ip} {port}", [])
        if not descriptors:
            raise refused from None
        return socket.socket(fileno=descriptors[0])


def promote(process: int) -> bool:
    """Have the lab process `process` scheduled in real time; return whether that was granted."""
    return _ask_about(process, "promote")


def begin_random_numbers_anew() -> bool:
    """Have the kernel of a guest begin its random numbers anew from the seed; return whether it does."""
    return _ask_about(os.getpid(), "random")


def open_way(process: int, any_source: bool) -> bool:
    """Give the network namespace of `process`, which is the caller's, a way to the network outside; return whether it
    has one. `any_source`: packets of all addresses take it, and not only those of the namespace."""
    if any(name == interface.INTERFACE for _, name in socket.if_nameindex()):
        return True
    if on_virtual_clock():
        return False
    if not any_source and _ask_about(process, "way"):
        return True
    try:
        with interface.make() as packets:
            return _ask("carry", [packets.fileno()])[0] == b"y"
    except OSError:
        return False


def limit_processor_share(host: str, process: int, quota_us: int, period_us: int) -> bool:
    """Let `host`, whose shell is `process`, use `quota_us` of processor time in each `period_us`; return whether that
    was permitted."""
    return _ask_about(process, f"limit {quota_us} {period_us} {host}")


def limit_memory(host: str, process: int, most_bytes: int) -> bool:
    """Let `host`, whose shell is `process`, have `most_bytes` of memory; return whether that was permitted."""
    return _ask_about(process, f"memory {most_bytes} {host}")


def join_limits(host: str, process: int) -> bool:
    """Put `process` under the limits of `host`; return whether there are any."""
    return _ask_about(process, f"join {host}")


def _ask_about(process: int, question: str) -> bool:
    try:
        descriptor = os.pidfd_open(process)
    except OSError:
        return False
    try:
        return _ask(question, [descriptor])[0] == b"y"
    finally:
        os.close(descriptor)


def _ask(question: str, descriptors: list[int]) -> tuple[bytes, list[int]]:
    """Return the answer and its descriptors; no answer where nobody is outside."""
    path = os.environ.get(OUTSIDE_VARIABLE)
    if path is None:
        return b"", []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        try:
            door.connect(path)
            socket.send_fds(door, [question.encode()], descriptors)
            said, received, _, _ = socket.recv_fds(door, 1, 1)
        except OSError:
            return b"", []
    return said, received


def listen(path: Path) -> socket.socket:
    """Return a socket that takes questions at `path`."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(_BACKLOG)
    return listener


def answer(listener: socket.socket, groups: ControlGroups, way: UserModeNat) -> None:
    """Answer one question that waits at `listener`. `groups` and `way` are those of the machine."""
    try:
        door, _ = listener.accept()
    except OSError:
        return
    given: list[int] = []
    with door:
        try:
            asked, given, _, _ = socket.recv_fds(door, _QUESTION_BYTES, 1)
            if given:
                carried = asked == b"carry"
                done = way.carry(given[0]) if carried else _done(asked.decode(), _number_of(given[0]), groups, way)
                door.send(b"y" if done else b"n")
                return
            ip, port = asked.decode().split()
            with socket.create_connection((ip, int(port)), _PATIENCE_S) as made:
                socket.send_fds(door, [b"y"], [made.fileno()])
        except (OSError, ValueError):
            with suppress(OSError):
                door.send(b"n")
        finally:
            for descriptor in given:
                os.close(descriptor)


def _number_of(descriptor: int) -> int:
    """Return the number that the process of `descriptor` has here; -1 when it has ended."""
    text = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    return int(next((line.split()[1] for line in text.splitlines() if line.startswith("Pid:")), "-1"))


def _done(asked: str, process: int, groups: ControlGroups, way: UserModeNat) -> bool:
    """Do to `process` what is asked, as far as we may; return whether it was done."""
    if process <= 0:
        return False
    word, _, rest = asked.partition(" ")
    if word == "limit":
        quota, period, host = rest.split(" ", 2)
        return groups.limit_processors(host, process, int(quota), int(period))
    if word == "memory":
        most, host = rest.split(" ", 1)
        return groups.limit_memory(host, process, int(most))
    if word == "join":
        return groups.join(rest, process)
    if word == "way":
        return way.open(process)
    if word == "random":
        return on_virtual_clock() and _cleared_pool()
    from twinnet import _core

    return word == "promote" and _core.promote_lab(process)


def _cleared_pool() -> bool:
    with Path("/dev/urandom").open("rb") as device:
        fcntl.ioctl(device, _CLEAR_POOL)
    return True
