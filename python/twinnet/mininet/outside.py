"""The way out of a script's machine: who started it connects to controllers that run beside the machine, and gives
the fabric real-time scheduling, which nobody inside may.

One packet asks: an address and a port; or, with the descriptor of a process, ``promote``. One answers: a byte, with the
connected socket where there is one.
"""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

__all__ = ["OUTSIDE_VARIABLE", "answer", "connect", "promote"]

OUTSIDE_VARIABLE = "TWINNET_MININET_OUTSIDE"
"""The variable that holds the number of our end's descriptor."""
_PATIENCE_S = 1.0
_QUESTION_BYTES = 256
_lock = threading.Lock()


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
    descriptor = os.pidfd_open(process)
    try:
        return _ask("promote", [descriptor])[0] == b"y"
    finally:
        os.close(descriptor)


def _ask(question: str, descriptors: list[int]) -> tuple[bytes, list[int]]:
    """Return the answer and its descriptors; no answer where nobody is outside."""
    number = os.environ.get(OUTSIDE_VARIABLE)
    if number is None:
        return b"", []
    try:
        door = socket.socket(fileno=os.dup(int(number)))
    except (OSError, ValueError):
        return b"", []
    with _lock, door:
        socket.send_fds(door, [question.encode()], descriptors)
        said, received, _, _ = socket.recv_fds(door, 1, 1)
    return said, received


def answer(door: socket.socket) -> bool:
    """Answer one question that waits at `door`; return whether more may come."""
    try:
        asked, given, _, _ = socket.recv_fds(door, _QUESTION_BYTES, 1)
    except OSError:
        return False
    if not asked:
        return False
    try:
        if asked == b"promote":
            door.send(b"y" if given and _promoted(given[0]) else b"n")
            return True
        ip, port = asked.decode().split()
        with socket.create_connection((ip, int(port)), _PATIENCE_S) as made:
            socket.send_fds(door, [b"y"], [made.fileno()])
    except (OSError, ValueError):
        door.send(b"n")
    finally:
        for descriptor in given:
            os.close(descriptor)
    return True


def _promoted(process: int) -> bool:
    """Schedule the process of the descriptor `process` in real time, as far as we may."""
    from twinnet import _core

    told = Path(f"/proc/self/fdinfo/{process}").read_text()
    number = next((line.split()[1] for line in told.splitlines() if line.startswith("Pid:")), "-1")
    return int(number) > 0 and _core.promote_lab(int(number))
