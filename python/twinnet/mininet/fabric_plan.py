"""The description that a fabric is built from: its switches and lines, in the form of the lab protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
    """

    name: str
    dpid: int
    ports: dict[int, Intf | BarePort]
    process: int | None = None
    fail_mode: str = "secure"
    controllers: list[str] = field(default_factory=list[str])
    protocols: list[str] = field(default_factory=list[str])
    listen: str | None = None


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
    """

    switches: dict[str, SwitchPlan]
    lines: list[Line]
    queues: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def attached(self) -> list[Attached]:
        """Return the interfaces of the machine that are part of it, in the order of :meth:`spec`."""
        found = [Attached(f"if{index}", intf.name, plan.process) for index, (plan, _, intf) in enumerate(self._ports())]
        for line in self.lines:
            found += [Attached(name, name, line.process) for name in line.inner]
        return found

    def _ports(self) -> Iterator[tuple[SwitchPlan, int, Intf | BarePort]]:
        for plan in self.switches.values():
            for number in sorted(plan.ports):
                yield plan, number, plan.ports[number]

    def _arriving(self, intf: Intf | BarePort) -> Shaping:
        """How the interface at the other end sends, where no switch of the fabric does that itself."""
        link = intf.link
        if link is None:
            return Shaping()
        others = [one for one in link.ends() if one is not intf]
        if not others:
            return Shaping()
        owner = self.switches.get(others[0].node.name)
        own = owner is not None and any(one is others[0] for one in owner.ports.values())
        return Shaping() if own else _shaping(others[0])

    def links(self) -> list[tuple[Intf | BarePort, Intf | None, Shaping, Shaping]]:
        """Return for each link of the lab the interface that sends from its end `b`, the one that sends from its end
        `a`, and how both send: ``ba`` and ``ab``."""
        found: list[tuple[Intf | BarePort, Intf | None, Shaping, Shaping]] = []
        for _, _, intf in self._ports():
            other = next((one for one in intf.link.ends() if one is not intf), None) if intf.link else None
            found.append((intf, other, _shaping(intf), self._arriving(intf)))
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
        for index, (plan, number, intf) in enumerate(self._ports()):
            _, _, sends, arrives = shaped[index]
            port = {"name": intf.name, "number": number, "queue": self.queues.get(intf.name, sends.queue)}
            ports = nodes[place[plan.name]]["ports"]
            ports.append(port)
            nodes.append(_interface(attached[index], arrives))
            ends = {"a": {"node": f"if{index}", "port": 0}, "b": {"node": plan.name, "port": len(ports) - 1}}
            links.append({**ends, "ab": arrives.direction(), "ba": sends.direction()})
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
