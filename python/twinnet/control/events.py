"""The events that controllers receive and the commands that they send, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from twinnet.control import frames

if TYPE_CHECKING:
    from twinnet.control.connected_switch import ConnectedSwitch

__all__ = [
    "NO_BUFFER",
    "STATISTICS",
    "ErrorReport",
    "Flow",
    "FlowRemoved",
    "PacketIn",
    "PacketOut",
    "PortStatus",
    "Statistics",
    "StatisticsKind",
    "SwitchPort",
]

NO_BUFFER = 0xFFFF_FFFF
"""In the place of a buffer's number: the message carries the whole frame."""
_CONTROLLER_PORT = 0xFFFF_FFFD

StatisticsKind = Literal["flows", "tables", "ports", "queues", "groups", "meters"]
"""The kinds of statistics that a switch can give."""
STATISTICS: tuple[StatisticsKind, ...] = ("flows", "tables", "ports", "queues", "groups", "meters")


@dataclass(frozen=True)
class SwitchPort:
    """A port of a connected switch.

    Parameters
    ----------
    number, name, mac
        As the switch reports them.
    up
        Whether its link is up.
    rate_bps
        Its line rate in bits per second; 0: none.
    """

    number: int
    name: str
    mac: str
    up: bool
    rate_bps: int


@dataclass(frozen=True)
class PacketOut:
    """A frame that a switch is to send.

    Parameters
    ----------
    data
        The frame; empty when the switch keeps it.
    actions
        What to do with it, in ``ovs-ofctl`` syntax: ``output:2``, ``flood``; or ``table``: through the flow tables.
    in_port
        The port that it counts as having come in by; ``None``: from the controller.
    buffer
        The number under which the switch keeps it.
    """

    data: bytes
    actions: str
    in_port: int | None = None
    buffer: int = NO_BUFFER

    @property
    def wire_in_port(self) -> int:
        """The number of `in_port` in the message."""
        return _CONTROLLER_PORT if self.in_port is None else self.in_port


@dataclass(frozen=True)
class Flow:
    """A flow with its settings apart; :meth:`text` is the line that :meth:`ConnectedSwitch.install` takes as well.

    Parameters
    ----------
    match
        Conditions in ``ovs-ofctl`` syntax, or as a mapping: ``{"ip": True, "nw_dst": "10.0.0.2"}``; empty: every frame.
    actions
        One text or several: ``["dec_ttl", "output:2"]``; none: drop.
    priority, table, cookie, idle_timeout_s, hard_timeout_s
        As in OpenFlow; a timeout of 0 is none.

    Examples
    --------
    >>> Flow({"ip": True, "nw_dst": "10.0.0.2"}, "output:2", priority=5).text()
    'table=0,priority=5,cookie=0,idle_timeout=0,hard_timeout=0,ip,nw_dst=10.0.0.2,actions=output:2'
    """

    match: str | Mapping[str, object] = ""
    actions: str | Sequence[str] = "drop"
    priority: int = 32768
    table: int = 0
    cookie: int = 0
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0

    def text(self) -> str:
        """Return the flow as one line in ``ovs-ofctl`` syntax."""
        if isinstance(self.match, str):
            conditions = [self.match] if self.match else []
        else:
            conditions = [key if value is True else f"{key}={value}" for key, value in self.match.items()]
        actions = self.actions if isinstance(self.actions, str) else ",".join(self.actions) or "drop"
        settings = [
            f"table={self.table}",
            f"priority={self.priority}",
            f"cookie={self.cookie}",
            f"idle_timeout={self.idle_timeout_s}",
            f"hard_timeout={self.hard_timeout_s}",
        ]
        return ",".join([*settings, *conditions, f"actions={actions}"])


@dataclass(frozen=True)
class PacketIn:
    """A frame that a switch sent to its controller.

    Parameters
    ----------
    switch
        Who sent it.
    in_port
        The port that it came in by.
    data
        The frame, or its beginning.
    reason
        ``action`` (a flow sent it), ``no_match`` or ``invalid_ttl``.
    length
        Bytes of the whole frame.
    table, cookie
        Of the flow that sent it; 0 from a switch of OpenFlow 1.0, which does not tell.
    buffer
        The number under which the switch keeps the rest; ``twinnet.control.events.NO_BUFFER``: all of it is in `data`.
    """

    switch: ConnectedSwitch
    in_port: int
    data: bytes
    reason: str
    length: int
    table: int
    cookie: int
    buffer: int

    @property
    def eth_dst(self) -> str:
        """The address of its receiver: ``00:00:00:00:00:02``."""
        return frames.mac_text(self.data[0:6])

    @property
    def eth_src(self) -> str:
        """The address of its sender."""
        return frames.mac_text(self.data[6:12])

    @property
    def eth_type(self) -> int:
        """The type of what it carries, behind VLAN tags."""
        return frames.eth_type(self.data)

    def out(self, actions: str) -> PacketOut:
        """Return the order to do `actions` with this frame."""
        data = self.data if self.buffer == NO_BUFFER else b""
        return PacketOut(data, actions, self.in_port, self.buffer)


@dataclass(frozen=True)
class PortStatus:
    """A port changed; `reason` is ``add``, ``delete`` or ``modify`` (its link went up or down, for example)."""

    switch: ConnectedSwitch
    reason: str
    port: SwitchPort


@dataclass(frozen=True)
class FlowRemoved:
    """A flow ended that was installed with ``tell_when_removed``.

    Parameters
    ----------
    reason
        ``idle_timeout``, ``hard_timeout``, ``delete`` or ``group_delete``.
    match
        Its conditions in ``ovs-ofctl`` syntax.
    frames, bytes, lived_s
        What it counted, and how long it lived.
    """

    switch: ConnectedSwitch
    reason: str
    table: int
    priority: int
    cookie: int
    match: str
    frames: int
    bytes: int
    lived_s: float


@dataclass(frozen=True)
class Statistics:
    """The answer to :meth:`ConnectedSwitch.statistics`: one mapping for each flow, port, queue, ... of the switch.

    The keys are for ``ports``: port, received_frames, received_bytes, sent_frames, sent_bytes, dropped_frames, lived_s;
    ``queues``: port, queue, sent_frames, sent_bytes, dropped_frames; ``flows``: table, priority, cookie, match, frames,
    bytes, lived_s; ``tables``: table, flows, lookups, matches; ``groups`` and ``meters``: group or meter, frames,
    bytes, lived_s. Switches of OpenFlow 1.0 know neither groups nor meters, and the ``lived_s`` of their ports is
    ``None``.
    """

    switch: ConnectedSwitch
    kind: StatisticsKind
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ErrorReport:
    """A switch refused a message; `kind` and `code` are OpenFlow's numbers and `text` their names."""

    switch: ConnectedSwitch
    kind: int
    code: int
    text: str
