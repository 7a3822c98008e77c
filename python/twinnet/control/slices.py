"""A network divided between controllers: each has hosts of its own, and sees and steers their frames alone."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twinnet.control.connected_switch import ConnectedSwitch
from twinnet.control.controller import Controller, Stage
from twinnet.control.events import (
    NO_BUFFER,
    Flow,
    FlowRemoved,
    PacketIn,
    PacketOut,
    PortStatus,
    Statistics,
    StatisticsKind,
    SwitchPort,
)
from twinnet.control.topology import Topology
from twinnet.errors import BadFlow, BadValue, NotAvailable, did_you_mean

if TYPE_CHECKING:
    from twinnet.qos.queue import Queue

__all__ = ["Slices"]

_TAG_BITS = 48
"""The bits of a cookie below the number of its slice."""
_OWN_BITS = (1 << _TAG_BITS) - 1
_TAGS = 0xFFFF << _TAG_BITS
_SENDERS = ("dl_src", "eth_src")
_FLOOD = re.compile(r"(?<![\w:])(?:output:)?(?:flood|all)(?![\w:])", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:(?<![\w:.=])|(?<![\w.])(?:output|enqueue)[:=])(\d+)(?![\w.])")
_NORMAL = re.compile(r"(?<![\w:])(?:output:)?normal(?![\w:])", re.IGNORECASE)


class Slices(Controller):
    """Gives each slice of a network, a set of hosts, to a controller of its own, as FlowVisor does for controllers that
    are programs (Sherwood and others, *Can the production network be the testbed?*, OSDI 2010).

    A controller sees the switches, its own hosts and the lines to them. Each of its flows is installed once for every
    interface of its hosts and matches only what that one sends. It hears of the frames that its own flows send to it.
    `flood` reaches its own hosts, along a spanning tree; `normal`, and ports to the hosts of others, are refused. Lines
    between switches, meters and queues at their ends are shared: a slice has no share of its own of a line.

    Parameters
    ----------
    slices
        For each slice, by its name, the controller and its hosts.

    Raises
    ------
    BadValue
        Two slices have the same host.

    Examples
    --------
    >>> from twinnet.control import LearningSwitch, ShortestPath
    >>> divided = Slices({"tests": (LearningSwitch(), ["h1", "h2"]), "daily": (ShortestPath(), ["h3", "h4"])})
    """

    def __init__(self, slices: Mapping[str, tuple[Controller, Sequence[str]]]) -> None:
        self.slices: Mapping[str, tuple[Controller, Sequence[str]]] = slices
        hosts = [host for _, own in slices.values() for host in own]
        twice = sorted({host for host in hosts if hosts.count(host) > 1})
        if twice:
            raise BadValue(f"{', '.join(twice)} would be in two slices", "give each host to one of them")
        self._parts: list[_Slice] = []

    def attach(self, stage: Stage, switches: Mapping[str, ConnectedSwitch]) -> None:
        """Put all on the stage, each with its part of the network."""
        known = [node["name"] for node in stage.spec["nodes"] if node["kind"] != "switch"]
        for name, (_, hosts) in self.slices.items():
            for host in hosts:
                if host not in known:
                    raise BadValue(f"the slice {name} has no host {host!r} here", did_you_mean(host, known))
        super().attach(stage, switches)
        parts = enumerate(self.slices.values(), 1)
        self._parts = [_Slice(number, controller, hosts, stage) for number, (controller, hosts) in parts]
        for part in self._parts:
            part.controller.attach(part, part.switches)

    def detach(self) -> None:
        """Take all off the stage."""
        super().detach()
        for part in self._parts:
            part.controller.detach()

    def on_switch_joined(self, switch: ConnectedSwitch) -> None:
        """Tell all, each with its own view of the switch.

        Raises
        ------
        NotAvailable
            The switch speaks OpenFlow 1.0.
        """
        if switch.version == "1.0":
            raise NotAvailable(
                f"{switch.name} cannot be divided into slices: it speaks OpenFlow 1.0 alone, which does not tell the "
                "cookie of the flow that sent a frame, and so not whose it is",
                f"add OpenFlow13 to the protocols of {switch.name}",
            )
        for part in self._parts:
            part.controller.on_switch_joined(part.join(switch))

    def on_switch_left(self, switch: ConnectedSwitch) -> None:
        """Tell all."""
        for part in self._parts:
            part.controller.on_switch_left(part.switches.pop(switch.name))

    def on_packet_in(self, event: PacketIn) -> bool:
        """Tell the one whose flow sent the frame."""
        for part in self._of(event.cookie):
            own = replace(event, switch=part.switches[event.switch.name], cookie=event.cookie & _OWN_BITS)
            part.controller.on_packet_in(own)
        return True

    def on_flow_removed(self, event: FlowRemoved) -> None:
        """Tell the one whose flow it was."""
        for part in self._of(event.cookie):
            own = replace(event, switch=part.switches[event.switch.name], cookie=event.cookie & _OWN_BITS)
            part.controller.on_flow_removed(own)

    def on_port_status(self, event: PortStatus) -> None:
        """Tell those that have the port."""
        for part in self._parts:
            part.see_port(event)

    def on_statistics(self, event: Statistics) -> None:
        """Tell the one that asked what is its own."""
        for part in self._parts:
            if part.hears(event):
                return

    def _of(self, cookie: int) -> list[_Slice]:
        return [part for part in self._parts if part.number == cookie >> _TAG_BITS]


class _Slice:
    """One controller's part of the network; it is the stage of that controller."""

    def __init__(self, number: int, controller: Controller, hosts: Sequence[str], stage: Stage) -> None:
        self.number = number
        self.controller = controller
        self.switches: dict[str, ConnectedSwitch] = {}
        self.asked: deque[tuple[str, StatisticsKind]] = deque()
        self._stage = stage
        nodes = [node for node in stage.spec["nodes"] if node["kind"] == "switch" or node["name"] in hosts]
        names = {node["name"] for node in nodes}
        links = [link for link in stage.spec["links"] if {link["a"]["node"], link["b"]["node"]} <= names]
        self.spec: Mapping[str, Any] = {**stage.spec, "nodes": nodes, "links": links}
        everybody, own = Topology(stage.spec), Topology(self.spec)
        self.senders = sorted(own.hosts)
        self.foreign = {
            name: set(everybody.edge_ports(name)) - set(own.edge_ports(name)) for name in everybody.switches
        }
        self.flooded = own.tree()

    @property
    def now_ps(self) -> int:
        return self._stage.now_ps

    def call_at(self, at_ps: int, call: Callable[[], None]) -> None:
        self._stage.call_at(at_ps, call)

    def set_queue(self, switch: str, port: int, queue: Queue | None) -> None:
        self.refuse_foreign(switch, [port], "a queue")
        self._stage.set_queue(switch, port, queue)

    def join(self, switch: ConnectedSwitch) -> ConnectedSwitch:
        seen = _SlicedSwitch(switch, self)
        seen.ports = self._own_ports(switch)
        self.switches[switch.name] = seen
        return seen

    def see_port(self, event: PortStatus) -> None:
        seen = self.switches.get(event.switch.name)
        if seen is not None and event.port.number not in self.foreign[seen.name]:
            seen.ports = self._own_ports(event.switch)
            self.controller.on_port_status(replace(event, switch=seen))

    def hears(self, event: Statistics) -> bool:
        """Tell the controller the answer if it was this one that asked first; return whether it was."""
        question = (event.switch.name, event.kind)
        if question not in self.asked:
            return False
        self.asked.remove(question)
        foreign = self.foreign[event.switch.name]
        rows = [row for row in event.rows if row.get("port") not in foreign]
        if event.kind == "flows":
            own = [row for row in rows if row["cookie"] >> _TAG_BITS == self.number]
            rows = [{**row, "cookie": row["cookie"] & _OWN_BITS} for row in own]
        self.controller.on_statistics(replace(event, switch=self.switches[event.switch.name], rows=rows))
        return True

    def refuse_foreign(self, switch: str, ports: Sequence[int], what: str) -> None:
        foreign = sorted(self.foreign[switch].intersection(ports))
        if foreign:
            raise BadFlow(f"{what} names port {foreign[0]} of {switch}, which leads to a host of another slice")

    def flows(self, switch: str, line: str) -> list[str]:
        """`line` once for each sender of the slice; raises `BadFlow` where it would reach beyond the slice."""
        head, marked, actions = line.partition("actions=")
        conditions, cookie = _parted(head)
        given = [one for one in conditions if one.partition("=")[0] in _SENDERS]
        if any("/" in one for one in given):
            raise BadFlow(f"the flow {line!r} matches a part of the sender's address", "match all of it in a slice")
        senders = [one.partition("=")[2].lower() for one in given] or self.senders
        rest = [one for one in conditions if one not in given]
        tagged = f"cookie={self.tagged(cookie or '0'):#x}"
        own = self.actions(switch, actions) if marked else ""
        return [
            ",".join([tagged, *rest, f"dl_src={sender}", *([f"actions={own}"] if marked else [])])
            for sender in senders
            if sender in self.senders
        ]

    def actions(self, switch: str, actions: str) -> str:
        """`actions` with `flood` as the ports of the slice; raises `BadFlow` where they reach beyond it."""
        if _NORMAL.search(actions):
            raise BadFlow(f"the actions {actions!r} learn from all slices", "name ports, or write flood")
        self.refuse_foreign(switch, [int(port) for port in _OUTPUT.findall(actions)], f"the actions {actions!r}")
        ports = ",".join(f"output:{port}" for port in self.flooded[switch])
        return _FLOOD.sub(ports or "drop", actions)

    def deletion(self, match: str) -> str:
        """`match` restricted to the flows of the slice."""
        conditions, cookie = _parted(match)
        value, _, mask = (cookie or "0/0").partition("/")
        kept = int(mask or "-1", 0) & _OWN_BITS | _TAGS
        return ",".join([f"cookie={self.tagged(value):#x}/{kept:#x}", *conditions])

    def tagged(self, cookie: str) -> int:
        own = int(cookie, 0)
        if not 0 <= own <= _OWN_BITS:
            raise BadFlow(f"the cookie {cookie} is above {_OWN_BITS:#x}", "its highest 16 bits tell the slice")
        return self.number << _TAG_BITS | own

    def _own_ports(self, switch: ConnectedSwitch) -> Mapping[int, SwitchPort]:
        return {number: port for number, port in switch.ports.items() if number not in self.foreign[switch.name]}


