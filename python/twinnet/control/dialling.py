"""The owner's part of the control channels: it makes the sockets, in its own network namespace, and passes them on.

A connection lives in the lab from then on; the answer to the request that passed it comes when it ends, and the next
one is made after 1 s, 2 s, 4 s and then every 8 s. When the owner dies the lab ends, and the sockets with it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal

from twinnet.control.choice import APP_TARGET
from twinnet.control.owner_sockets import BACKLOG, Channel, Listeners, accepted, connect_to
from twinnet.control.targets import Target, parse_target
from twinnet.control.tls import accepting, check_tls, connecting
from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import EndedReply
from twinnet.lab_process.requests import LabRequests

__all__ = ["Dialling"]

_SHORTEST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 8.0


class _Dialled:
    """A controller that a switch is to have: the connection to it is made again and again until it is left."""

    def __init__(self, switch: str, text: str) -> None:
        self.switch = switch
        self.text = text
        self.target: Target = parse_target(text)
        self.is_left = threading.Event()
        self._lock = threading.Lock()
        self._connected: socket.socket | None = None

    @contextlib.contextmanager
    def connected(self, sock: socket.socket) -> Generator[None]:
        """Have `sock`, which the lab is passed, end when the controller is left."""
        kept = sock.dup()
        with self._lock:
            self._connected = kept
        if self.is_left.is_set():
            self.leave()
        try:
            yield
        finally:
            with self._lock, kept:
                self._connected = None

    def leave(self) -> None:
        """End its connection, and make no more."""
        self.is_left.set()
        with self._lock, contextlib.suppress(OSError):
            if self._connected is not None:
                self._connected.shutdown(socket.SHUT_RDWR)


class Dialling:
    """Connects the switches of `nodes` (of the lab protocol) to their controllers, and listens for them; those that
    are Open vSwitch see to it otherwise.

    Attributes
    ----------
    troubles
        The reasons why connections failed or ended that have not been made again, by switch and target.

    Raises
    ------
    NotAvailable
        When a switch cannot listen where it is to.
    """

    def __init__(self, lab: LabRequests, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._lab = lab
        self._ended = threading.Event()
        self.troubles: dict[tuple[str, str], str] = {}
        self._listeners = Listeners()
        self._dialled: dict[tuple[str, str], _Dialled] = {}
        switches = [node for node in nodes if node["kind"] == "switch" and node.get("datapath", "own") == "own"]
        self._nodes: dict[str, Mapping[str, Any]] = {switch["name"]: switch for switch in switches}
        for switch in switches:
            if switch.get("listen"):
                self._listen(switch["name"], switch["listen"], accepting(switch))
        for switch in switches:
            self.dial(switch["name"], switch.get("controllers", ()))

    def dial(self, switch: str, targets: Sequence[str]) -> None:
        """Connect `switch` to the controllers `targets` and to no others. Those that it is connected to stay so; those
        that run in this process are another's to connect.

        Raises
        ------
        BadValue
            One is no controller's address, or none that this switch has a key for; nothing is changed.
        """
        wanted = [text for text in targets if not text.startswith(APP_TARGET)]
        node = self._nodes[switch]
        check_tls([{**node, "controllers": wanted}])
        made = {text: _Dialled(switch, text) for text in wanted if (switch, text) not in self._dialled}
        for key in [key for key in self._dialled if key[0] == switch and key[1] not in wanted]:
            self._dialled.pop(key).leave()
            self.troubles.pop(key, None)
        context = connecting(node) if made else None
        for text, dialled in made.items():
            self._dialled[switch, text] = dialled
            self._start(self._dial, dialled, context)

    def _start(self, work: Any, *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, name="twinnet-control", daemon=True).start()

    def end(self) -> None:
        """Make no more connections, and stop listening."""
        self._ended.set()
        # Connections end with the lab.
        for dialled in self._dialled.values():
            dialled.is_left.set()
        self._listeners.close()

    def _dial(self, dialled: _Dialled, context: ssl.SSLContext | None) -> None:
        key = (dialled.switch, dialled.text)
        pause_s = _SHORTEST_PAUSE_S
        while not dialled.is_left.is_set():
            try:
                channel = connect_to(dialled.target, context)
            except OSError as error:
                trouble = error.strerror or str(error)
            else:
                self.troubles.pop(key, None)
                try:
                    with dialled.connected(channel.sock):
                        ended = self._attach(channel, *key, "controller").result()
                except (LabError, OSError) as error:
                    if self._lab.closed:
                        return
                    # Out of descriptors, mostly: a moment later there may be some.
                    trouble = str(error)
                else:
                    pause_s = _SHORTEST_PAUSE_S
                    trouble = channel.why or str(ended["ended"])
            if not dialled.is_left.is_set():
                self.troubles[key] = trouble
            dialled.is_left.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _attach(
        self, channel: Channel, switch: str, target: str, peer: Literal["controller", "tool"]
    ) -> PendingReply[EndedReply]:
        with channel.sock as sock:
            given = [sock.fileno()]
            return self._lab.controller_attach_later(switch=switch, target=target, peer=peer, descriptors=given)

    def _listen(self, switch: str, text: str, context: ssl.SSLContext | None) -> None:
        try:
            listener = self._listeners.listen(switch, text)
        except NotAvailable:
            self.end()
            raise
        self._start(self._accept, listener, switch, text, context)

    def _accept(self, listener: socket.socket, switch: str, text: str, context: ssl.SSLContext | None) -> None:
        shaking_hands = threading.BoundedSemaphore(BACKLOG)
        while not self._ended.is_set():
            try:
                sock, _ = listener.accept()
                if context is None:
                    self._attach(Channel(sock), switch, text, "tool")
                else:
                    # One that is slow to shake hands holds up no other, and however many come take no more threads.
                    shaking_hands.acquire()
                    self._start(self._admit, sock, switch, text, context, shaking_hands)
            except (LabError, OSError):
                if self._ended.is_set() or self._lab.closed or listener.fileno() < 0:
                    return
                # Out of descriptors, mostly: a moment later there may be some.
                self._ended.wait(_SHORTEST_PAUSE_S)

    def _admit(
        self,
        sock: socket.socket,
        switch: str,
        text: str,
        context: ssl.SSLContext,
        shaking_hands: threading.BoundedSemaphore,
    ) -> None:
        try:
            channel = accepted(sock, context, switch, text)
        finally:
            shaking_hands.release()
        if channel is not None:
            # The lab has ended, or has no descriptor left: the tool sees its connection end.
            with contextlib.suppress(LabError, OSError):
                self._attach(channel, switch, text, "tool")
