"""A controller that floods every frame it is sent: the least that a controller can do, the same for every switch."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from types import TracebackType

from twinnet_conformance import openflow13 as of

__all__ = ["EchoController"]

_HEADER = 8
_PIECE = 1 << 18
_HELLO = bytes([4, of.HELLO, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x10])


def _framed(message: of.Message, xid: int = 2) -> bytes:
    head = bytes([message.version, message.kind]) + (_HEADER + len(message.body)).to_bytes(2)
    return head + xid.to_bytes(4) + message.body


class EchoController:
    """The controller in a thread of its own; ``with`` begins and ends it.

    Parameters
    ----------
    listener
        The socket that switches connect to.
    frames
        Whether it asks for all frames and floods them.
    """

    def __init__(self, listener: socket.socket, *, frames: bool) -> None:
        self._listener = listener
        self._frames = frames
        self._ends = False
        self._joined: set[int] = set()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> EchoController:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends = True
        self._thread.join()
        self._listener.close()

    def wait_for(self, switches: int, patience_s: float) -> float:
        """Return when so many have told their features, by the monotonic clock."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._joined) >= switches, patience_s):
                raise TimeoutError(f"{len(self._joined)} of {switches} switches joined within {patience_s:.0f} s")
            return time.monotonic()

    @property
    def connected(self) -> int:
        """Switches that are connected and have told their features."""
        return len(self._joined)

    def _run(self) -> None:
        waiting: dict[int, bytes] = {}
        with selectors.DefaultSelector() as selector:
            self._listener.setblocking(False)
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._ends:
                for key, _ in selector.select(0.05):
                    if key.fileobj is self._listener:
                        opened, _ = self._listener.accept()
                        opened.setblocking(True)
                        if opened.family != socket.AF_UNIX:
                            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        selector.register(opened, selectors.EVENT_READ)
                        opened.sendall(_HELLO + _framed(of.Message(of.FEATURES_REQUEST)))
                        waiting[opened.fileno()] = b""
                        continue
                    opened = key.fileobj
                    if not isinstance(opened, socket.socket):
                        continue
                    data = opened.recv(_PIECE)
                    if not data:
                        self._joined.discard(opened.fileno())
                        selector.unregister(opened)
                        opened.close()
                        continue
                    number = opened.fileno()
                    waiting[number] = self._answer(opened, waiting[number] + data)
            for key in list(selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket) and key.fileobj is not self._listener:
                    key.fileobj.close()

    def _answer(self, switch: socket.socket, data: bytes) -> bytes:
        """Answer whole messages and return the rest."""
        out = b""
        while len(data) >= _HEADER and len(data) >= (length := int.from_bytes(data[2:4])):
            message, data = data[:length], data[length:]
            kind = message[1]
            if kind == of.ECHO_REQUEST:
                out += message[:1] + bytes([of.ECHO_REPLY]) + message[2:]
            elif kind == of.FEATURES_REPLY:
                if self._frames:
                    out += _framed(of.flow_mod({}, of.apply_actions(of.output(of.CONTROLLER)), priority=0))
                with self._changed:
                    self._joined.add(switch.fileno())
                    self._changed.notify_all()
            elif kind == of.PACKET_IN and self._frames:
                told = of.read_packet_in(of.Received(4, kind, 0, message[_HEADER:]))
                in_port, _ = told.conditions["in_port"]
                out += _framed(of.packet_out(told.data, of.output(of.FLOOD), in_port=in_port))
        if out:
            switch.sendall(out)
        return data
