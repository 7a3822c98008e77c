"""The description that a fabric is built from: its switches and lines, in the form of the lab protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.mininet.shaping import Shaping

if TYPE_CHECKING:
    from twinnet.mininet.base_node import Node
    from twinnet.mininet.link import Intf, Link

__all__ = ["Attached", "BarePort", "Line", "Plan", "SwitchPlan"]

_PROTOCOLS = ("OpenFlow10", "OpenFlow13")


@dataclass(eq=False)
class BarePort:
    """An interface of the machine that is a port of a switch and that no node of a script has.

    Parameters
    ----------
    name
        Its name.
    """

    name: str
    link: Link | None = None
    node: Node | None = None


@dataclass
class SwitchPlan:
    """A switch that forwards.

    Parameters
    ----------
    name
        Its name.
    dpid
        Its datapath identifier.
    ports
        Its interfaces by port number.
    process
        A process in whose network namespace they are; ``None``: the machine's.
    fail_mode
        ``secure`` or ``standalone``.
    controllers
        Targets such as ``tcp:127.0.0.1:6653``.
    protocols
        The versions that it speaks; empty: all of ours.
    listen
        Where it listens for tools, such as ``ptcp:6654``.
    in_turn
        Whether it has one controller at a time: the next when one is lost. Otherwise it has all at once.
    log
        A file that gets a line for each connection to a controller.
    """

    name: str
    dpid: int
    ports: dict[int, Intf | BarePort]
    process: int | None = None
    fail_mode: str = "secure"
    controllers: list[str] = field(default_factory=list[str])
    protocols: list[str] = field(default_factory=list[str])
    listen: str | None = None
    in_turn: bool = False
    log: Path | None = None


@dataclass(frozen=True)
class Line:
    """A link between hosts: the names of its inner ends, the hosts' interfaces, and a process where the ends are."""

    inner: tuple[str, str]
    intfs: tuple[Intf, Intf]
    process: int


@dataclass(frozen=True)
class Attached:
    """An interface of the machine that the fabric holds a socket of.

    Parameters
    ----------
    node
        The name of its node in the lab.
    interface
        Its name in the namespace.
    process
        A process in whose network namespace it is; ``None``: this one's.
    """

    node: str
    interface: str
    process: int | None


def _shaping(intf: Intf | BarePort | None) -> Shaping:
    return getattr(intf, "shaping", None) or Shaping()


