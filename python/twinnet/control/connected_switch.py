"""A switch as its in-process controller has it: what is known of it, and what it can be sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from twinnet.control.events import NO_BUFFER, STATISTICS, Flow, PacketOut, StatisticsKind, SwitchPort
from twinnet.errors import BadFlow, BadValue, NotAvailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinnet._core import OpenFlow10, OpenFlow13

__all__ = ["ConnectedSwitch", "Sender"]


class Sender(Protocol):
    """A destination for messages to a switch."""

    @property
    def codec(self) -> OpenFlow10 | OpenFlow13:
        """What writes messages in the version that the switch speaks."""
        ...

    def send(self, message: bytes) -> None:
        """Send one message."""
        ...

    def next_xid(self) -> int:
        """Return the number of the next transaction."""
        ...

    def when_done(self, xid: int, call: Callable[[], None]) -> None:
        """Have `call` called when the barrier `xid` is answered."""
        ...


class ConnectedSwitch:
    """A switch that has joined an in-process controller.

    ``name`` is its name in the network, ``dpid`` its datapath number, ``ports`` its ports by number; they follow what
    the switch reports. What OpenFlow 1.0 cannot say raises `NotAvailable` where the switch speaks no other version.
    """

    def __init__(self, name: str, dpid: int, sender: Sender) -> None:
        self.name = name
        self.dpid = dpid
        self.ports: Mapping[int, SwitchPort] = {}
        self._sender = sender

    @property
    def version(self) -> Literal["1.0", "1.3"]:
        """The version of OpenFlow that the switch speaks with this controller."""
        return self._sender.codec.NAME

    def __repr__(self) -> str:
        return f"ConnectedSwitch({self.name!r}, dpid={self.dpid})"

    def install(self, flow: str | Flow, tell_when_removed: bool = False, buffer: int = NO_BUFFER) -> None:
        """Add a flow; one with the same table, match and priority is replaced.

        Parameters
        ----------
        flow
            In ``ovs-ofctl`` syntax, or a :class:`Flow`.
        tell_when_removed
            Whether :meth:`Controller.on_flow_removed` is called when it ends.
        buffer
            A frame that the switch keeps (``PacketIn.buffer``), to which the flow is applied.

        Raises
        ------
        BadFlow
            When the text is no flow; the message names column, word and remedy.
        NotAvailable
            When the switch speaks OpenFlow 1.0, which cannot say it: other tables, groups, meters, most masks and
            matches of IPv6.
        """
        self._change("add", flow.text() if isinstance(flow, Flow) else flow, tell_when_removed, buffer)

    def modify(self, flow: str | Flow) -> None:
        """Give the flows that the match of `flow` covers its actions; raises `BadFlow`.

        Where there are none, a switch of OpenFlow 1.0 adds `flow`.
        """
        self._change("modify", flow.text() if isinstance(flow, Flow) else flow)

    def delete(self, match: str = "") -> None:
        """Delete the flows that `match` covers, all when it is empty; raises `BadFlow`.

        By cookie (``cookie=5/-1``), a switch of OpenFlow 1.0 deletes only flows that this controller has installed.
        """
        self._change("delete", match)

    def add_meter(self, meter: int, rate_kbps: int, burst_kbit: int) -> None:
        """Add the meter of that number, which drops what exceeds `rate_kbps` (kbit/s) after `burst_kbit` at once."""
        self._meter("add", meter, rate_kbps, burst_kbit)

    def modify_meter(self, meter: int, rate_kbps: int, burst_kbit: int) -> None:
        """Give the meter of that number another rate."""
        self._meter("modify", meter, rate_kbps, burst_kbit)

    def delete_meter(self, meter: int) -> None:
        """Delete the meter of that number, and the flows that use it."""
        self._meter("delete", meter, 0, 0)

    def send(self, packet: PacketOut) -> None:
        """Have the switch send a frame; raises `BadFlow` when the actions cannot be read."""
        in_port, actions, codec = packet.wire_in_port, packet.actions, self._sender.codec
        xid = self._sender.next_xid()
        self._say(
            lambda: codec.packet_out(in_port, actions, packet.data, packet.buffer, xid), f"the actions {actions!r}"
        )

    def statistics(self, kind: StatisticsKind = "ports") -> None:
        """Ask for counters; the answer comes to :meth:`Controller.on_statistics`."""
        if kind not in STATISTICS:
            raise BadValue(f"there are no statistics of {kind!r}", f"allowed are {', '.join(STATISTICS)}")
        xid = self._sender.next_xid()
        self._say(lambda: self._sender.codec.request(kind, xid), f"the statistics of {kind}")

    def barrier(self, done: Callable[[], None]) -> None:
        """Have `done` called when all that was sent before has taken effect."""
        xid = self._sender.next_xid()
        self._sender.when_done(xid, done)
        self._sender.send(self._sender.codec.request("barrier", xid))

    def _meter(self, command: str, meter: int, rate_kbps: int, burst_kbit: int) -> None:
        codec, xid = self._sender.codec, self._sender.next_xid()
        self._say(lambda: codec.meter(command, meter, rate_kbps, burst_kbit, xid), f"the meter {meter}")

    def _change(self, command: str, line: str, tell: bool = False, buffer: int = NO_BUFFER) -> None:
        codec, xid = self._sender.codec, self._sender.next_xid()
        self._say(lambda: codec.flow(command, line, tell, buffer, xid), f"the flow {line!r}")

    def _say(self, written: Callable[[], bytes], what: str) -> None:
        try:
            message = written()
        except ValueError as error:
            raise BadFlow(f"{what}: {error}") from None
        except NotImplementedError as error:
            raise NotAvailable(
                f"{self.name} speaks OpenFlow 1.0 alone and cannot have {what}: {error}",
                f"add OpenFlow13 to the protocols of {self.name}",
            ) from None
        self._sender.send(message)
