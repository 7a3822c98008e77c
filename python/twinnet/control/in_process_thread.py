"""An in-process controller on the wall clock: a thread of its own, and a pair of sockets to each switch."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from twinnet.control.controller import Controller
from twinnet.control.in_process import ChangeQueue, InProcess
from twinnet.errors import LabError
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import EndedReply
from twinnet.lab_process.requests import LabRequests

__all__ = ["InProcessThread"]

_PIECE_BYTES = 256 * 1024
_LONGEST_SLEEP_S = 3600.0
_WATCHED_SLEEP_S = 0.05
_WATCHED_FOR_S = 60.0
"""For so long after a message the thread wakes now and then, to see whether it still goes on."""


class InProcessThread:
    """Runs `controller` for the switches of `spec` (of the lab protocol) whose target is `target`.

    Attributes
    ----------
    switches
        The names of those switches.
    failure
        What the controller raised; its switches then go on by their fail mode.
    longest_pause_s
        The longest time from one wake-up to the next beyond the sleep that was asked for, since it was last set to 0:
        messages of switches waited meanwhile, because this process was stopped or the controller at work.
    """

    def __init__(
        self,
        lab: LabRequests,
        spec: Mapping[str, Any],
        controller: Controller,
        target: str,
        change_queue: ChangeQueue | None = None,
    ) -> None:
        self.failure: BaseException | None = None
        self.longest_pause_s: float = 0.0
        self._woke_s = self._heard_s = time.monotonic()
        self._lab = lab
        self._target = target
        self._begin_s = time.monotonic() - lab.now()["now_ps"] / 1e12
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ended = threading.Event()
        self._sockets: dict[int, socket.socket] = {}
        self._waiting: dict[int, bytearray] = {}
        self._attached: list[PendingReply[EndedReply]] = []
        self.switches: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self.runtime: InProcess = InProcess(controller, spec, self._now_ps, self._ring, change_queue)
        try:
            for node in spec["nodes"]:
                if node["kind"] == "switch" and target in node.get("controllers", ()):
                    self._attach(node["name"])
        except BaseException:
            self._close()
            os.close(self._wake)
            raise
        self._thread = threading.Thread(target=self._run, name="twinnet-controller", daemon=True)
        self._thread.start()

    def _now_ps(self) -> int:
        return int((time.monotonic() - self._begin_s) * 1e12)

    def _ring(self) -> None:
        # A full counter wakes as well; after the end nobody is to be woken.
        with contextlib.suppress(BlockingIOError, OSError):
            os.eventfd_write(self._wake, 1)

    def _attach(self, switch: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            given = [theirs.fileno()]
            self._attached.append(
                self._lab.controller_attach_later(
                    switch=switch, target=self._target, peer="controller", descriptors=given
                )
            )
        ours.setblocking(False)
        connection = len(self.switches)
        self.switches.append(switch)
        self._sockets[connection] = ours
        self._waiting[connection] = bytearray()
        self._selector.register(ours, selectors.EVENT_READ, connection)
        self.runtime.open(connection, switch)

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._turn()
        except BaseException as error:
            self.failure = error
            if not self._ended.is_set():
                logging.getLogger("twinnet.control").exception(
                    "the controller has failed; its switches go on without it"
                )
        finally:
            self._close()

    def _turn(self) -> None:
        self._send()
        timer_ps = self.runtime.next_timer_ps
        sleep_s = _LONGEST_SLEEP_S if timer_ps is None else max(0.0, (timer_ps - self._now_ps()) / 1e12)
        watched = self._woke_s - self._heard_s < _WATCHED_FOR_S
        sleep_s = min(sleep_s, _WATCHED_SLEEP_S if watched else _LONGEST_SLEEP_S)
        found = self._selector.select(sleep_s)
        now_s = time.monotonic()
        self.longest_pause_s = max(self.longest_pause_s, now_s - self._woke_s - sleep_s)
        self._woke_s = now_s
        for key, events in found:
            if key.data is None:
                # Nothing to read means that nobody has woken us since.
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
            elif events & selectors.EVENT_READ:
                self._receive(key.data)
        self.runtime.run_timers()

    def _receive(self, connection: int) -> None:
        sock = self._sockets[connection]
        try:
            data = sock.recv(_PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._heard_s = self._woke_s
            self.runtime.sessions[connection].receive(data)
            return
        self._selector.unregister(sock)
        sock.close()
        del self._sockets[connection]
        self.runtime.close(connection)

    def _send(self) -> None:
        for connection, sock in self._sockets.items():
            waiting = self._waiting[connection]
            waiting += self.runtime.sessions[connection].take()
            try:
                while waiting:
                    del waiting[: sock.send(waiting)]
            except BlockingIOError:
                pass
            except OSError:
                # What the lab closed shows when it is read from.
                waiting.clear()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if waiting else 0)
            if self._selector.get_key(sock).events != wanted:
                self._selector.modify(sock, wanted, connection)

    def _close(self) -> None:
        for sock in self._sockets.values():
            sock.close()
        self._selector.close()
        self.runtime.end()

    def trouble(self, switch: str) -> str | None:
        """Return why `switch` has no controller; ``None``: it has one."""
        return f"{type(self.failure).__name__}: {self.failure}" if self.failure is not None else None

    def end(self) -> None:
        """End the controller."""
        self._ended.set()
        self._ring()
        if self._thread is not threading.current_thread():
            self._thread.join()
        os.close(self._wake)
        for pending in self._attached:
            with contextlib.suppress(LabError):
                if pending.done():
                    pending.result()