@dataclass(frozen=True)
class Plan:
    """What the fabric is to be.

    Parameters
    ----------
    switches
        The switches by name.
    lines
        The links between hosts.
    queues
        The queues of ports that are not those of their shaping, by the interfaces' names.
    down
        The names of the interfaces that were taken down.
    """

    switches: dict[str, SwitchPlan]
    lines: list[Line]
    queues: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    down: frozenset[str] = frozenset()

    def attached(self) -> list[Attached]:
        """Return the interfaces of the machine that are part of it, in the order of :meth:`spec`."""
        found = [Attached(f"if{index}", intf.name, plan.process) for index, (plan, intf) in enumerate(self._outer())]
        for line in self.lines:
            found += [Attached(name, name, line.process) for name in line.inner]
        return found

    def _owners(self) -> dict[int, SwitchPlan]:
        """The switches of all ports, by the identity of the interfaces."""
        return {id(intf): plan for plan in self.switches.values() for intf in plan.ports.values()}

    def _outer(self) -> list[tuple[SwitchPlan, Intf | BarePort]]:
        """The ports whose other end is no port of a switch of the fabric: frames pass the kernel there."""
        inner = {id(intf) for pair in self._pairs() for _, intf in pair}
        return [
            (plan, plan.ports[number])
            for plan in self.switches.values()
            for number in sorted(plan.ports)
            if id(plan.ports[number]) not in inner
        ]

    def _pairs(self) -> list[tuple[tuple[SwitchPlan, Intf], tuple[SwitchPlan, Intf]]]:
        """The links between ports of switches of the fabric, which knows them, so that no loop of them does harm."""
        owners = self._owners()
        ports = [intf for plan in self.switches.values() for intf in plan.ports.values()]
        links = {id(intf.link): intf.link for intf in ports if intf.link}
        found: list[tuple[tuple[SwitchPlan, Intf], tuple[SwitchPlan, Intf]]] = []
        for link in links.values():
            first, second = link.ends()
            if first is not second and id(first) in owners and id(second) in owners:
                found.append(((owners[id(first)], first), (owners[id(second)], second)))
        return found

    def links(self) -> list[tuple[Intf | BarePort, Intf | None, Shaping, Shaping]]:
        """Return for each link of the lab the interface that sends from its end `b`, the one that sends from its end
        `a`, and how both send: ``ba`` and ``ab``."""
        found: list[tuple[Intf | BarePort, Intf | None, Shaping, Shaping]] = []
        for _, intf in self._outer():
            other = next((one for one in intf.link.ends() if one is not intf), None) if intf.link else None
            found.append((intf, other, _shaping(intf), _shaping(other)))
        for (_, first), (_, second) in self._pairs():
            found.append((second, first, _shaping(second), _shaping(first)))
        for line in self.lines:
            first, second = line.intfs
            found.append((second, first, _shaping(second), _shaping(first)))
        return found

    def spec(self, flows: dict[str, list[str]]) -> dict[str, Any]:
        """Return the network for the lab protocol; `flows` are those that switches begin with."""
        nodes: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = []
        dpids: set[int] = set()
        place: dict[str, int] = {}
        shaped = self.links()
        attached = self.attached()
        for plan in self.switches.values():
            dpid = plan.dpid
            while dpid in dpids:
                dpid += 1 << 48
            dpids.add(dpid)
            nodes.append(
                {
                    "kind": "switch",
                    "name": plan.name,
                    "dpid": dpid,
                    "fail_mode": plan.fail_mode,
                    "controllers": plan.controllers,
                    "listen": plan.listen,
                    "protocols": [one for one in plan.protocols if one in _PROTOCOLS] or list(_PROTOCOLS),
                    "flows": flows.get(plan.name, []),
                    "ports": [],
                }
            )
            place[plan.name] = len(nodes) - 1
        end_of: dict[int, dict[str, Any]] = {}
        for plan in self.switches.values():
            ports = nodes[place[plan.name]]["ports"]
            for number in sorted(plan.ports):
                intf = plan.ports[number]
                end_of[id(intf)] = {"node": plan.name, "port": len(ports)}
                queue = self.queues.get(intf.name, _shaping(intf).queue)
                ports.append({"name": intf.name, "number": number, "queue": queue})
        for index, (_, intf) in enumerate(self._outer()):
            _, _, sends, arrives = shaped[index]
            nodes.append(_interface(attached[index], arrives))
            ends = {"a": {"node": f"if{index}", "port": 0}, "b": end_of[id(intf)]}
            links.append({**ends, "ab": arrives.direction(), "ba": sends.direction()})
        for (_, first), (_, second) in self._pairs():
            up = first.name not in self.down and second.name not in self.down
            ends = {"a": end_of[id(first)], "b": end_of[id(second)], "up": up}
            links.append({**ends, "ab": _shaping(first).direction(), "ba": _shaping(second).direction()})
        for line, (_, _, second, first) in zip(self.lines, shaped[len(links) :], strict=True):
            nodes += [
                _interface(Attached(name, name, line.process), sends)
                for name, sends in zip(line.inner, (first, second), strict=True)
            ]
            ends = {"a": {"node": line.inner[0], "port": 0}, "b": {"node": line.inner[1], "port": 0}}
            links.append({**ends, "ab": first.direction(), "ba": second.direction()})
        return {"nodes": nodes, "links": links, "schedule": []}


def _interface(attached: Attached, sends: Shaping) -> dict[str, Any]:
    port = {"name": attached.node, "queue": sends.queue}
    return {"kind": "interface", "name": attached.node, "interface": attached.interface, "ports": [port]}
