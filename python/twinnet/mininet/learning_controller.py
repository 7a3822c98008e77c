"""The controller that comes with twinnet: it makes each switch that connects a learning switch.

It is the program ``controller`` of a script's machine: ``controller ptcp:PORT``.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.framing import HEADER_BYTES, NotOpenFlow
from twinnet.control.hello import agreed_version
from twinnet.errors import LabError
from twinnet.mininet.kernel import name_process
from twinnet.mininet.learning_1_0 import VERSION, Session10

if TYPE_CHECKING:
    from twinnet.control.session import Session
    from twinnet.mininet.learning_1_3 import Stage13

__all__ = ["LearningController", "main"]

_DEFAULT_PORT = 6653
_OLD_PORT = 6633
_BACKLOG = 512
_PIECE_BYTES = 256 * 1024
_HELLO_OF_1_0 = bytes((VERSION, 0, 0, HEADER_BYTES, 0, 0, 0, 0))


class LearningController:
    """Serves the switches that connect to `listeners`: by OpenFlow 1.0 those that speak it, as Mininet's own controller
    does, and others by 1.3."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = list(listeners)
        self._stage: Stage13 | None = None
        self._selector = selectors.DefaultSelector()
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ)
        self._sessions: dict[socket.socket, Session | Session10] = {}
        self._hellos: dict[socket.socket, bytes] = {}

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
        self._hellos[sock] = b""
        self._selector.register(sock, selectors.EVENT_READ)

    def _greet(self, sock: socket.socket, data: bytes) -> tuple[Session | Session10, bytes] | None:
        """Choose the version by the switch's hello: 1.0 where it speaks that, as Mininet's own controller does."""
        said = self._hellos[sock] = self._hellos[sock] + data
        if len(said) < HEADER_BYTES or len(said) < int.from_bytes(said[2:4], "big"):
            return None
        del self._hellos[sock]
        if agreed_version(said[: int.from_bytes(said[2:4], "big")], _HELLO_OF_1_0) == VERSION:
            session: Session | Session10 = Session10(self._sessions.values())
        else:
            if self._stage is None:
                # Few switches speak 1.3 alone, and what they need takes time to import: this program has to listen at
                # once, as Mininet's own controller does.
                from twinnet.mininet.learning_1_3 import Stage13

                self._stage = Stage13()
            session = self._stage.session()
        self._sessions[sock] = session
        return session, said

    def _receive(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(_PIECE_BYTES)
            session = self._sessions.get(sock)
            if data and session is None:
                chosen = self._greet(sock, data)
                if chosen is None:
                    return
                session, data = chosen
                # By itself, as other controllers do: a protocol analyser shows a hello then.
                self._send(sock, session)
            if data and session is not None:
                session.receive(data)
                self._send(sock, session)
                return
        except (LabError, NotOpenFlow, OSError, struct.error) as error:
            print(f"controller: {error}", file=sys.stderr, flush=True)
        self._selector.unregister(sock)
        sock.close()
        self._hellos.pop(sock, None)
        ended = self._sessions.pop(sock, None)
        if ended is not None:
            ended.close()

    def _send(self, sock: socket.socket, session: Session | Session10) -> None:
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
