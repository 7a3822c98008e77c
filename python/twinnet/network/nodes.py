"""The parts of a network: hosts, routers, switches, their ports, and links. Made by :class:`twinnet.Network`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from twinnet.control.targets import PROTOCOLS
from twinnet.control.tls import Tls
from twinnet.errors import BadValue
from twinnet.network.link_settings import describe_direction
from twinnet.network.tunnels import Tunnel
from twinnet.qos.queue import Queue, optional_spec

if TYPE_CHECKING:
    from twinnet.network.link_settings import LinkOptions
    from twinnet.network.network import Network

__all__ = ["Host", "Interface", "Link", "Node", "Port", "Router", "Switch", "TunnelEnd"]


@dataclass(eq=False, slots=True)
class Port:
    """One interface of a node; it exists because a link ends at it.

    Parameters
    ----------
    node
        The node's name.
    index
        Its place among the node's ports, from 0.
    name
        The interface's name, such as ``h1-eth0``.
    number
        The OpenFlow port number; ``None`` at a host.
    mac
        The MAC address; ``None`` at a switch and at an interface of the machine.
    addresses
        IP addresses with prefix length.
    queue
        The queue configuration of what it sends; ``None`` for the default.
    """

    node: str
    index: int
    name: str
    number: int | None = None
    mac: str | None = None
    addresses: tuple[str, ...] = ()
    queue: Queue | None = None

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec: dict[str, Any] = {"name": self.name, "queue": optional_spec(self.queue)}
        if self.number is not None:
            return spec | {"number": self.number}
        if self.mac is None:
            return spec
        return spec | {"mac": self.mac, "addresses": list(self.addresses)}


@dataclass(eq=False, repr=False)
class Node:
    """A named node of one network."""

    network: Network = field(repr=False)
    name: str
    ports: list[Port] = field(default_factory=list[Port], repr=False)

    def __repr__(self) -> str:
        addresses = ", ".join(address for port in self.ports for address in port.addresses)
        return f"<{type(self).__name__} {self.name}{f' {addresses}' if addresses else ''}>"

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Host(Node):
    """A machine that runs programs.

    Parameters
    ----------
    number
        Its number in the order of creation, from 1: its default addresses follow from it.
    addresses
        The addresses that its first interface gets.
    mac
        The MAC of its first interface; ``None`` for the one that follows from the number.
    routes
        Destination prefix and next hop.
    sysctls
        Kernel settings of the host's network namespace.
    forwarding
        Whether it forwards packets: a router.
    model
        Whether it is a model inside the fabric on the wall clock too; on the virtual clock every host is.
    processing
        How long a model takes for each frame that arrives, in the form of the lab protocol; ``None`` for no time.
    coalescing
        How its network cards coalesce interrupts, in the form of the lab protocol; ``None`` where they do not.
    image
        The image whose files it has, in the form of the lab protocol; ``None``: it has the machine's.
    limits
        What its programs may use at most, in the form of the lab protocol; ``None``: there are no limits.
    """

    number: int = 0
    addresses: tuple[str, ...] = ()
    mac: str | None = None
    routes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    sysctls: Mapping[str, str] = field(default_factory=dict[str, str])
    forwarding: bool = False
    model: bool = False
    processing: Mapping[str, Any] | None = None
    coalescing: Mapping[str, Any] | None = None
    image: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None

    @property
    def ip(self) -> str | None:
        """The first IPv4 address without its prefix length."""
        return self._first(".")

    @property
    def ip6(self) -> str | None:
        """The first IPv6 address without its prefix length."""
        return self._first(":")

    def _first(self, mark: str) -> str | None:
        every = [*self.addresses, *(address for port in self.ports for address in port.addresses)]
        return next((address.split("/")[0] for address in every if mark in address), None)

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        return {
            "kind": "host",
            "name": self.name,
            "forwarding": self.forwarding,
            "model": self.model,
            "ports": [port.to_spec() for port in self.ports],
            "routes": [{"to": to, "via": via} for to, via in self.routes],
            "sysctls": dict(self.sysctls),
            "processing": self.processing and dict(self.processing),
            "coalescing": self.coalescing and dict(self.coalescing),
            "image": self.image and dict(self.image),
            "limits": self.limits and dict(self.limits),
        }


@dataclass(eq=False, repr=False)
class Router(Host):
    """A host that forwards; each interface gets its addresses where its link is made."""


@dataclass(eq=False, repr=False)
class Switch(Node):
    """An OpenFlow switch.

    Parameters
    ----------
    dpid
        Its datapath number.
    fail_mode
        ``standalone``: it learns addresses and forwards by them while it has no flows and no controller. ``secure``:
        only flows.
    flows
        Flows that it starts with, in ``ovs-ofctl`` syntax.
    delay_ps
        The processing delay of each frame in picoseconds.
    port_numbers
        The OpenFlow port numbers that have a link.
    controllers
        Controllers that it is connected to: ``tcp:ADDRESS:PORT`` or ``ssl:ADDRESS:PORT``.
    control_delay_ps
        What the way between it and its controllers takes, each way, in picoseconds; ``None``: what goes for the
        network's controller where that is its own, and otherwise nothing.
    listen
        Where it listens for tools: ``ptcp:PORT``, ``pssl:PORT`` or ``punix:PATH``; ``None``: nowhere.
    tls
        Its key and certificates; ``None``: those of the network's controller where that is its own.
    protocols
        Versions of OpenFlow that it speaks.
    datapath
        What moves its frames: ``own`` (the fabric), or Open vSwitch's ``system`` or ``netdev``.
    vlans
        The VLANs of its ports by number, in the form of the lab protocol.
    mirrors
        Its mirrors, in the form of the lab protocol.
    spanning_tree
        Whether it floods and learns along the fabric's spanning tree even where it is secure or has a controller.
    """

    dpid: int = 0
    fail_mode: str = "standalone"
    flows: Sequence[str] = ()
    delay_ps: int = 0
    port_numbers: set[int] = field(default_factory=set[int], repr=False)
    controllers: tuple[str, ...] = ()
    control_delay_ps: int | None = None
    listen: str | None = None
    tls: Tls | None = None
    protocols: tuple[str, ...] = PROTOCOLS
    datapath: str = "own"
    vlans: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    mirrors: tuple[Mapping[str, Any], ...] = ()
    spanning_tree: bool = False

    def attach(self, interface: str, name: str | None = None, **settings: Unpack[LinkOptions]) -> Link:
        """Have an existing interface of this machine as the next port, and return the link that leads to it.

        Parameters
        ----------
        interface, name
            As for :meth:`twinnet.Network.interface`.
        settings
            Of the link, from the interface to this switch: as :meth:`twinnet.Network.link` takes them.
        """
        return self.network.link(self.network.interface(interface, name), self, **settings)

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol; raises `BadValue` when `vlans` names a port that no link made."""
        missing = sorted(set(self.vlans) - {port.number for port in self.ports})
        if missing:
            raise BadValue(f"vlans of {self.name} name port {missing[0]}, and no link ends there")
        spec: dict[str, Any] = {
            "kind": "switch",
            "name": self.name,
            "dpid": self.dpid,
            "fail_mode": self.fail_mode,
            "delay_ps": self.delay_ps,
            "ports": [self._port_spec(port) for port in self.ports],
            "flows": list(self.flows),
        }
        if self.controllers:
            spec["controllers"] = list(self.controllers)
        if self.control_delay_ps:
            spec["control_delay_ps"] = self.control_delay_ps
        if self.listen is not None:
            spec["listen"] = self.listen
        if self.tls is not None:
            spec["tls"] = self.tls.to_spec()
        if self.protocols != PROTOCOLS:
            spec["protocols"] = list(self.protocols)
        if self.datapath != "own":
            spec["datapath"] = self.datapath
        if self.mirrors:
            spec["mirrors"] = [dict(mirror) for mirror in self.mirrors]
        if self.spanning_tree:
            spec["spanning_tree"] = True
        return spec

    def _port_spec(self, port: Port) -> dict[str, Any]:
        vlans = self.vlans.get(port.number or 0)
        return port.to_spec() | ({"vlans": dict(vlans)} if vlans else {})