class _SlicedSwitch(ConnectedSwitch):
    """A switch as the controller of one slice has it."""

    def __init__(self, switch: ConnectedSwitch, part: _Slice) -> None:
        super().__init__(switch.name, switch.dpid, switch._sender)
        self._part = part

    def install(self, flow: str | Flow, tell_when_removed: bool = False, buffer: int = NO_BUFFER) -> None:
        for place, line in enumerate(self._part.flows(self.name, flow.text() if isinstance(flow, Flow) else flow)):
            super().install(line, tell_when_removed, NO_BUFFER if place else buffer)

    def modify(self, flow: str | Flow) -> None:
        for line in self._part.flows(self.name, flow.text() if isinstance(flow, Flow) else flow):
            # What a flow is kept under does not change with its actions.
            super().modify(line.partition(",")[2])

    def delete(self, match: str = "") -> None:
        super().delete(self._part.deletion(match))

    def send(self, packet: PacketOut) -> None:
        super().send(replace(packet, actions=self._part.actions(self.name, packet.actions)))

    def statistics(self, kind: StatisticsKind = "ports") -> None:
        super().statistics(kind)
        self._part.asked.append((self.name, kind))


def _parted(head: str) -> tuple[list[str], str | None]:
    """The conditions and settings of a flow's text without its cookie, and that."""
    words = [word for word in re.split(r"[,\s]+", head) if word]
    cookies = [word.partition("=")[2] for word in words if word.startswith("cookie=")]
    return [word for word in words if not word.startswith("cookie=")], cookies[-1] if cookies else None
