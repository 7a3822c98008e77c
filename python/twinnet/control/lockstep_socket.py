"""A controller that is a program of its own, in lockstep with a lab on the virtual clock, over real TCP.

After a switch has said something, time waits until the controller is done. Done it is when it has answered an echo
request that was sent behind the switch's message, and then one on each of its other connections (what it wrote there
before is here by then), and when after that no byte has come for the *quiet* time, in which a program that the lab
started was never seen working. Whoever does not answer within the *patience* is given up.

Echo requests of both sides are answered here, at once: in virtual time nobody is ever late.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from twinnet.control.framing import ECHO_REPLY, ECHO_REQUEST, HEADER, HEADER_BYTES, Framing, NotOpenFlow
from twinnet.control.hello import agreed_version
from twinnet.control.owner_sockets import Channel, connect_to
from twinnet.control.program import ControllerProgram
from twinnet.control.targets import parse_target
from twinnet.control.tls_relay import TlsFailed

__all__ = ["SocketEndpoint"]

_FENCE = b"twinnet fence "
_FENCE_XID = 0x7477_6E00
_POLL_S = 0.002
_KEEP_S = 1.0
_PIECE_BYTES = 256 * 1024
_MOST_HEARD_BYTES = 64 << 20
_CONNECT_PAUSE_S = 0.05


@dataclass
class _Line:
    """A connection."""

    number: int
    switch: str
    channel: Channel
    framing: Framing = field(default_factory=Framing)
    from_switch: Framing = field(default_factory=Framing)
    heard: bytearray = field(default_factory=bytearray)
    our_hello: bytes = b""
    their_hello: bytes = b""
    version: int | None = None
    fence: int = 0
    passed: int = 0
    nonsense: bool = False

    @property
    def sock(self) -> socket.socket:
        return self.channel.sock


class SocketEndpoint:
    """The controller at `target`.

    Parameters
    ----------
    target
        Where it is.
    quiet_s, patience_s
        See above, in seconds of real time.
    program
        The program that the lab has started as this controller.
    note
        Told switch, target and reason when a connection fails or ends.
    """

    def __init__(
        self,
        target: str,
        quiet_s: float,
        patience_s: float,
        program: ControllerProgram | None,
        note: Callable[[str, str, str], None],
    ) -> None:
        self._target = target
        self._quiet_s = quiet_s
        self._patience_s = patience_s
        self._program = program
        self._note = note
        self._lines: dict[int, _Line] = {}
        self._lost: list[int] = []
        self._unreachable: str | None = None
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None

    def dial(self, switch: str, context: ssl.SSLContext | None) -> Channel | None:
        """Return a connection for `switch`, where it is over TLS by `context`; ``None``, and noted, when none can be
        had within the patience."""
        if self._unreachable is None:
            target = parse_target(self._target)
            deadline = time.monotonic() + self._patience_s
            while True:
                try:
                    channel = connect_to(target, context)
                    if self._program is not None and not self._program.running:
                        channel.sock.close()
                        raise ConnectionError("another program listens there, and the one that was started has ended")
                    channel.sock.setblocking(False)
                    return channel
                except TlsFailed as error:
                    # That is between this switch and the controller, and waiting mends nothing.
                    self._note(switch, self._target, str(error))
                    return None
                except OSError as error:
                    why = error.strerror or str(error)
                # One that is being started may not listen yet; for one that runs there is nothing to wait for.
                if self._program is None or not self._program.running or time.monotonic() > deadline:
                    said = self._program.last_words() if self._program is not None else ""
                    self._unreachable = why + (f"; it said: {said}" if said else "")
                    break
                time.sleep(_CONNECT_PAUSE_S)
        self._note(switch, self._target, self._unreachable)
        return None

    def add(self, connection: int, switch: str, channel: Channel) -> None:
        """Serve the connection of that number over `channel`."""
        with self._lock:
            self._lines[connection] = _Line(connection, switch, channel)
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="twinnet-lockstep", daemon=True)
            self._keeper.start()

    def deliver(self, connection: int, data: bytes) -> None:
        """Give `data` to the controller, and return when it is done or given up."""
        with self._lock:
            line = self._lines.get(connection)
            if line is None:
                return
            data = self._without_probes(line, data)
            if not data:
                return
            deadline = time.monotonic() + self._patience_s
            if not self._write(line, data, deadline):
                return
            self._await([line], deadline)
            self._await([one for one in self._lines.values() if one.number != connection], deadline)
            self._await_quiet(deadline)

    def closed(self, connection: int, why: str, last: bytes) -> None:
        """The switch ended the connection; it said `last`."""
        with self._lock:
            line = self._lines.pop(connection, None)
            if line is not None:
                # It may have gone before; it was not wanted any more in any case.
                with contextlib.suppress(OSError):
                    line.sock.send(last)
                line.sock.close()
                self._note(line.switch, self._target, why)

    def heard(self) -> Sequence[tuple[int, bytes]]:
        """Return what the controller has said since, by connection."""
        with self._lock:
            self._pump(0)
            heard = [(line.number, bytes(line.heard)) for line in self._lines.values() if line.heard]
            for line in self._lines.values():
                line.heard.clear()
            return heard

    def lost(self) -> Sequence[int]:
        """Return the connections that the controller has ended, or that were given up, since."""
        with self._lock:
            lost, self._lost = self._lost, []
            return lost

    def end(self) -> None:
        """The lab has ended."""
        self._ended.set()
        with self._lock:
            for line in self._lines.values():
                line.sock.close()
            self._lines.clear()
        if self._keeper is not None and self._keeper is not threading.current_thread():
            self._keeper.join()
            self._keeper = None

    def _keep(self) -> None:
        """Answers echo requests while no time passes in the lab."""
        while not self._ended.wait(_KEEP_S):
            with self._lock:
                self._pump(0)

    def _without_probes(self, line: _Line, data: bytes) -> bytes:
        """Answers the switch's echo requests, and returns what else it says."""
        rest = bytearray()
        for message in line.from_switch.push(data):
            line.our_hello = line.our_hello or message
            version, kind, length, xid = HEADER.unpack_from(message)
            if kind == ECHO_REQUEST:
                line.heard += HEADER.pack(version, ECHO_REPLY, length, xid) + message[HEADER_BYTES:]
            else:
                rest += message
        return bytes(rest)

    def _write(self, line: _Line, data: bytes, deadline: float) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[line.sock.send(view) :]
            except BlockingIOError:
                # It may be writing itself, and wait for us to read.
                self._pump(_POLL_S, line)
                if line.number not in self._lines:
                    return False
                if time.monotonic() > deadline:
                    self._give_up(line, f"it has not read for {self._patience_s:g} s")
                    return False
            except OSError as error:
                self._give_up(line, error.strerror or str(error))
                return False
        return True

    def _await(self, lines: Sequence[_Line], deadline: float) -> None:
        """Sends a fence on each of `lines`, and waits until all are passed.

        Before anything but a hello may be sent, the other side's hello is waited for.
        """
        # Hellos first: a switch that has said nothing yet has nobody who owes it one.
        lines = [line for line in lines if line.our_hello]
        self._await_all(lines, lambda line: bool(line.their_hello), deadline)
        for line in lines:
            if line.number not in self._lines or line.nonsense:
                continue
            line.version = line.version or agreed_version(line.our_hello, line.their_hello)
            # Without a version the switch ends the connection by itself.
            if line.version is not None:
                line.fence += 1
                body = _FENCE + str(line.fence).encode()
                header = HEADER.pack(line.version, ECHO_REQUEST, HEADER_BYTES + len(body), _FENCE_XID)
                self._write(line, header + body, deadline)
        self._await_all(lines, lambda line: line.passed >= line.fence, deadline)

    def _await_all(self, lines: Sequence[_Line], come: Callable[[_Line], bool], deadline: float) -> None:
        """Reads until what each of `lines` owes has `come`; gives up those that owe it still at the `deadline`."""
        while left := [one for one in lines if one.number in self._lines and not one.nonsense and not come(one)]:
            if time.monotonic() > deadline:
                for line in left:
                    self._give_up(line, f"it owed an answer for {self._patience_s:g} s")
                return
            self._pump(_POLL_S)

    def _await_quiet(self, deadline: float) -> None:
        quiet_since = time.monotonic()
        while self._lines and (now := time.monotonic()) - quiet_since < self._quiet_s:
            if self._pump(min(_POLL_S, self._quiet_s)) or (self._program is not None and self._program.working):
                quiet_since = time.monotonic()
            if now > deadline:
                if self._program is not None and self._program.working:
                    why = f"it was busy for {self._patience_s:g} s"
                else:
                    why = f"it did not fall silent for {self._patience_s:g} s"
                for line in list(self._lines.values()):
                    self._give_up(line, why)

    def _pump(self, timeout_s: float, writing: _Line | None = None) -> bool:
        """Waits up to `timeout_s` and reads what has come; returns whether anything has."""
        lines = {line.sock: line for line in self._lines.values() if len(line.heard) < _MOST_HEARD_BYTES}
        poller = select.poll()
        by_number = {sock.fileno(): line for sock, line in lines.items()}
        for number in by_number:
            poller.register(number, select.POLLIN)
        if writing is not None:
            poller.register(writing.sock.fileno(), select.POLLIN | select.POLLOUT)
        if not by_number:
            return False
        any_ = False
        for number, events in poller.poll(timeout_s * 1000):
            line = by_number.get(number)
            if line is None or not events & ~select.POLLOUT:
                continue
            any_ = True
            try:
                data = line.sock.recv(_PIECE_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                self._give_up(line, error.strerror or str(error))
                continue
            if data:
                self._sort(line, data)
            else:
                self._give_up(line, "the controller closed it")
        return any_

    def _sort(self, line: _Line, data: bytes) -> None:
        """Fences and echo requests are dealt with; all else is for the switch."""
        if line.nonsense:
            line.heard += data
            return
        try:
            for message in line.framing.push(data):
                version, kind, length, xid = HEADER.unpack_from(message)
                line.their_hello = line.their_hello or message
                if kind == ECHO_REPLY and xid == _FENCE_XID and message[HEADER_BYTES:].startswith(_FENCE):
                    line.passed = max(line.passed, _number(message[HEADER_BYTES + len(_FENCE) :]))
                elif kind == ECHO_REQUEST and version == line.version:
                    # Its buffer is full of what it does not read, otherwise; then it waits in vain.
                    with contextlib.suppress(OSError):
                        line.sock.send(HEADER.pack(version, ECHO_REPLY, length, xid) + message[HEADER_BYTES:])
                else:
                    line.heard += message
        except NotOpenFlow as error:
            # The switch refuses that by itself, and says why.
            line.nonsense = True
            line.heard += error.rest

    def _give_up(self, line: _Line, why: str) -> None:
        if self._lines.pop(line.number, None) is not None:
            line.sock.close()
            self._lost.append(line.number)
            why = line.channel.why or why
            if self._program is not None and (said := self._program.last_words()):
                why += f"; it said: {said[-500:]}"
            self._note(line.switch, self._target, why)


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 20 else 0
