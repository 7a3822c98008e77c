"""The control channels of a lab's Open vSwitch.

It stands in a network namespace of its own and reaches no controller there. So for each controller a Unix socket
stands in its folder; the owner of the lab holds the socket, takes the connections that Open vSwitch makes to it, makes
one to the controller for each in its own network namespace, and passes bytes on, both ways. Where a switch is to listen
it is the other way round. A socket is bound and connected by a program in the lab's place for Open vSwitch, since only
there its folder is seen; when the owner dies the lab ends, and the folder with it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from twinnet.control.owner_sockets import BACKLOG, Admitted, Listeners, accepted, connect_to
from twinnet.control.targets import Target, parse_target
from twinnet.control.tls import accepting, connecting
from twinnet.errors import LabError
from twinnet.lab_process.requests import LabRequests
from twinnet.open_vswitch.bridge import controller_socket
from twinnet.open_vswitch.programs import DIRECTORY, run

__all__ = ["Relays"]

_PIECE_BYTES = 65_536
_MOST_TOOLS = 64
"""At all switches of a lab: whoever may connect to where one listens could fill this process with connections."""
_BIND = f"import socket, sys; s = socket.socket(fileno=0); s.bind(sys.argv[1]); s.listen({BACKLOG})"
_CONNECT = "import socket, sys; socket.socket(fileno=0).connect(sys.argv[1])"


class Relays:
    """Relays for the controllers and the listening places of `switches` (of the lab protocol).

    Attributes
    ----------
    troubles
        The reasons why connections failed or ended that have not been made again, by switch and target.

    Raises
    ------
    NotAvailable
        When a switch cannot listen where it is to.
    """

    def __init__(self, lab: LabRequests, switches: Sequence[Mapping[str, Any]]) -> None:
        self._lab = lab
        self._ended = threading.Event()
        self.troubles: dict[tuple[str, str], str] = {}
        self._targets: dict[str, list[str]] = {}
        self._listeners = Listeners()
        self._tools = Admitted(_MOST_TOOLS)
        try:
            for switch in switches:
                name = switch["name"]
                context = connecting(switch)
                for number, target in enumerate(switch.get("controllers") or ()):
                    self._relay_to(name, target, controller_socket(name, number), context)
                if switch.get("listen"):
                    self._relay_from(name, switch["listen"], accepting(switch))
        except BaseException:
            self.end()
            raise

    def targets(self, switch: str) -> list[str]:
        """Return the controllers of `switch` as Open vSwitch is to know them."""
        return self._targets.get(switch, [])

    def end(self) -> None:
        """Take no more connections. Those that there are end with the lab."""
        self._ended.set()
        self._listeners.close()

    def _relay_to(self, switch: str, text: str, path: str, context: ssl.SSLContext | None) -> None:
        listener = socket.socket(socket.AF_UNIX)
        self._there(listener, _BIND, path)
        self._listeners.add(listener)
        self._targets.setdefault(switch, []).append(f"unix:{path}")
        target = parse_target(text)
        _start(self._accept, listener, partial(self._dial, switch, text, target, context))

    def _relay_from(self, switch: str, text: str, context: ssl.SSLContext | None) -> None:
        listener = self._listeners.listen(switch, text)
        _start(self._accept, listener, partial(self._join, switch, text, context))

    def _there(self, sock: socket.socket, work: str, path: str) -> None:
        run(self._lab, [sys.executable, "-I", "-S", "-c", work, path], stdin=sock.fileno())

    def _accept(self, listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
        while not self._ended.is_set():
            try:
                taken, _ = listener.accept()
            except OSError:
                if self._ended.is_set() or self._lab.closed or listener.fileno() < 0:
                    return
                # Out of descriptors, mostly: a moment later there may be some.
                self._ended.wait(1)
                continue
            _start(take, taken)

    def _dial(
        self, switch: str, text: str, target: Target, context: ssl.SSLContext | None, taken: socket.socket
    ) -> None:
        with taken:
            try:
                channel = connect_to(target, context)
            except OSError as error:
                self.troubles[switch, text] = error.strerror or str(error)
                return
            with channel.sock as there:
                self.troubles.pop((switch, text), None)
                _pass_both_ways(taken, there)
                self.troubles[switch, text] = channel.why or "the connection ended"

    def _join(self, switch: str, text: str, context: ssl.SSLContext | None, taken: socket.socket) -> None:
        # Without a descriptor left, the tool sees its connection end.
        with taken, contextlib.suppress(OSError), self._tools.one(taken):
            channel = accepted(taken, context, switch, text)
            if channel is None:
                return
            with channel.sock as tool, socket.socket(socket.AF_UNIX) as there:
                try:
                    self._there(there, _CONNECT, f"{DIRECTORY}/{switch}.mgmt")
                except LabError:
                    return
                _pass_both_ways(tool, there)


def _start(work: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=work, args=arguments, name="twinnet-relay", daemon=True).start()


def _pass_both_ways(a: socket.socket, b: socket.socket) -> None:
    """Pass bytes on until one side ends; then both are."""
    back = threading.Thread(target=_pass, args=(b, a), name="twinnet-relay", daemon=True)
    back.start()
    _pass(a, b)
    back.join()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    # A broken connection is an ended one.
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            sink.sendall(piece)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
