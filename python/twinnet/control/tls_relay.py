"""Control channels over TLS: the owner of a lab speaks it, and the lab gets a socket that carries what is inside.

A connection is served by one thread, since what is in Python's ``ssl`` may not be called by two at once. Each way it
holds one piece at a time and takes the next when that is gone, so a side that does not read holds up the other.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading

__all__ = ["TlsFailed", "TlsRelay", "handshake"]

HANDSHAKE_PATIENCE_S = 5.0
_PIECE_BYTES = 65_536
_CLOSED = "the controller closed it"
_REASONS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS newer than 1.1",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has shown no certificate",
}


class TlsFailed(OSError):
    """A TLS handshake has failed, or the connection broke because of TLS."""


def handshake(sock: socket.socket, context: ssl.SSLContext, server_side: bool = False) -> ssl.SSLSocket:
    """Return `sock`, which is connected, with TLS around it; closes it when that fails.

    Raises
    ------
    TlsFailed
        When the other side does not agree within 5 s.
    """
    sock.settimeout(HANDSHAKE_PATIENCE_S)
    try:
        return context.wrap_socket(sock, server_side=server_side)
    except OSError as error:
        sock.close()
        raise TlsFailed(_in_words(error)) from None


def _in_words(error: OSError) -> str:
    """Describe the error in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return f"it has not shaken hands for TLS within {HANDSHAKE_PATIENCE_S:g} s"
    if isinstance(error, (ssl.SSLEOFError, ConnectionError)):
        return "it ended the TLS handshake"
    reason: object = getattr(error, "reason", None)
    if not isinstance(reason, str):
        return error.strerror or str(error)
    if "ALERT" in reason:
        # TLSV13_ALERT_CERTIFICATE_REQUIRED and the like: it did not like what we have shown.
        alert = reason.partition("ALERT_")[2] or reason
        return f"it refused TLS: {alert.replace('_', ' ').lower()}"
    return _REASONS.get(reason, f"TLS failed: {reason.replace('_', ' ').lower()}")


class TlsRelay:
    """Passes bytes on between a connection over TLS and a socket, in both ways, until one of them ends.

    Parameters
    ----------
    secure
        The connection, after its handshake.

    Attributes
    ----------
    plain
        The other end of that socket, for whoever wants what is inside of the connection.
    why
        Why the connection ended, when that was not because of `plain`.
    """

    def __init__(self, secure: ssl.SSLSocket) -> None:
        self._secure = secure
        self.plain: socket.socket
        try:
            self._inside, self.plain = socket.socketpair()
        except OSError:
            secure.close()
            raise
        self.why: str | None = None
        for one in (self._secure, self._inside):
            one.setblocking(False)

    def start(self) -> None:
        """Run in a thread of its own."""
        threading.Thread(target=self.run, name="twinnet-tls", daemon=True).start()

    def run(self) -> None:
        """Pass bytes on; returns when one side has ended, and both are closed."""
        try:
            ended = self._pass_on()
            if ended is self._secure:
                self.why = _CLOSED
            else:
                # That there is nothing more to come is said in the words of TLS; an answer is not waited for.
                with contextlib.suppress(OSError):
                    self._secure.unwrap()
        except OSError as error:
            self.why = self._reason(error)
        finally:
            self._secure.close()
            self._inside.close()

    def _pass_on(self) -> socket.socket:
        """Return the side that has ended."""
        ways = (_Way(self._secure, self._inside), _Way(self._inside, self._secure))
        while True:
            wanted: dict[socket.socket, int] = {}
            moved = [way.move(wanted) for way in ways]
            for way in ways:
                if way.ended:
                    return way.source
            if not any(moved):
                poller = select.poll()
                for sock, events in wanted.items():
                    poller.register(sock.fileno(), events)
                poller.poll()

    def _reason(self, error: OSError) -> str:
        if not isinstance(error, ssl.SSLError):
            # A side that refuses us says why before it closes, and that may be here still.
            try:
                self._secure.recv(1)
            except ssl.SSLError as alert:
                if "ALERT" in (alert.reason or ""):
                    error = alert
            except OSError:
                pass
        if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
            return _CLOSED
        return _in_words(error)


class _Way:
    """One direction of a relay, from `source` to `sink`."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self.ended = False
        self._sink = sink
        self._piece = b""

    def move(self, wanted: dict[socket.socket, int]) -> bool:
        """Pass on what can be passed on now, and return whether anything was; otherwise `wanted` says what to wait
        for."""
        at, events = self.source, select.POLLIN
        try:
            if not self._piece:
                self._piece = self.source.recv(_PIECE_BYTES)
                self.ended = not self._piece
            if self._piece:
                at, events = self._sink, select.POLLOUT
                self._piece = self._piece[self._sink.send(self._piece) :]
            return True
        except ssl.SSLWantReadError:
            events = select.POLLIN
        except ssl.SSLWantWriteError:
            events = select.POLLOUT
        except BlockingIOError:
            pass
        wanted[at] = wanted.get(at, 0) | events
        return False
