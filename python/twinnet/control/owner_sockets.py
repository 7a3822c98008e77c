"""Sockets of a lab's owner, in its own network namespace: connections to controllers, and where switches listen."""

from __future__ import annotations

import contextlib
import socket

from twinnet.control.targets import Target, parse_listen
from twinnet.control.unix_listener import UnixListener
from twinnet.errors import NotAvailable

__all__ = ["BACKLOG", "Listeners", "connect_to"]

BACKLOG = 16
"""Connections that may wait to be taken."""
_CONNECT_PATIENCE_S = 3.0


def connect_to(target: Target) -> socket.socket:
    """Return a connection to a controller; raises `OSError` when there is none within 3 s."""
    connected = socket.create_connection((target.address, target.port), _CONNECT_PATIENCE_S)
    connected.settimeout(None)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class Listeners:
    """Sockets that listen until they are closed together."""

    def __init__(self) -> None:
        self._open: list[socket.socket | UnixListener] = []

    def add(self, listener: socket.socket) -> None:
        """Close `listener` with the others."""
        self._open.append(listener)

    def listen(self, switch: str, text: str) -> socket.socket:
        """Listen for `switch` at the place that `text` names, as ``ptcp:6654``, and return what accepts.

        Raises
        ------
        NotAvailable
            When that place is not to be had.
        """
        target = parse_listen(text)
        try:
            if target.path is not None:
                unix = UnixListener(target.path)
                self._open.append(unix)
                return unix.socket
            family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
            listener = socket.create_server((target.address, target.port), family=family, backlog=BACKLOG)
        except OSError as error:
            remedy = "choose another place, or end what listens there"
            raise NotAvailable(f"{switch} cannot listen on {text}: {error.strerror or error}", remedy) from None
        self._open.append(listener)
        return listener

    def close(self) -> None:
        """Close all; who waits to accept is woken."""
        for listener in self._open:
            if isinstance(listener, socket.socket):
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
            listener.close()
