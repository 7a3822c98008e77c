"""What lies between two machines that carry one network: whether the longest packets pass, how long a way takes, and
how much is lost. Measured with datagrams at the tunnels' own port, before they take it, and at another one afterwards.

The round trip is that of RFC 5905, section 8: without the time for which the other end held the datagram. Arrivals are
stamped by the kernel.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

from twinnet.errors import LabError

__all__ = ["Echo", "Prober", "Watch", "probe"]

_ASKED = b"tnU?"
_ANSWERED = b"tnU!"
_PACKET = struct.Struct("!4sIqq")
_IP_UDP_BYTES = 28
_SMALLEST_BYTES = _PACKET.size
_LARGEST_BYTES = 65_507
_STAMP_OPTION = 35
_IP_MTU_DISCOVER = 10
_NEVER_CUT, _MAY_CUT = 3, 0
_MOST_PROBES = 100_000
_WATCH_GAP_S = 0.05
_KEPT = 200_000


class Echo:
    """Sends datagrams of other machines back from UDP port `port` of `address` until :meth:`end`.

    Parameters
    ----------
    address, port
        Where it listens; port 0: one that is free.
    allowed
        The addresses that are answered.

    Raises
    ------
    LabError
        The port or the address cannot be had.
    """

    def __init__(self, address: str, port: int, allowed: Collection[str]) -> None:
        self._allowed = frozenset(allowed)
        self._socket = _stamping_socket()
        try:
            self._socket.bind((address, port))
        except OSError as error:
            self._socket.close()
            raise LabError(
                f"UDP port {port} of {address} cannot be had: {error.strerror or error}",
                "name an address of the machine, and let nothing else use the port",
                "UnderlayAddress" if error.errno == errno.EADDRNOTAVAIL else "UnderlayPort",
            ) from None
        self._socket.settimeout(0.1)
        self.port: int = self._socket.getsockname()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="underlay-echo", daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while not self._ended.is_set():
            try:
                data, arrived_ns, sender = _receive(self._socket)
            except TimeoutError:
                continue
            except OSError:
                # An ICMP error of an earlier answer.
                continue
            if sender[0] not in self._allowed or len(data) < _SMALLEST_BYTES or data[:4] != _ASKED:
                continue
            number = _PACKET.unpack_from(data)[1]
            answer = bytearray(data)
            with contextlib.suppress(OSError):
                _PACKET.pack_into(answer, 0, _ANSWERED, number, arrived_ns, time.time_ns())
                self._socket.sendto(answer, sender)

    def end(self) -> None:
        """Let go of the port."""
        self._ended.set()
        self._thread.join()
        self._socket.close()


def probe(local: str, remote: str, port: int, size_bytes: int, cut: bool, count: int, gap_s: float) -> dict[str, Any]:
    """Send `count` packets of `size_bytes` (with IPv4 header) to the echo at `remote` and return what came back.

    Parameters
    ----------
    local, remote, port
        From where to where.
    size_bytes
        The length of each IPv4 packet.
    cut
        Whether the way may cut them.
    count, gap_s
        How many, and the seconds between two.

    Returns
    -------
    ``sent``, ``received``; ``way_ps``, half of each round trip in picoseconds; ``too_long``: whether this machine
    refused to send them whole.
    """
    payload = min(max(size_bytes - _IP_UDP_BYTES, _SMALLEST_BYTES), _LARGEST_BYTES)
    with _stamping_socket() as asking:
        asking.bind((local, 0))
        asking.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _MAY_CUT if cut else _NEVER_CUT)
        asker = Prober(asking, (remote, port), payload)
        for _ in range(min(count, _MOST_PROBES)):
            if not asker.send():
                return {"sent": asker.sent, "received": 0, "way_ps": [], "too_long": True}
            asker.listen(gap_s)
        asker.listen(max(0.2, gap_s), until_all=True)
        return {"sent": asker.sent, "received": len(asker.ways_ps), "way_ps": asker.ways_ps, "too_long": False}


class Prober:
    """Asks one echo over the socket `asking` and keeps how long each way took."""

    def __init__(self, asking: socket.socket, to: tuple[str, int], payload_bytes: int) -> None:
        self._socket = asking
        self._to = to
        self._padding = bytes(payload_bytes - _SMALLEST_BYTES)
        self._sent_ns: dict[int, int] = {}
        self.sent: int = 0
        self.ways_ps: list[int] = []

    def send(self) -> bool:
        """Send one; return False when this machine says that it is too long."""
        number = self.sent
        self._sent_ns[number] = time.time_ns()
        try:
            self._socket.sendto(_PACKET.pack(_ASKED, number, 0, 0) + self._padding, self._to)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                return False
        self.sent += 1
        return True

    def listen(self, for_s: float, until_all: bool = False) -> None:
        """Take answers for `for_s` seconds, or until none is missing."""
        end_s = time.monotonic() + for_s
        while (left_s := end_s - time.monotonic()) > 0 and not (until_all and not self._sent_ns):
            self._socket.settimeout(left_s)
            try:
                data, arrived_ns, sender = _receive(self._socket)
            except TimeoutError:
                return
            except OSError:
                # Nobody listens there (ICMP): it counts as lost.
                continue
            if sender != self._to or len(data) < _SMALLEST_BYTES:
                continue
            mark, number, there_ns, back_ns = _PACKET.unpack_from(data)
            sent_ns = self._sent_ns.pop(number, None)
            if mark == _ANSWERED and sent_ns is not None and len(self.ways_ps) < _KEPT:
                round_ns = (arrived_ns - sent_ns) - (back_ns - there_ns)
                self.ways_ps.append(max(0, round_ns) * 500)


class Watch:
    """Asks the echoes `remotes` at a low rate while a network runs, so that what comes too late is seen.

    Parameters
    ----------
    local
        The address to speak from.
    remotes
        Address and port of each echo.
    """

    def __init__(self, local: str, remotes: Sequence[tuple[str, int]]) -> None:
        self._sockets = [_stamping_socket() for _ in remotes]
        for one in self._sockets:
            one.bind((local, 0))
        self._probers = {
            remote: Prober(one, remote, _SMALLEST_BYTES) for one, remote in zip(self._sockets, remotes, strict=True)
        }
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="underlay-watch", daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while not self._ended.is_set():
            for one in self._probers.values():
                one.send()
                one.listen(_WATCH_GAP_S)

    def echoes(self) -> dict[str, dict[str, Any]]:
        """Return what came back so far, by the address of the echo."""
        return {
            remote[0]: {"sent": one.sent, "received": len(one.ways_ps), "way_ps": list(one.ways_ps)}
            for remote, one in self._probers.items()
        }

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()
        self._thread.join()
        for one in self._sockets:
            one.close()


def _stamping_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, _STAMP_OPTION, 1)
    return made


def _receive(one: socket.socket) -> tuple[bytes, int, tuple[str, int]]:
    """Return the next datagram, when the kernel had it (`CLOCK_REALTIME`, in nanoseconds), and who sent it."""
    data, ancillary, _, sender = one.recvmsg(65_535, socket.CMSG_SPACE(16))
    for level, kind, stamp in ancillary:
        if level == socket.SOL_SOCKET and kind == _STAMP_OPTION and len(stamp) >= 16:
            seconds, nanoseconds = struct.unpack("qq", stamp[:16])
            return data, seconds * 1_000_000_000 + nanoseconds, sender
    return data, time.time_ns(), sender
