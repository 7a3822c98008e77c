"""The description that a fabric is built from: its switches and lines, in the form of the lab protocol."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.mininet.bare_ports import LOCAL_PORT, BarePort, OwnPort, VirtualPort
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.switch_columns import POLICING_COLUMNS, vlans_of
from twinnet.network.spanning_tree import tree_of
from twinnet.ovsdb.qos_rows import Refused, policer

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["PROTOCOLS", "Attached", "BarePort", "Line", "Plan", "SwitchPlan"]

PROTOCOLS = ("OpenFlow10", "OpenFlow13")
"""The versions of OpenFlow that switches speak."""
_USUAL_POLICING_BURST_KBIT = 8000
_USUAL_MTU = 1500
_LEAST_MTU, _MOST_MTU = 68, 65_521
"""What the kernel permits beyond this, no line needs."""


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
    vlans
        The columns `tag`, `trunks` and `vlan_mode` of ports that have some, by the interfaces' names.
    mirrors
        Its mirrors, in the form of the lab protocol.
    spanning_tree
        Columns (`stp_enable`, `rstp_enable`) that are true: with one of them it floods and learns along the fabric's
        spanning tree even where it is secure or has a controller.
    policing
        What may come in at ports, by the interfaces' names: kbit/s, and kbit at once. A rate of 0 is no limit.
    with_own
        Whether it has a port of its own: an interface of the machine with its name, as bridges of Open vSwitch have.
    own
        That port, while there is one.
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
    vlans: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    mirrors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    policing: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    spanning_tree: list[str] = field(default_factory=list[str])
    with_own: bool = False
    own: OwnPort | None = None

    @property
    def standing(self) -> str:
        """``controlled``, or the fail mode of a switch that has no controller; with another it begins anew, without the
        flows that it had (``ovs-vswitchd.conf.db(5)``, `fail_mode`)."""
        return "controlled" if self.controllers else self.fail_mode

    def first_flows(self) -> list[str]:
        """Return the flows that it begins with: it switches by itself where it stands alone."""
        return ["priority=0,actions=NORMAL"] if self.standing == "standalone" else []

    def every_port(self) -> dict[int, Intf | BarePort]:
        """Return its ports by number, with its own."""
        return self.ports if self.own is None else {**self.ports, LOCAL_PORT: self.own}

    def held(self) -> dict[str, Any]:
        """Return all settings as they are, for :meth:`restore`."""
        settings = {name: copy.copy(value) for name, value in vars(self).items()} | {"own": self.own}
        virtual = [port for port in self.ports.values() if isinstance(port, VirtualPort)]
        return settings | {"virtual": [(port, port.kind, port.options) for port in virtual]}

    def restore(self, held: Mapping[str, Any]) -> None:
        """Have the settings that :meth:`held` has returned."""
        for port, kind, options in held["virtual"]:
            port.kind, port.options = kind, options
        vars(self).update({name: value for name, value in held.items() if name != "virtual"})

    def set_targets(self, targets: Sequence[str]) -> None:
        """Have these controllers, and listen for tools where one of them says ``ptcp:``."""
        self.controllers = [one for one in targets if not one.startswith("p")]
        self.listen = next((one for one in targets if one.startswith("ptcp:")), self.listen)

    def police(self, number: int, changes: Mapping[str, str]) -> None:
        """Change what may come in at a port; `changes` are columns of its interface. Raises :class:`Refused`."""
        intf = self.every_port()[number]
        held = self.policing.get(intf.name, (0, 0))
        rate, burst = (int(changes.get(one, old)) for one, old in zip(POLICING_COLUMNS, held, strict=True))
        if min(rate, burst) < 0:
            raise Refused("ingress policing is 0 or more")
        sender = _other_end(intf)
        if rate and sender is not None and (sender.shaping.bw or sender.shaping.queue):
            raise Refused(f"{intf.name}: what comes in there has a rate already, on the line from {sender.name}")
        self.policing[intf.name] = (rate, burst)

    def policer(self, intf: Intf | BarePort) -> dict[str, Any] | None:
        """Return the queue before the port, in the form of the lab protocol, that drops what is too much."""
        rate, burst = self.policing.get(intf.name, (0, 0))
        return policer(rate * 1000, (burst or _USUAL_POLICING_BURST_KBIT) * 125) if rate else None

    def mirrors_there(self) -> list[dict[str, Any]]:
        """Return the mirrors as far as their ports are there."""
        here = [one for one in self.mirrors if one["to"].get("port") in (None, *self.every_port())]
        sides = ("from", "towards")
        return [
            one | {side: [number for number in one[side] if number in self.every_port()] for side in sides}
            for one in here
        ]


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


def _other_end(intf: Intf | BarePort) -> Intf | None:
    return next((one for one in intf.link.ends() if one is not intf), None) if intf.link else None


_Owned = tuple[SwitchPlan, "Intf | BarePort"]
"""A port of a switch, and the switch."""


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
    mtus
        The MTUs of interfaces, by their names; 1500 where none is given.
    macs
        The hardware addresses of interfaces, by their names.
    """

    switches: dict[str, SwitchPlan]
    lines: list[Line]
    queues: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    down: frozenset[str] = frozenset()
    mtus: dict[str, int] = field(default_factory=dict[str, int])
    macs: dict[str, str] = field(default_factory=dict[str, str])

    def attached(self) -> list[Attached]:
        """Return the interfaces of the machine that are part of it, in the order of :meth:`spec`."""
        found = [_attached(f"if{index}", plan, intf) for index, (plan, intf) in enumerate(self._outer())]
        for line in self.lines:
            found += [Attached(name, name, line.process) for name in line.inner]
        return found

    def _owners(self) -> dict[int, SwitchPlan]:
        """The switches of all ports, by the identity of the interfaces."""
        return {id(intf): plan for plan in self.switches.values() for intf in plan.ports.values()}

    def _outer(self) -> list[tuple[SwitchPlan, Intf | BarePort]]:
        """The ports whose other end is no port of a switch of the fabric: frames pass the kernel there. Interfaces that
        the fabric has made itself are such once they were taken up."""
        inner = {id(intf) for pair in self._pairs() for _, intf in pair}
        return [
            (plan, port)
            for plan in self.switches.values()
            for _, port in sorted(plan.ports.items())
            if id(port) not in inner
            and not isinstance(port, VirtualPort)
            and (port.joined if isinstance(port, OwnPort) else True)
        ] + [(plan, plan.own) for plan in self.switches.values() if plan.own is not None and plan.own.joined]

    def _pairs(self) -> list[tuple[_Owned, _Owned]]:
        """The links between ports of switches of the fabric, which knows them, so that no loop of them does harm."""
        owners = self._owners()
        ports = [intf for plan in self.switches.values() for intf in plan.ports.values()]
        links = {id(intf.link): intf.link for intf in ports if intf.link}
        found: list[tuple[_Owned, _Owned]] = []
        for link in links.values():
            first, second = link.ends()
            if first is not second and id(first) in owners and id(second) in owners:
                found.append(((owners[id(first)], first), (owners[id(second)], second)))
        return found + self._patches()

    def inner_links(self) -> list[tuple[_Owned, _Owned]]:
        """Return the links between switches of the fabric whose ends are interfaces: no frame passes them but in the
        fabric."""
        return [pair for pair in self._pairs() if not any(isinstance(intf, VirtualPort) for _, intf in pair)]

    def tree_roles(self) -> dict[int, str]:
        """Return what the spanning tree makes of ports at links between switches, by the identity of the interfaces:
        ``root``, ``designated`` or, where the tree leaves the link out, ``alternate`` at the end that it reaches
        later. Other ports are ``designated``."""
        pairs = [pair for pair in self._pairs() if not any(intf.name in self.down for _, intf in pair)]
        used, order = tree_of(self.switches, [(one.name, other.name) for (one, _), (other, _) in pairs])
        found: dict[int, str] = {}
        for place, pair in enumerate(pairs):
            later = used.get(place) or max((plan.name for plan, _ in pair), key=order.index)
            for plan, intf in pair:
                towards_root = "root" if place in used else "alternate"
                found[id(intf)] = towards_root if plan.name == later else "designated"
        return found

    def _virtual(self) -> list[tuple[SwitchPlan, VirtualPort]]:
        """The ports that have no interface."""
        every = [(plan, plan.ports[number]) for plan in self.switches.values() for number in sorted(plan.ports)]
        return [(plan, port) for plan, port in every if isinstance(port, VirtualPort)]

    def _patches(self) -> list[tuple[_Owned, _Owned]]:
        """The patch ports that name each other."""
        ports = {port.name: (plan, port) for plan, port in self._virtual() if port.kind == "patch"}
        found: list[tuple[_Owned, _Owned]] = []
        for plan, port in ports.values():
            other = ports.get(port.options["peer"])
            if other is not None and port.name < other[1].name and other[1].options["peer"] == port.name:
                found.append(((plan, port), other))
        return found

    def tunnels(self) -> list[tuple[str, VirtualPort]]:
        """The ports that lead through tunnels, each with the name of the node at which its link ends."""
        ports = [port for _, port in self._virtual() if port.kind != "patch"]
        return [(f"tunnel{index}", port) for index, port in enumerate(ports)]

    def links(self) -> list[tuple[Intf | BarePort, Intf | BarePort | None, Shaping, Shaping]]:
        """Return for each link of the lab the interface that sends from its end `b`, the one that sends from its end
        `a`, and how both send: ``ba`` and ``ab``."""
        found: list[tuple[Intf | BarePort, Intf | BarePort | None, Shaping, Shaping]] = []
        for _, intf in self._outer():
            other = _other_end(intf)
            found.append((intf, other, _shaping(intf), _shaping(other)))
        for (_, first), (_, second) in self._pairs():
            found.append((second, first, _shaping(second), _shaping(first)))
        for line in self.lines:
            first, second = line.intfs
            found.append((second, first, _shaping(second), _shaping(first)))
        found += [(port, None, Shaping(), Shaping()) for _, port in self.tunnels()]
        return found

    def link_mtus(self) -> list[int]:
        """Return the MTU of each link of :meth:`links`: the least of the interfaces at which the fabric takes frames
        from the kernel, or has them pass in its place."""
        found = [self._least_mtu(intf) for _, intf in self._outer()]
        found += [self._least_mtu(first, second) for (_, first), (_, second) in self._pairs()]
        found += [self._least_mtu(*line.intfs) for line in self.lines]
        return found + [_USUAL_MTU for _ in self.tunnels()]

    def _least_mtu(self, *intfs: Intf | BarePort) -> int:
        # A patch has no interface, and as in Open vSwitch no limit.
        told = [self.mtus.get(one.name, _USUAL_MTU) for one in intfs if not isinstance(one, VirtualPort)]
        return max(_LEAST_MTU, min([*told, _MOST_MTU]))

    def _policed(self) -> dict[int, dict[str, Any]]:
        """The policers at the ports of switches that other ports of the fabric send to, by the sender's identity."""
        found: dict[int, dict[str, Any]] = {}
        for (plan, intf), (other_plan, other) in self._pairs():
            for sender, owner, port in ((intf, other_plan, other), (other, plan, intf)):
                if (queue := owner.policer(port)) is not None:
                    found[id(sender)] = queue
        return found

    def spec(self, flows: dict[str, list[str]]) -> dict[str, Any]:
        """Return the network for the lab protocol; `flows` are those that switches have, where these are not the
        first."""
        nodes: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = []
        dpids: set[int] = set()
        place: dict[str, int] = {}
        shaped = self.links()
        attached = self.attached()
        policed = self._policed()
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
                    # Alone it goes by its flows, which can be deleted.
                    "fail_mode": "secure" if plan.standing == "standalone" else plan.fail_mode,
                    "controllers": plan.controllers,
                    "listen": plan.listen,
                    "protocols": [one for one in plan.protocols if one in PROTOCOLS] or list(PROTOCOLS),
                    "flows": flows.get(plan.name, plan.first_flows()),
                    "mirrors": plan.mirrors_there(),
                    "spanning_tree": bool(plan.spanning_tree) or plan.standing == "standalone",
                    "ports": [],
                }
            )
            place[plan.name] = len(nodes) - 1
        end_of: dict[int, dict[str, Any]] = {}
        for plan in self.switches.values():
            ports = nodes[place[plan.name]]["ports"]
            for number, intf in sorted(plan.every_port().items()):
                end_of[id(intf)] = {"node": plan.name, "port": len(ports)}
                queue = self.queues.get(intf.name, _shaping(intf).queue) or policed.get(id(intf))
                vlans = vlans_of(plan.vlans.get(intf.name, {}))
                port = {"name": intf.name, "number": number, "queue": queue, "vlans": vlans}
                ports.append(port | ({"mac": self.macs[intf.name]} if intf.name in self.macs else {}))
        for index, (plan, intf) in enumerate(self._outer()):
            _, _, sends, arrives = shaped[index]
            nodes.append(_interface(attached[index], arrives.queue or plan.policer(intf)))
            ends = {"a": {"node": f"if{index}", "port": 0}, "b": end_of[id(intf)]}
            links.append({**ends, "ab": arrives.direction(), "ba": sends.direction()})
        for (_, first), (_, second) in self._pairs():
            up = first.name not in self.down and second.name not in self.down
            ends = {"a": end_of[id(first)], "b": end_of[id(second)], "up": up}
            links.append({**ends, "ab": _shaping(first).direction(), "ba": _shaping(second).direction()})
        of_lines = shaped[len(links) : len(links) + len(self.lines)]
        for line, (_, _, second, first) in zip(self.lines, of_lines, strict=True):
            nodes += [
                _interface(Attached(name, name, line.process), sends.queue)
                for name, sends in zip(line.inner, (first, second), strict=True)
            ]
            ends = {"a": {"node": line.inner[0], "port": 0}, "b": {"node": line.inner[1], "port": 0}}
            links.append({**ends, "ab": first.direction(), "ba": second.direction()})
        for name, port in self.tunnels():
            nodes.append(port.end_of_tunnel(name))
            way = Shaping().direction()
            ends = {"a": {"node": name, "port": 0}, "b": end_of[id(port)]}
            links.append({**ends, "ab": way, "ba": way})
        links = [link | {"mtu": mtu} for link, mtu in zip(links, self.link_mtus(), strict=True)]
        return {"nodes": nodes, "links": links, "schedule": []}


def _attached(node: str, plan: SwitchPlan, intf: Intf | BarePort) -> Attached:
    if isinstance(intf, OwnPort):
        return Attached(node, intf.inner, intf.process)
    return Attached(node, intf.name, plan.process)


def _interface(attached: Attached, queue: dict[str, Any] | None) -> dict[str, Any]:
    port = {"name": attached.node, "queue": queue}
    return {"kind": "interface", "name": attached.node, "interface": attached.interface, "ports": [port]}
