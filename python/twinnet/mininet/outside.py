"""The way out of a script's machine: who started it connects to controllers that run beside the machine, and gives
the fabric real-time scheduling, which nobody inside may.

One connection has one question. One packet asks: an address and a port; or, with the descriptor of a process,
``promote``, or ``limit`` or ``join`` with the name of a host whose share of the processors is meant. One answers: a
byte, with the connected socket where there is one.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from twinnet.mininet.processor_shares import ProcessorShares

__all__ = [
    "OUTSIDE_VARIABLE",
    "answer",
    "connect",
    "join_processor_share",
    "limit_processor_share",
    "listen",
    "promote",
]

OUTSIDE_VARIABLE = "TWINNET_MININET_OUTSIDE"
"""The variable that holds the path at which questions are taken."""
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


def limit_processor_share(host: str, process: int, quota_us: int, period_us: int) -> bool:
    """Let `host`, whose shell is `process`, use `quota_us` of processor time in each `period_us`; return whether that
    was permitted."""
    return _ask_about(process, f"limit {quota_us} {period_us} {host}")


def join_processor_share(host: str, process: int) -> bool:
    """Put `process` under the limit of `host`; return whether there is one."""
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


def answer(listener: socket.socket, shares: ProcessorShares) -> None:
    """Answer one question that waits at `listener`. `shares` are those of the machine."""
    try:
        door, _ = listener.accept()
    except OSError:
        return
    given: list[int] = []
    with door:
        try:
            asked, given, _, _ = socket.recv_fds(door, _QUESTION_BYTES, 1)
            if given:
                door.send(b"y" if _done(asked.decode(), _number_of(given[0]), shares) else b"n")
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
    told = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    return int(next((line.split()[1] for line in told.splitlines() if line.startswith("Pid:")), "-1"))


def _done(asked: str, process: int, shares: ProcessorShares) -> bool:
    """Do to `process` what is asked, as far as we may; return whether it was done."""
    if process <= 0:
        return False
    word, _, rest = asked.partition(" ")
    if word == "limit":
        quota, period, host = rest.split(" ", 2)
        return shares.limit(host, process, int(quota), int(period))
    if word == "join":
        return shares.join(rest, process)
    from twinnet import _core

    return word == "promote" and _core.promote_lab(process)
