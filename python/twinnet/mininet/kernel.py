"""The calls of the kernel that make and enter namespaces: Python 3.11 has no names for them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager

__all__ = [
    "CLONE_FS",
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "MS_PRIVATE",
    "MS_REC",
    "MS_SLAVE",
    "die_with_parent",
    "in_network_of",
    "mount",
    "name_process",
    "setns",
    "unshare",
]

CLONE_FS = 0x00000200
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Give this thread (for `CLONE_NEWUSER` and `CLONE_NEWPID`: this process) new namespaces, or a folder and a root of
    its own (`CLONE_FS`); raises `OSError`."""
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Put this thread into the namespace of `descriptor`, of `kind`; raises `OSError`."""
    _checked(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount `source` at `target`; raises `OSError`."""
    words = [text.encode() for text in (source, target, kind)]
    result = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), data.encode())
    _checked(result, f"mount {target}")


def die_with_parent(signal: int) -> None:
    """Have this process get `signal` when the thread that made it ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def name_process(name: str) -> None:
    """Give this process the short name `name` (15 bytes)."""
    _checked(_libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0), "prctl")


@contextmanager
def in_network_of(pid: int | None) -> Generator[None]:
    """Have this thread be in the network namespace of the process `pid` meanwhile; ``None``: stay."""
    if pid is None:
        yield
        return
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(there, CLONE_NEWNET)
        finally:
            os.close(there)
        try:
            yield
        finally:
            setns(here, CLONE_NEWNET)
    finally:
        os.close(here)