@dataclass(eq=False, repr=False)
class Interface(Node):
    """An existing interface of this machine; one link can end there.

    Parameters
    ----------
    interface
        Its name in the network namespace of the program that owns the lab.
    """

    interface: str = ""

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        ports = [port.to_spec() for port in self.ports]
        return {"kind": "interface", "name": self.name, "interface": self.interface, "ports": ports}


@dataclass(eq=False, repr=False)
class TunnelEnd(Node):
    """The end of a tunnel to another speaker; one link ends there.

    Parameters
    ----------
    tunnel
        What is spoken, and with whom.
    """

    tunnel: Tunnel | None = None

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        spec: dict[str, Any] = {"kind": "tunnel", "name": self.name, "ports": [port.to_spec() for port in self.ports]}
        if self.tunnel is not None:
            # Without an MTU of its own it goes by the underlay's, which is found when the lab starts.
            encapsulation = self.tunnel.to_spec() | {"mtu": self.tunnel.mtu or 65_535}
            spec |= {"tunnel": encapsulation, "remote": self.tunnel.remote, "local": self.tunnel.local}
            spec["port"] = self.tunnel.port
        return spec


@dataclass(eq=False, repr=False, slots=True)
class Link:
    """Two ports joined; each direction has settings of its own.

    Parameters
    ----------
    index
        Its place among the network's links, from 0.
    a, b
        The ports that it joins.
    mtu
        The largest packet in bytes, without the Ethernet header.
    up
        Whether it carries frames when the lab starts.
    ab, ba
        The settings of each direction in the form of the lab protocol.
    tunnel
        What carries the frames over an underlay.
    name
        Its own name, "" without one.
    """

    index: int
    a: Port
    b: Port
    mtu: int
    up: bool
    ab: dict[str, Any]
    ba: dict[str, Any]
    tunnel: Tunnel | None = None
    name: str = ""

    def __repr__(self) -> str:
        there, back = describe_direction(self.ab), describe_direction(self.ba)
        settings = there if there == back else f"-> {there}, <- {back}"
        return f"<Link {self.a.name}<->{self.b.name} {'up' if self.up else 'DOWN'}: {settings}>"

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol."""
        ends = {name: {"node": port.node, "port": port.index} for name, port in (("a", self.a), ("b", self.b))}
        spec = ends | {"mtu": self.mtu, "up": self.up, "ab": dict(self.ab), "ba": dict(self.ba)}
        return spec if self.tunnel is None else spec | {"tunnel": self.tunnel.to_spec()}
