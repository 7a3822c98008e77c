"""Whether a program had a processor to itself, by the rule of `twinnet send`: how long its threads waited for one."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

__all__ = ["ProcessorWatch"]

_PERIOD_S = 0.05
_SHARED_SHARE = 0.01
"""Of a period: a thread that could run and waited for more than this shared its processor."""


class ProcessorWatch:
    """Follows the threads of one process.

    Parameters
    ----------
    pid
        The process, by its number here.
    """

    def __init__(self, pid: int) -> None:
        self._threads = Path(f"/proc/{pid}/task")
        self._waited_ns: dict[str, int] = {}
        self._looked_s = 0.0
        self.shared = False

    def look(self) -> None:
        """Ask the kernel, at most once a period; to be called until the process has ended."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _PERIOD_S:
            return
        allowed_ns = (now_s - self._looked_s) * 1e9 * _SHARED_SHARE
        self._looked_s = now_s
        with contextlib.suppress(OSError):
            for thread in self._threads.iterdir():
                # A thread may end while it is looked at.
                with contextlib.suppress(OSError, IndexError):
                    waited_ns = int((thread / "schedstat").read_text().split()[1])
                    before_ns = self._waited_ns.get(thread.name)
                    self._waited_ns[thread.name] = waited_ns
                    # What a program waits for while it starts is not yet its sending.
                    self.shared |= before_ns is not None and waited_ns - before_ns > allowed_ns
