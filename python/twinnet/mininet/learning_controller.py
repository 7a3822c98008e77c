"""The controller that comes with twinnet: it makes each switch that connects a learning switch.

It is the program ``controller`` of a script's machine: ``controller ptcp:PORT``.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.events import FlowRemoved
from twinnet.control.learning import LearningSwitch
from twinnet.control.session import Session
from twinnet.errors import LabError
from twinnet.mininet.kernel import name_process

if TYPE_CHECKING:
    from twinnet.qos.queue import Queue

__all__ = ["LearningController", "main"]

_DEFAULT_PORT = 6653
_OLD_PORT = 6633
_BACKLOG = 512
_WHAT_NO_FLOW_COVERS = "priority=0,actions=controller"
_PIECE_BYTES = 256 * 1024


class _Learning(LearningSwitch):
    """A learning switch that asks again to be sent what no flow covers when a user has deleted all flows, as switches
    of OpenFlow 1.0 do by themselves."""

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        super().on_switch_joined(switch)
        switch.install(_WHAT_NO_FLOW_COVERS, tell_when_removed=True)

    def on_flow_removed(self, event: FlowRemoved) -> None:
        event.switch.install(_WHAT_NO_FLOW_COVERS, tell_when_removed=True)


class LearningController:
    """Serves the switches that connect to `listeners`. It is the stage of a :class:`LearningSwitch`."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = list(listeners)
        self._joined: dict[str, ConnectedSwitch] = {}
        self._controller = _Learning()
        self._begin_s = time.monotonic()
        self._selector = selectors.DefaultSelector()
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ)
        self._sessions: dict[socket.socket, Session] = {}
        self._accepted = 0
        self._controller.attach(self, self._joined)

    @property
    def now_ps(self) -> int:
        """The time since the start in picoseconds."""
        return int((time.monotonic() - self._begin_s) * 1e12)

    @property
    def spec(self) -> Mapping[str, Any]:
        """Nothing is known of the network."""
        return {"nodes": [], "links": []}

    def call_at(self, at_ps: int, call: Callable[[], None]) -> None:
        """Refuse: a learning switch has no timers."""
        raise NotImplementedError("the learning controller has no timers")

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        """Refuse: a learning switch sets no queues."""
        raise NotImplementedError("the learning controller sets no queues")

    def turn(self, timeout_s: float | None = None) -> None:
        """Wait for what switches say, and answer it."""
        for key, _ in self._selector.select(timeout_s):
            sock: Any = key.fileobj
            if sock in self._listeners:
                self._accept(sock)
            else:
                self._receive(sock)

    def _accept(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._accepted += 1
        session = Session(self._controller, f"switch{self._accepted}", self._joined, lambda: None, lambda _: None)
        self._sessions[sock] = session
        self._selector.register(sock, selectors.EVENT_READ)
        self._send(sock, session)

    def _receive(self, sock: socket.socket) -> None:
        session = self._sessions[sock]
        try:
            data = sock.recv(_PIECE_BYTES)
            if data:
                session.receive(data)
                self._send(sock, session)
                return
        except (LabError, OSError) as error:
            print(f"controller: {error}", file=sys.stderr, flush=True)
        self._selector.unregister(sock)
        sock.close()
        del self._sessions[sock]
        session.close()

    def _send(self, sock: socket.socket, session: Session) -> None:
        out = session.take()
        if out:
            sock.sendall(out)
        # A flow of one switch may be deleted because of news of another.
        for other, its in self._sessions.items():
            if its is not session and (more := its.take()):
                other.sendall(more)


def main(arguments: list[str]) -> int:
    """Serve for ever at the port of ``ptcp:PORT`` in `arguments`; without one at 6653 and 6633."""
    target = next((word for word in arguments if word.startswith("ptcp:")), f"ptcp:{_DEFAULT_PORT}")
    text = target.split(":")[1]
    if text and not text.isdigit():
        print(f"controller: {target} is no place to listen: write ptcp:PORT", file=sys.stderr)
        return 2
    name_process("controller")
    # Without a port both usual ones are meant, as programs that come with switches have it.
    ports = [int(text)] if text else [_DEFAULT_PORT, _OLD_PORT]
    controller = LearningController([socket.create_server(("", port), backlog=_BACKLOG) for port in ports])
    while True:
        controller.turn()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
