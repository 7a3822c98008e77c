"""The owner's part of the control channels: it makes the sockets, in its own network namespace, and passes them on.

A connection lives in the lab from then on; the answer to the request that passed it comes when it ends, and the next
one is made after 1 s, 2 s, 4 s and then every 8 s. When the owner dies the lab ends, and the sockets with it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from twinnet.control.choice import APP_TARGET
from twinnet.control.owner_sockets import BACKLOG, Channel, Listeners, accepted, connect_to
from twinnet.control.targets import Target, parse_target
from twinnet.control.tls import accepting, connecting
from twinnet.errors import LabError, NotAvailable
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import EndedReply
from twinnet.lab_process.requests import LabRequests

__all__ = ["Dialling"]

_SHORTEST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 8.0


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
        switches = [node for node in nodes if node["kind"] == "switch" and node.get("datapath", "own") == "own"]
        for switch in switches:
            if switch.get("listen"):
                self._listen(switch["name"], switch["listen"], accepting(switch))
        for switch in switches:
            context = connecting(switch)
            for text in switch.get("controllers", ()):
                if text.startswith(APP_TARGET):
                    continue
                self._start(self._dial, switch["name"], text, parse_target(text), context)

    def _start(self, work: Any, *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, name="twinnet-control", daemon=True).start()

    def end(self) -> None:
        """Make no more connections, and stop listening."""
        self._ended.set()
        self._listeners.close()

    def _dial(self, switch: str, text: str, target: Target, context: ssl.SSLContext | None) -> None:
        pause_s = _SHORTEST_PAUSE_S
        while not self._ended.is_set():
            try:
                channel = connect_to(target, context)
            except OSError as error:
                self.troubles[switch, text] = error.strerror or str(error)
            else:
                self.troubles.pop((switch, text), None)
                try:
                    ended = self._attach(channel, switch, text, "controller").result()
                except (LabError, OSError) as error:
                    if self._lab.closed:
                        return
                    # Out of descriptors, mostly: a moment later there may be some.
                    self.troubles[switch, text] = str(error)
                else:
                    pause_s = _SHORTEST_PAUSE_S
                    self.troubles[switch, text] = channel.why or str(ended["ended"])
            self._ended.wait(pause_s)
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
