"""One switch's connection to an in-process controller: bytes in; calls of its methods, and bytes out. No I/O."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller
from twinnet.control.events import ErrorReport, FlowRemoved, PacketIn, PortStatus, Statistics, SwitchPort
from twinnet.control.framing import HEADER, Framing
from twinnet.control.hello import agreed_version
from twinnet.errors import LabError

if TYPE_CHECKING:
    from twinnet._core import OpenFlow10, OpenFlow13

__all__ = ["Session"]

_HELLO = 0
_REMEDY = "an in-process controller needs switches with the protocol OpenFlow10 or OpenFlow13"


class Session:
    """The controller's end of a connection.

    Parameters
    ----------
    controller
        Whose methods are called.
    name
        The switch's name.
    joined
        The switches that have joined, by name; this one is entered and taken out.
    wake
        Called when bytes are there to be sent.
    served
        Called with the switch's name when what the controller sent it on joining has taken effect.
    """

    def __init__(
        self,
        controller: Controller,
        name: str,
        joined: dict[str, ConnectedSwitch],
        wake: Callable[[], None],
        served: Callable[[str], None],
    ) -> None:
        from twinnet._core import OpenFlow13

        # The hello offers both versions; it is the switch's that chooses.
        self.codec: OpenFlow10 | OpenFlow13 = OpenFlow13()
        self._controller = controller
        self._name = name
        self._joined = joined
        self._wake = wake
        self._served = served
        self._framing = Framing()
        self._out = bytearray()
        self._lock = threading.Lock()
        self._xid = 0
        self._barriers: dict[int, Callable[[], None]] = {}
        self._parts: dict[tuple[str, int], list[Any]] = {}
        self._dpid: int | None = None
        self._switch: ConnectedSwitch | None = None
        self._hello = self.codec.request("hello", self.next_xid())
        self.send(self._hello)

    def next_xid(self) -> int:
        """Return the number of the next transaction."""
        with self._lock:
            self._xid = self._xid % 0x7FFF_FFFF + 1
            return self._xid

    def send(self, message: bytes) -> None:
        """Send one message."""
        with self._lock:
            self._out += message
        self._wake()

    def when_done(self, xid: int, call: Callable[[], None]) -> None:
        """Have `call` called when the barrier `xid` is answered."""
        self._barriers[xid] = call

    def take(self) -> bytes:
        """Return what is to be sent to the switch, and forget it."""
        with self._lock:
            out, self._out = bytes(self._out), bytearray()
        return out

    def receive(self, data: bytes) -> None:
        """Deal with bytes of the switch.

        Raises
        ------
        LabError
            When they are no OpenFlow 1.0 or 1.3.
        """
        for message in self._framing.push(data):
            if HEADER.unpack_from(message)[1] == _HELLO:
                self._agree(message)
                continue
            try:
                kind, xid, said = self.codec.decode(message)
            except ValueError as error:
                raise LabError(f"{self._name} and its controller cannot speak: {error}", _REMEDY) from None
            self._handle(kind, xid, said)

    def close(self) -> None:
        """The connection has ended."""
        self._framing = Framing()
        if self._switch is not None:
            switch, self._switch = self._switch, None
            del self._joined[self._name]
            self._controller.on_switch_left(switch)

    def _agree(self, hello: bytes) -> None:
        """Speak the highest version that both hellos offer."""
        from twinnet import _core

        version = agreed_version(hello, self._hello)
        if version not in (_core.OpenFlow10.VERSION, _core.OpenFlow13.VERSION):
            raise LabError(f"{self._name} and its controller have no version of OpenFlow in common", _REMEDY)
        if version == _core.OpenFlow10.VERSION:
            self.codec = _core.OpenFlow10()
        self._ask("features")

    def _ask(self, kind: str) -> None:
        self.send(self.codec.request(kind, self.next_xid()))

    def _handle(self, kind: str, xid: int, said: Mapping[str, Any]) -> None:
        if kind == "echo_request":
            self.send(self.codec.echo_reply(xid, said["data"]))
        elif kind == "features":
            self._dpid = int(said["dpid"])
            self._ask("whole_frames")
            if "ports" in said:
                self._join(said["ports"])
            else:
                self._ask("port_description")
        elif kind == "barrier_reply":
            self._barriers.pop(xid, lambda: None)()
        elif "more" in said:
            self._gather(kind, xid, said)
        elif kind == "error" and self._switch is None:
            raise LabError(f"{self._name} refused its controller: {said['text']}", _REMEDY)
        elif self._switch is not None:
            self._tell(self._switch, kind, said)

    def _gather(self, kind: str, xid: int, said: Mapping[str, Any]) -> None:
        """Statistics come in parts."""
        rows = self._parts.setdefault((kind, xid), [])
        rows.extend(said["rows"])
        if said["more"]:
            return
        del self._parts[kind, xid]
        if kind == "port_description":
            self._join(rows)
        elif self._switch is not None and kind != "other":
            self._controller.on_statistics(Statistics(self._switch, kind, tuple(rows)))  # pyright: ignore[reportArgumentType]

    def _join(self, ports: Sequence[Mapping[str, Any]]) -> None:
        if self._switch is None and self._dpid is not None:
            self._switch = ConnectedSwitch(self._name, self._dpid, self)
            self._switch.ports = {int(row["number"]): SwitchPort(**row) for row in ports}
            self._joined[self._name] = self._switch
            self._controller.on_switch_joined(self._switch)
            self._switch.barrier(lambda: self._served(self._name))

    def _tell(self, switch: ConnectedSwitch, kind: str, said: Mapping[str, Any]) -> None:
        if kind == "packet_in":
            self._controller.on_packet_in(PacketIn(switch, **said))
        elif kind == "port_status":
            port = SwitchPort(**said["port"])
            switch.ports = {number: one for number, one in switch.ports.items() if number != port.number}
            if said["reason"] != "delete":
                switch.ports = dict(sorted({**switch.ports, port.number: port}.items()))
            self._controller.on_port_status(PortStatus(switch, said["reason"], port))
        elif kind == "flow_removed":
            self._controller.on_flow_removed(FlowRemoved(switch, **said))
        elif kind == "error":
            self._controller.on_error(ErrorReport(switch, said["type"], said["code"], said["text"]))
