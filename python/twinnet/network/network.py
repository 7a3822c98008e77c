"""The description of a network. Pure data: building one touches nothing, and every mistake is raised where it is
made."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from twinnet.control.choice import ControllerChoice
from twinnet.control.controller_settings import ControllerOptions
from twinnet.errors import AddressInUse, BadTopology, BadValue, DuplicateLink, DuplicateName, UnknownNode, did_you_mean
from twinnet.network import addressing
from twinnet.network.checks import checked_fabric_threads, checked_seed, one_way, same_tunnel
from twinnet.network.drawable import Drawable
from twinnet.network.host_fields import host_fields
from twinnet.network.host_settings import HostOptions, ModelOptions
from twinnet.network.ip4_alone import IPv4Alone
from twinnet.network.link_settings import (
    DEFAULT_DIRECTION,
    LINK_DEFAULTS,
    DirectionSettings,
    LineOptions,
    OwnLinkOptions,
    direction_spec,
    read_setting,
)
from twinnet.network.machines import PhysicalMachine, checked_command, checked_target
from twinnet.network.moment import NetworkMoment, Side
from twinnet.network.named_nodes import NamedNodes
from twinnet.network.names_of_mininet import AnswersToMininet
from twinnet.network.new_port import new_port
from twinnet.network.nodes import Host, Interface, Link, Node, Router, Switch, TunnelEnd
from twinnet.network.placement import PartMachine, PlaceOptions, read_placement
from twinnet.network.starting import Startable
from twinnet.network.switch_settings import DatapathNumber, DatapathNumbers, SwitchOptions, switch_fields
from twinnet.network.taken_addresses import TakenAddresses
from twinnet.network.tunnels import Tunnel, far_tunnel, link_tunnel
from twinnet.network.unknown_settings import refuses_unknown_settings
from twinnet.qos.queue import checked_inner
from twinnet.ranges import moment_ps

if TYPE_CHECKING:
    from twinnet.control.controller import Controller

__all__ = ["Network", "NetworkMoment", "Side"]

SomeNode = TypeVar("SomeNode", bound=Node)


class Network(Drawable, Startable, IPv4Alone, AnswersToMininet):
    """Hosts, routers and switches, joined by links.

    Parameters
    ----------
    seed
        The seed of all randomness in the network (loss, jitter, ties).
    fabric_threads
        How many threads move the network on the wall clock, 1 to 64; ``auto``: by the processors that are free.

    Examples
    --------
    >>> net = Network()
    >>> s1 = net.switch("s1")
    >>> for n in range(1, 3):
    ...     _ = net.link(net.host(f"h{n}"), s1, rate="1 Gbit", delay="50 us")
    >>> net["h2"].ip
    '10.0.0.2'
    """

    def __init__(self, seed: int = 1, fabric_threads: int | Literal["auto"] = "auto") -> None:
        self.seed: int = checked_seed(seed)
        self.fabric_threads: int | Literal["auto"] = checked_fabric_threads(fabric_threads)
        self._nodes: dict[str, Node] = {}
        self._links: list[Link] = []
        self._pairs: dict[tuple[str, str], Link] = {}
        self._addresses = TakenAddresses()
        self._datapaths = DatapathNumbers()
        self._schedule: list[dict[str, Any]] = []
        self.placement: dict[str, PartMachine] = {}
        """The machines of the nodes that :meth:`place` names; empty: all is on one."""
        self.controller_choice: ControllerChoice | None = None
        """The controller of the switches that name none."""
        self._hosts = 0
        self._routers = 0

    @refuses_unknown_settings(ControllerOptions)
    def controller(
        self,
        connect: str | Controller | Callable[[], Controller] | None = None,
        **settings: Unpack[ControllerOptions],
    ) -> None:
        """Say which controller the switches have that name none.

        Parameters
        ----------
        connect
            Where it is (default: ``tcp:127.0.0.1:6653``; ``ssl:127.0.0.1:6653`` with `tls`); or a
            :class:`twinnet.control.Controller`, which
            runs in this process, or the class of one, of which each lab then makes its own.
        settings
            The program to run, delays and the like: those of
            :class:`twinnet.control.controller_settings.ControllerOptions`.
        """
        self.controller_choice = ControllerChoice.of(connect, settings)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name, in the order of creation."""
        return self._nodes

    @property
    def hosts(self) -> NamedNodes[Host]:
        """The hosts, routers among them, in the order of creation: ``net.hosts[0]``, ``net.hosts["h1"]``."""
        return NamedNodes(node for node in self._nodes.values() if isinstance(node, Host))

    @property
    def host_count(self) -> int:
        """The number of hosts, not counting routers."""
        return self._hosts

    @property
    def switches(self) -> NamedNodes[Switch]:
        """The switches in the order of creation: ``net.switches[0]``, ``net.switches["s1"]``."""
        return NamedNodes(node for node in self._nodes.values() if isinstance(node, Switch))

    @property
    def links(self) -> Sequence[Link]:
        """All links in the order of creation."""
        return self._links

    def __getitem__(self, name: str) -> Node:
        """Return the node called `name`; raises `UnknownNode`. Type checkers learn its kind by
        ``net.node("h1", tn.Host)``."""
        return self.node(name)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    @overload
    def node(self, node: Node | str) -> Node: ...

    @overload
    def node(self, node: Node | str, kind: type[SomeNode]) -> SomeNode: ...

    def node(self, node: Node | str, kind: type[Node] = Node) -> Node:
        """Return `node`, or the node called so; raises `UnknownNode` when it is not of this network.

        Parameters
        ----------
        node
            A node, or its name.
        kind
            What it is to be, such as ``tn.Host``; raises `BadTopology` when it is of another kind.
        """
        name = node.name if isinstance(node, Node) else node
        found = self._nodes.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownNode(f"the network has no node {name!r}", did_you_mean(str(name), self._nodes))
        if isinstance(node, Node) and node is not found:
            raise UnknownNode(f"the node {name!r} belongs to another network", "use the node that this network made")
        if not isinstance(found, kind):
            raise BadTopology(f"{name} is a {type(found).__name__.lower()}, not a {kind.__name__.lower()}")
        return found

    @refuses_unknown_settings(HostOptions)
    def host(
        self,
        name: str,
        ip: str | Literal[False] | None = None,
        ip6: str | Literal[False] | None = None,
        mac: str | None = None,
        gateway: str | None = None,
        **settings: Unpack[HostOptions],
    ) -> Host:
        """Add a host.

        Parameters
        ----------
        name
            A letter, then letters, digits, ``-``, ``_``; at most 10 characters.
        ip, ip6
            The addresses of its first interface with prefix length; ``False`` for none. Otherwise host number N gets
            10.0.0.N/8 and fd00::N/64.
        mac
            The MAC of its first interface; otherwise 00:00:00:00:00:0N.
        gateway
            The next hop of its default route.
        settings
            Routes, sysctls and the like: those of :class:`twinnet.network.host_settings.HostOptions`.
        """
        self._free_name(name)
        number = self._hosts + 1
        addresses: list[str] = []
        if ip is not False:
            addresses.append(addressing.host_ip(number) if ip is None else addressing.interface_address(ip, 4))
        if ip6 is not False:
            addresses.append(addressing.host_ip6(number) if ip6 is None else addressing.interface_address(ip6, 6))
        default = [("::/0" if ":" in gateway else "default", gateway)] if gateway is not None else []
        host = Host(
            self,
            name,
            number=number,
            addresses=tuple(addresses),
            mac=addressing.checked_mac(mac) if mac is not None else None,
            **host_fields(settings, default),
        )
        self._addresses.claim(name, addresses, host.mac)
        self._hosts += 1
        self._nodes[name] = host
        return host

    @refuses_unknown_settings(ModelOptions)
    def machine(
        self,
        name: str,
        ssh: str,
        interface: str,
        address: str | Sequence[str],
        command: str = "twinnet",
        **settings: Unpack[ModelOptions],
    ) -> PhysicalMachine:
        """Add a physical machine as a host. In ``operate`` (the real clock) an agent on it runs the apps; in
        ``emulate`` and ``simulate`` it is a host like others, so that the three can be compared.

        Parameters
        ----------
        name
            As for :meth:`host`.
        ssh
            Where ``ssh`` finds it: ``user@lab3``, or a name of ``~/.ssh/config``. ssh must ask for nothing.
        interface
            Its interface in the network, such as ``eth1``.
        address
            The address with prefix length that this interface has; or one of IPv4 and one of IPv6. twinnet checks
            it and sets nothing.
        command
            Where its ``twinnet`` is, such as ``~/venv/bin/twinnet``.
        settings
            Of the model that stands for it on the virtual clock: those of
            :class:`twinnet.network.host_settings.ModelOptions`.
        """
        given = (address,) if isinstance(address, str) else tuple(address)
        versions = [6 if ":" in str(one) else 4 for one in given]
        if not given or len(set(versions)) != len(given):
            raise BadValue(
                f"the machine {name} has the addresses {', '.join(map(str, given)) or 'none'}",
                "give one address with prefix length, or one of IPv4 and one of IPv6",
            )
        chosen = dict(zip(versions, given, strict=True))
        target, program = checked_target(ssh), checked_command(command)
        addressing.checked_real_interface(interface)
        host = self.host(name, ip=chosen.get(4, False), ip6=chosen.get(6, False), **settings)
        machine = PhysicalMachine(
            self,
            name,
            number=host.number,
            addresses=host.addresses,
            processing=host.processing,
            coalescing=host.coalescing,
            ssh=target,
            interface=interface,
            command=program,
        )
        self._nodes[name] = machine
        return machine

    @refuses_unknown_settings(HostOptions)
    def router(self, name: str, **settings: Unpack[HostOptions]) -> Router:
        """Add a router: a host that forwards. Its interfaces get their addresses in :meth:`link`.

        Parameters
        ----------
        name, settings
            As for :meth:`host`.
        """
        self._free_name(name)
        router = Router(self, name, number=self._routers + 1, forwarding=True, **host_fields(settings))
        self._routers += 1
        self._nodes[name] = router
        return router

    @refuses_unknown_settings(SwitchOptions)
    def switch(self, name: str, dpid: DatapathNumber | None = None, **settings: Unpack[SwitchOptions]) -> Switch:
        """Add a switch.

        Parameters
        ----------
        name
            As for :meth:`host`.
        dpid
            The datapath number (text is hexadecimal); otherwise the number at the end of the name, or the lowest
            that is free.
        settings
            Fail mode, flows, controllers and the like: those of
            :class:`twinnet.network.switch_settings.SwitchOptions`.
        """
        self._free_name(name)
        fields = switch_fields(name, settings)
        switch = Switch(self, name, dpid=self._datapaths.take(name, dpid), **fields)
        self._nodes[name] = switch
        return switch

    def interface(self, interface: str, name: str | None = None) -> Interface:
        """Add an existing interface of this machine, as the end of one link: what it receives enters the network, and
        what the network sends to it leaves the machine. On the wall clock only.

        Parameters
        ----------
        interface
            Its name, such as ``eth1``, in the network namespace of the program that owns the lab.
        name
            The name of the node; default: that of the interface.
        """
        addressing.checked_real_interface(interface)
        node_name = interface if name is None else name
        self._free_name(node_name)
        for node in self._nodes.values():
            if isinstance(node, Interface) and node.interface == interface:
                raise DuplicateName(f"the interface {interface} is {node.name} already", "an interface has one link")
        node = Interface(self, node_name, interface=interface)
        self._nodes[node_name] = node
        return node

    @refuses_unknown_settings(OwnLinkOptions)
    def link(self, a: Node | str, b: Node | str, **settings: Unpack[OwnLinkOptions]) -> Link:
        """Join two nodes.

        Parameters
        ----------
        a, b
            The nodes, or their names: the first and the second end.
        settings
            Those of :class:`twinnet.network.link_settings.OwnLinkOptions`: ``rate``, ``delay``, ``queue``, ...
        """
        given: OwnLinkOptions = {**LINK_DEFAULTS, **settings}
        node_a, node_b = self.node(a), self.node(b)
        if node_a is node_b:
            raise BadTopology(f"a link joins {node_a.name} to itself", "a link needs two different nodes")
        pair = (min(node_a.name, node_b.name), max(node_a.name, node_b.name))
        if pair in self._pairs and not read_setting("parallel", given.get("parallel")):
            raise DuplicateLink(
                f"{node_a.name} and {node_b.name} are linked already",
                "remove the second link, or give parallel=True (parallel: true) for two lines side by side",
            )
        mtu, up = read_setting("mtu", given.get("mtu")), read_setting("up", given.get("up"))
        carried_by = link_tunnel(given.get("tunnel"), mtu)
        link_name = self._free_link_name(given.get("name"))
        queue = given.get("queue")
        queues = {"queue": queue, "queue_a": given.get("queue_a"), "queue_b": given.get("queue_b")}
        for name, one in queues.items():
            checked_inner(one, name)
        both = DEFAULT_DIRECTION | direction_spec(
            {name: given[name] for name in DirectionSettings.__annotations__ if name in given}
        )
        ab, ba = both | one_way(given.get("a_to_b"), "a_to_b"), both | one_way(given.get("b_to_a"), "b_to_a")
        if any(way["rate_bps"] and way["delivery_trace"] for way in (ab, ba)):
            raise BadValue(
                f"the link of {node_a.name} and {node_b.name} has a rate and a delivery_trace",
                "leave one out (rate=None where a file's defaults give a rate)",
            )
        taken = self._addresses
        new_a = new_port(node_a, given.get("port_a"), given.get("address_a"), queues["queue_a"] or queue, "a", taken)
        new_b = new_port(node_b, given.get("port_b"), given.get("address_b"), queues["queue_b"] or queue, "b", taken)
        if overlap := set(new_a.addresses) & set(new_b.addresses):
            raise AddressInUse(f"both ends of the link have the address {min(overlap)}", "give each its own address")
        for node, port in ((node_a, new_a), (node_b, new_b)):
            later = [one for one in port.addresses if not (isinstance(node, Host) and one in node.addresses)]
            self._addresses.claim(node.name, later, port.mac)
        for node, port in ((node_a, new_a), (node_b, new_b)):
            node.ports.append(port)
            if isinstance(node, Switch) and port.number is not None:
                node.port_numbers.add(port.number)
        link = Link(len(self._links), new_a, new_b, mtu, up, ab, ba, carried_by, link_name)
        self._links.append(link)
        self._pairs.setdefault(pair, link)
        return link

    def _free_link_name(self, name: str | None) -> str:
        if name is None:
            return ""
        addressing.checked_name(name)
        if any(link.name == name for link in self._links):
            raise DuplicateName(f"there is a link {name} already", "give each link its own name, or none")
        return name

    def tunnel(
        self,
        node: Node | str,
        tunnel: Tunnel | Mapping[str, Mapping[str, str | int | bool]],
        name: str | None = None,
        **settings: Unpack[LineOptions],
    ) -> Link:
        """Have another speaker of GRE or VXLAN at the far end of a new port of `node`: another lab, a Linux machine,
        a switch. On the wall clock only.

        Parameters
        ----------
        node
            A switch or host, or its name.
        tunnel
            :func:`twinnet.gre` or :func:`twinnet.vxlan` with a `remote`.
        name
            The name of the tunnel's end; default: ``tun1``, ``tun2``, and so on.
        settings
            Of the link between `node` and the tunnel's end, as :meth:`link` takes them: what is done to frames before
            they enter the tunnel and after they left it.

        Returns
        -------
        The link, from `node` to the tunnel's end.
        """
        spoken = far_tunnel(tunnel, settings.get("mtu", 1500))
        at = self.node(node)
        numbered = (f"tun{number}" for number in range(1, len(self._nodes) + 2))
        chosen = name if name is not None else next(one for one in numbered if one not in self)
        self._free_name(chosen)
        for end in (one for one in self._nodes.values() if isinstance(one, TunnelEnd)):
            if end.tunnel is not None and same_tunnel(end.tunnel, spoken):
                raise DuplicateName(
                    f"{end.name} is a {spoken} to {spoken.remote} already", "give each tunnel its own key or vni"
                )
        end = TunnelEnd(self, chosen, tunnel=spoken)
        self._nodes[chosen] = end
        try:
            return self.link(at, end, **settings)
        except BaseException:
            del self._nodes[chosen]
            raise

    def place(self, on: Mapping[str, str | PlaceOptions]) -> None:
        """Run the network on several machines: in ``emulate`` every switch is on its machine, with the hosts that hang
        on it, and the links between machines become tunnels. The virtual clock takes no notice.

        Parameters
        ----------
        on
            For each switch (or other node) its machine: where ``ssh`` finds it, or the settings of
            :class:`twinnet.network.placement.PlaceOptions`. Nodes that are not named go with the nearest that is.

        Examples
        --------
        >>> net = Network()
        >>> s1, s2 = net.switch("s1"), net.switch("s2")
        >>> _ = net.link(s1, s2, delay="1 ms")
        >>> net.place({"s1": "lab1", "s2": {"ssh": "user@lab2", "address": "10.8.0.2"}})
        """
        if not isinstance(on, Mapping) or not on:
            raise BadValue(f"the placement is {on!r}", 'give for example {"s1": "lab1", "s2": "user@lab2"}')
        for name in on:
            self.node(name)
        self.placement = read_placement(on)

    def find_link(self, a: Node | str, b: Node | str) -> Link:
        """Return the (first) link between two nodes; raises `BadTopology` when there is none."""
        name_a, name_b = self.node(a).name, self.node(b).name
        link = self._pairs.get((min(name_a, name_b), max(name_a, name_b)))
        if link is None:
            neighbours = [
                one.b.node if one.a.node == name_a else one.a.node
                for one in self._links
                if name_a in (one.a.node, one.b.node)
            ]
            said = f"{name_a} is linked to {', '.join(neighbours)}" if neighbours else f"{name_a} has no link"
            raise BadTopology(f"{name_a} and {name_b} are not linked", said)
        return link

    def at(self, when: str) -> NetworkMoment:
        """Return the moment `when` after the start, to schedule changes: ``net.at("2 s").link("h1",
        "s1").set(up=False)``."""
        return NetworkMoment(self, moment_ps(when))

    def to_spec(self) -> dict[str, Any]:
        """Return the network as the lab protocol has it (docs/reference/lab-protocol.md)."""
        nodes: list[dict[str, Any]] = []
        for node in self._nodes.values():
            spec = node.to_spec()
            choice = self.controller_choice
            if choice is not None and isinstance(node, Switch) and "controllers" not in spec:
                spec["controllers"] = [choice.target]
                if choice.delay_ps and node.control_delay_ps is None:
                    spec["control_delay_ps"] = choice.delay_ps
                if choice.tls is not None:
                    spec.setdefault("tls", choice.tls.to_spec())
            nodes.append(spec)
        return {
            "seed": self.seed,
            "nodes": nodes,
            "links": [link.to_spec() for link in self._links],
            "schedule": sorted(self._schedule, key=lambda change: change["at_ps"]),
        }

    def _free_name(self, name: object) -> None:
        checked = addressing.checked_name(name)
        if checked in self._nodes:
            raise DuplicateName(f"the network has a node {checked!r} already", "give each node its own name")
