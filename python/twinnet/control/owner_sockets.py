"""Sockets of a lab's owner, in its own network namespace: connections to controllers, and where switches listen."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import warnings
from collections.abc import Generator
from dataclasses import dataclass

from twinnet.control.targets import OPENFLOW_PORT, Target, parse_listen
from twinnet.control.tls_relay import TlsRelay, handshake
from twinnet.control.unix_listener import UnixListener
from twinnet.errors import ControllerWarning, NotAvailable

__all__ = ["BACKLOG", "Admitted", "Channel", "Listeners", "accepted", "connect_to"]

BACKLOG = 16
"""Connections that may wait to be taken."""
_CONNECT_PATIENCE_S = 3.0


@dataclass(frozen=True)
class Channel:
    """A connection on which OpenFlow can be spoken.

    Attributes
    ----------
    sock
        A connected socket.
    relay
        What speaks TLS with the other side of it; ``None``: nothing does.
    """

    sock: socket.socket
    relay: TlsRelay | None = None

    @property
    def why(self) -> str | None:
        """The reason why it ended, where only TLS knows it."""
        return self.relay.why if self.relay is not None else None


def _over_tls(sock: socket.socket, context: ssl.SSLContext, server_side: bool) -> Channel:
    relay = TlsRelay(handshake(sock, context, server_side))
    relay.start()
    return Channel(relay.plain, relay)


def connect_to(target: Target, context: ssl.SSLContext | None) -> Channel:
    """Return a connection to a controller, by `context` where `target` says over TLS.

    Raises
    ------
    OSError
        When there is none within 3 s, and TLS within 5 s more.
    """
    connected = socket.create_connection((target.address, target.port), _CONNECT_PATIENCE_S)
    connected.settimeout(None)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not target.tls or context is None:
        return Channel(connected)
    return _over_tls(connected, context, server_side=False)


def accepted(sock: socket.socket, context: ssl.SSLContext | None, switch: str, text: str) -> Channel | None:
    """Return a connection that `switch` accepted at the place `text`, over TLS where there is a `context`; ``None``,
    with a warning, when that fails."""
    try:
        return Channel(sock) if context is None else _over_tls(sock, context, server_side=True)
    except OSError as error:
        warnings.warn(f"{switch} refused a tool at {text}: {error}", ControllerWarning, stacklevel=2)
        return None


class Admitted:
    """Connections of tools, of which there are at most `most`: one more, and the oldest ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    @contextlib.contextmanager
    def one(self, sock: socket.socket) -> Generator[None]:
        """Count `sock`, which is connected, until the block is left."""
        # Whoever speaks TLS over it takes its descriptor away.
        kept = sock.dup()
        with self._lock:
            self._open.append(kept)
            first = self._open[0] if len(self._open) > self._most else None
            if first is not None:
                self._open.remove(first)
                with contextlib.suppress(OSError):
                    first.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            with self._lock, kept:
                if kept in self._open:
                    self._open.remove(kept)


class Listeners:
    """Sockets that listen until they are closed together."""

    def __init__(self) -> None:
        self._open: list[socket.socket | UnixListener] = []

    def add(self, listener: socket.socket) -> None:
        """Close `listener` with the others."""
        self._open.append(listener)

    def listen(self, switch: str, text: str, usual_port: int = OPENFLOW_PORT) -> socket.socket:
        """Listen for `switch` at the place that `text` names, as ``ptcp:6654``, and return what accepts; `usual_port`
        is the port where `text` names none.

        Raises
        ------
        NotAvailable
            When that place is not to be had.
        """
        target = parse_listen(text, usual_port)
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
