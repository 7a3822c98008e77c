"""The client's end of the lab protocol (docs/reference/lab-protocol.md): JSON packets over ``SOCK_SEQPACKET``,
descriptors beside.

A connection may be used by any number of threads: one thread of its own reads the replies and hands each to whoever
waits.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from twinnet.errors import LabClosed, LabError, NotAvailable
from twinnet.lab_process.packets import receive, send
from twinnet.lab_process.pending_reply import Json, JsonObject, PendingReply, refusal
from twinnet.lab_process.requests import LabRequests

__all__ = ["AnswersAtOnce", "LabConnection", "connect"]

_LAST_WORDS_S = 1.0


class AnswersAtOnce(LabRequests):
    """A lab that has an answer before it returns from the request."""

    def submit(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> PendingReply[Json]:
        """Answer the request `do` now, and return the answer as one that has come."""
        try:
            return PendingReply[Json].come(self.answer(do, fields, descriptors))
        except LabError as error:
            return PendingReply[Json].refused(error)


class LabConnection(LabRequests):
    """A connection to a lab process over the connected socket `sock`, which it owns from now on.

    Parameters
    ----------
    sock
        The socket.
    patience_s
        How long :meth:`request` waits for each answer, in seconds; ``None``: for as long as the lab lives.
    """

    def __init__(self, sock: socket.socket, patience_s: float | None = None) -> None:
        self.heard: Callable[[str, JsonObject], None] | None = None
        """Called with each request that was answered by its value, before :meth:`answer` returns."""
        self._patience_s = patience_s
        self._socket = sock
        self._pending: dict[int, PendingReply[Json]] = {}
        self._lock = threading.Lock()
        self._next_id = 1
        self._closed = False
        self._farewell: dict[str, Any] | None = None
        self._gone = threading.Event()
        self._reader = threading.Thread(target=self._read, name="twinnet-lab-replies", daemon=True)
        self._reader.start()

    @property
    def closed(self) -> bool:
        """True if the lab has ended or the connection was closed."""
        return self._closed

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the lab has ended by then."""
        return self._gone.wait(min(timeout_s, threading.TIMEOUT_MAX))

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Send the request `do` with `fields` and return the value of its answer; raises as
        :meth:`PendingReply.result`."""
        value = self.submit(do, fields, descriptors).result(self._patience_s)
        if self.heard is not None:
            self.heard(do, fields)
        return value

    def submit(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> PendingReply[Json]:
        """Send a request and return at once; `descriptors` are duplicated, so the caller keeps its own."""
        pending = PendingReply[Json]()
        with self._lock:
            if self._closed:
                raise LabClosed("the lab has ended", "start a new one")
            number, self._next_id = self._next_id, self._next_id + 1
            self._pending[number] = pending
            try:
                send(self._socket, {"id": number, "do": do, **fields}, descriptors)
                return pending
            except OSError as error:
                del self._pending[number]
                failure = error
            except BaseException:
                self._pending.pop(number, None)
                raise
        if failure.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
            raise LabError(
                f"the request cannot be sent: {failure.strerror}", "raise the limit of open files (ulimit -n)"
            )
        # The lab may have said why it closed its end; the reader has heard it by the time it leaves.
        self._gone.wait(_LAST_WORDS_S)
        if self._farewell is not None:
            raise refusal(self._farewell)
        raise LabClosed(f"the lab has ended ({failure.strerror})", "start a new one")

    def _read(self) -> None:
        try:
            while (reply := receive(self._socket)) is not None:
                if reply.get("id") is None and "error" in reply:
                    self._farewell = reply
                    continue
                with self._lock:
                    pending = self._pending.pop(reply.get("id", 0), None)
                if pending is not None:
                    pending.settle(reply)
        except (OSError, ValueError):
            # A lab that breaks off or talks nonsense has ended for us; every waiter hears of it below.
            pass
        with self._lock:
            self._closed = True
            left = list(self._pending.values())
            self._pending.clear()
        self._gone.set()
        for pending in left:
            pending.settle(self._farewell)

    def close(self) -> None:
        """End the connection; whoever still waits for an answer hears that the lab has ended."""
        # The lab may have closed its end first.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._reader:
            self._reader.join()
        self._socket.close()


def connect(name: str, patience_s: float | None = None) -> LabConnection:
    """Connect to the running lab `name` of this user; `patience_s` as for :class:`LabConnection`.

    Raises
    ------
    NotAvailable
        When there is no such lab; a stranger that listens at its address is none.
    """
    from twinnet import _core

    try:
        # The kernel was asked who listens: a stranger is sent nothing.
        descriptor = _core.open_lab(name)
    except _core.CoreError as error:
        kind, message, remedy = error.args
        raise (NotAvailable(message, remedy) if kind == "NotAvailable" else LabError(message, remedy, kind)) from None
    return LabConnection(socket.socket(fileno=descriptor), patience_s)
