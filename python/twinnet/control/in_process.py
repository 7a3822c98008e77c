"""An in-process controller while a lab runs: its sessions with switches, and its timers. It is given the time."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.session import Session
from twinnet.errors import LabClosed
from twinnet.qos.queue import Queue

__all__ = ["ChangeQueue", "InProcess"]

ChangeQueue = Callable[[str, int, Queue | None], None]
"""Gives an OpenFlow port of a switch another queue configuration; ``None`` is the default."""


class InProcess:
    """The stage of a controller (:class:`Stage`).

    Parameters
    ----------
    controller
        The controller.
    spec
        The network in the form of the lab protocol.
    now_ps
        Tells the lab's time.
    wake
        Called when a session has something to send, or a timer was set.
    change_queue
        By which the controller changes queues; ``None``: it may not.
    """

    def __init__(
        self,
        controller: Controller,
        spec: Mapping[str, Any],
        now_ps: Callable[[], int],
        wake: Callable[[], None] = lambda: None,
        change_queue: ChangeQueue | None = None,
    ) -> None:
        self.controller = controller
        self.spec = spec
        self.sessions: dict[int, Session] = {}
        self._now_ps = now_ps
        self._wake = wake
        self._change_queue = change_queue
        self._joined: dict[str, ConnectedSwitch] = {}
        self._served: set[str] = set()
        self._changed = threading.Condition()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ended = False
        controller.attach(self, self._joined)

    @property
    def now_ps(self) -> int:
        """The lab's time in picoseconds."""
        return self._now_ps()

    def call_at(self, at_ps: int, call: Callable[[], None]) -> None:
        """Have `call` called when the lab's clock shows `at_ps`; of one moment in the order of asking."""
        heapq.heappush(self._timers, (at_ps, next(self._order), call))
        self._wake()

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        """Replace the queue configuration of a port; ``None`` for the default."""
        if self._change_queue is None:
            raise LabClosed("the controller runs in no lab whose queues it could change", "start a lab")
        self._change_queue(switch, port, queue)

    @property
    def next_timer_ps(self) -> int | None:
        """The time at which the next timer is due, in picoseconds."""
        return self._timers[0][0] if self._timers else None

    def run_timers(self) -> None:
        """Call what is due."""
        while self._timers and self._timers[0][0] <= self.now_ps:
            heapq.heappop(self._timers)[2]()

    def open(self, connection: int, switch: str) -> Session:
        """Begin a session with `switch` on the connection of that number."""
        session = Session(self.controller, switch, self._joined, self._wake, self._note_served)
        self.sessions[connection] = session
        return session

    def _note_served(self, switch: str) -> None:
        with self._changed:
            self._served.add(switch)
            self._changed.notify_all()

    def wait_served(self, switches: Iterable[str], timeout_s: float) -> bool:
        """Wait until what the controller sent `switches` on joining has taken effect; return whether it has within
        `timeout_s` seconds."""
        wanted = set(switches)
        with self._changed:
            return self._changed.wait_for(lambda: wanted <= self._served or self._ended, timeout_s) and not self._ended

    def close(self, connection: int) -> None:
        """The connection has ended."""
        session = self.sessions.pop(connection, None)
        if session is not None:
            session.close()

    def end(self) -> None:
        """The lab has ended."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self.sessions.clear()
        self._timers.clear()
        self.controller.detach()
