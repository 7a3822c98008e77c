"""An exact count of namespaces that nothing else on the machine disturbs.

In a user namespace of one's own the kernel counts, kind by kind, the namespaces that were made in it and below it, and
refuses those above a limit that can be set (namespaces(7), /proc/sys/user). With the limit set to one more than there
should be, one more can be made if, and only if, no other is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

CLONE_FLAGS = {
    "cgroup": 0x02000000,
    "ipc": 0x08000000,
    "mnt": 0x00020000,
    "net": 0x40000000,
    "pid": 0x20000000,
    "user": 0x10000000,
    "uts": 0x04000000,
}
LIBC = ctypes.CDLL(None, use_errno=True)


def confined(*arguments: str) -> list[str]:
    """The command that runs this interpreter with `arguments` in user and network namespaces of its own."""
    return ["unshare", "--user", "--map-root-user", "--net", sys.executable, *arguments]


def can_be_confined() -> bool:
    """Whether this machine permits that."""
    return subprocess.run(confined("-c", ""), capture_output=True, timeout=20, check=False).returncode == 0


def left_over(kind: str, own: int) -> bool:
    """Whether more namespaces of a kind exist than the caller's `own`."""
    limit = Path(f"/proc/sys/user/max_{kind}_namespaces")
    before = limit.read_text()
    limit.write_text(str(own + 1))
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if LIBC.unshare(CLONE_FLAGS[kind]) == 0 else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    finally:
        limit.write_text(before)


def reap() -> None:
    """Take leave of ended children, of which the numbers, and so their namespaces, are kept until then."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def kinds_left(seconds: float = 20.0) -> list[str]:
    """The kinds of namespaces of which some are left when the kernel has had `seconds` to put them away (it does so by
    and by), in a process that :func:`confined` started."""
    deadline = time.monotonic() + seconds
    left = list(CLONE_FLAGS)
    while left and time.monotonic() < deadline:
        reap()
        left = [kind for kind in left if left_over(kind, own=1 if kind == "net" else 0)]
        time.sleep(0.02)
    return left
