"""A lock that threads get in the order in which they asked for it."""

from __future__ import annotations

import threading
from collections import deque

__all__ = ["Turns"]


class Turns:
    """A lock for ``with``. Who holds it may take it again.

    Threads that let a lab's time pass take it for a step at a time; with a lock of the standard library, the one that
    has it would nearly always get it again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._holder: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._holder == me:
            self._depth += 1
            return
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._holder is not None or self._waiting[0] is not ticket:
                    self._changed.wait()
                self._holder, self._depth = me, 1
            finally:
                # Also one who is interrupted leaves the queue.
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            with self._changed:
                self._holder = None
                self._changed.notify_all()
