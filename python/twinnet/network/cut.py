"""A network cut into the parts that run on several machines: a link between two of them becomes a tunnel.

Each machine carries the direction that its own node sends: the queue, the line and the delay of the link, and then the
tunnel. What comes out of the tunnel is at the far node at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Literal

from twinnet.control.choice import APP_TARGET
from twinnet.control.targets import parse_target
from twinnet.errors import NotAvailable
from twinnet.network.link_settings import DEFAULT_DIRECTION
from twinnet.network.tunnels import vxlan

__all__ = ["CutLink", "CutNetwork", "Way", "check_parts", "cut_network"]

Way = Literal["ab", "ba"]
_KEYS = 1 << 24


@dataclass(frozen=True)
class CutLink:
    """A link whose ends are on two machines.

    Parameters
    ----------
    index
        Its number in the whole network.
    a, b
        The nodes at its ends.
    machine_a, machine_b
        Where they run.
    tunnel
        The name of the tunnel's end in both parts.
    key
        The VXLAN network identifier.
    mtu
        The largest packet of the link in bytes.
    delays_ps
        Its delay in each direction, as described.
    """

    index: int
    a: str
    b: str
    machine_a: str
    machine_b: str
    tunnel: str
    key: int
    mtu: int
    delays_ps: Mapping[Way, int]

    @property
    def name(self) -> str:
        """The link as messages call it."""
        return f"{self.a} - {self.b}"

    @property
    def overhead(self) -> int:
        """Bytes that the tunnel adds to a packet."""
        return vxlan(self.key).overhead

    def sender(self, way: Way) -> str:
        """The machine that carries the direction `way`."""
        return self.machine_a if way == "ab" else self.machine_b


@dataclass(frozen=True)
class CutNetwork:
    """A network in parts.

    Parameters
    ----------
    parts
        The description of each machine's part, in the form of the lab protocol.
    links
        The links between machines.
    numbers
        For each machine, the number of each link of the whole network in its part.
    """

    parts: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    links: list[CutLink] = field(default_factory=list[CutLink])
    numbers: dict[str, dict[int, int]] = field(default_factory=dict[str, "dict[int, int]"])

    def connect(self, addresses: Mapping[str, str], port: int, cut_packets: Mapping[int, bool]) -> None:
        """Tell the tunnels' ends where they lead.

        Parameters
        ----------
        addresses
            The address of each machine.
        port
            The UDP port, the same on all.
        cut_packets
            For each cut link, whether the underlay has to cut its longest packets.
        """
        for link in self.links:
            for here, there in ((link.machine_a, link.machine_b), (link.machine_b, link.machine_a)):
                node = next(one for one in self.parts[here]["nodes"] if one["name"] == link.tunnel)
                node |= {"remote": addresses[there], "local": addresses[here], "port": port}
                node["tunnel"] = node["tunnel"] | {"fragment": cut_packets[link.index]}

    def shorten(self, link: CutLink, way: Way, delay_ps: int) -> None:
        """Give the direction `way` of a cut link the delay `delay_ps` in the part that carries it."""
        part = link.sender(way)
        self.parts[part]["links"][self.numbers[part][link.index]][way]["delay_ps"] = delay_ps


def cut_network(spec: Mapping[str, Any], machines: Mapping[str, str], first_key: int) -> CutNetwork:
    """Return the network `spec` (of the lab protocol) in parts, without its schedule of changes: those of cut links
    follow from what the ways between machines delay, which is not known yet.

    Parameters
    ----------
    spec
        The network.
    machines
        The name of the machine of every node.
    first_key
        The key of the first tunnel; the others follow.

    Raises
    ------
    NotAvailable
        A part of the description is bound to one machine.
    """
    check_parts(spec["nodes"])
    cut = CutNetwork()
    for machine in dict.fromkeys(machines.values()):
        elsewhere = {
            node["name"]: [one.partition("/")[0] for port in node["ports"] for one in port.get("addresses") or ()]
            for node in spec["nodes"]
            if node["kind"] == "host" and machines[node["name"]] != machine
        }
        cut.parts[machine] = {**spec, "nodes": [], "links": [], "schedule": [], "elsewhere": elsewhere}
        cut.numbers[machine] = {}
    for node in spec["nodes"]:
        cut.parts[machines[node["name"]]]["nodes"].append(node)
    taken = {node["name"] for node in spec["nodes"]}
    names = (f"tun{number}" for number in range(1, 2 * len(taken) + len(spec["links"]) + 2))
    free = (name for name in names if name not in taken)
    for index, link in enumerate(spec["links"]):
        a, b = link["a"]["node"], link["b"]["node"]
        if machines[a] == machines[b]:
            _add(cut, machines[a], index, link)
            continue
        if link.get("tunnel") is not None:
            raise NotAvailable(
                f"the link {a} - {b} is between two machines and has a tunnel of its own",
                "leave the tunnel out: the link becomes one by itself",
            )
        key = (first_key + len(cut.links)) % _KEYS
        delays: dict[Way, int] = {"ab": int(link["ab"]["delay_ps"]), "ba": int(link["ba"]["delay_ps"])}
        made = CutLink(index, a, b, machines[a], machines[b], next(free), key, int(link["mtu"]), delays)
        cut.links.append(made)
        end = {"node": made.tunnel, "port": 0}
        for machine, near, way in ((machines[a], "a", "ab"), (machines[b], "b", "ba")):
            ports = [{"name": f"{made.tunnel}-eth0", "queue": None}]
            tunnel = {"kind": "vxlan", "mtu": 65_535, "fragment": False, "vni": key}
            cut.parts[machine]["nodes"].append(
                {"kind": "tunnel", "name": made.tunnel, "ports": ports, "tunnel": tunnel, "remote": None}
            )
            ends = {"a": link["a"], "b": end} if near == "a" else {"a": end, "b": link["b"]}
            ways = {"ab": dict(DEFAULT_DIRECTION), "ba": dict(DEFAULT_DIRECTION)} | {way: dict(link[way])}
            _add(cut, machine, index, {**link, **ends, **ways})
    return cut


def check_parts(nodes: Sequence[Mapping[str, Any]]) -> None:
    """Raise `NotAvailable` when one of `nodes` (of the lab protocol) is bound to one machine."""
    for node in nodes:
        _check_node(node)


def _add(cut: CutNetwork, machine: str, index: int, link: Mapping[str, Any]) -> None:
    cut.numbers[machine][index] = len(cut.parts[machine]["links"])
    cut.parts[machine]["links"].append(dict(link))


def _check_node(node: Mapping[str, Any]) -> None:
    name, kind = node["name"], node["kind"]
    if kind not in ("host", "switch"):
        raise NotAvailable(
            f"{name} is bound to the machine that owns the lab, and the network is on several",
            "leave interfaces and tunnels to other speakers out, or run the network on one machine",
        )
    if kind == "switch" and node.get("datapath", "own") != "own":
        raise NotAvailable(f"{name} is Open vSwitch, and the network is on several machines", "use kind: own")
    if kind != "switch":
        return
    if node.get("listen"):
        raise NotAvailable(
            f"{name} listens for tools at {node['listen']}, and the network is on several machines",
            "leave listen out; flows are shown by lab.switch(...).dump_flows()",
        )
    for controller in node.get("controllers") or ():
        _check_controller(name, controller, node.get("tls") is not None)


def _check_controller(switch: str, text: str, has_keys: bool) -> None:
    """Refuse a controller that the machine of `switch` does not reach."""
    if text.startswith(APP_TARGET):
        raise NotAvailable(
            f"the controller of {switch} runs in this process, and the network is on several machines",
            "run the controller as a program that listens where all machines reach it, such as tcp:10.8.0.9:6653",
        )
    if parse_target(text).tls or has_keys:
        raise NotAvailable(
            f"{switch} speaks TLS with its controller, and its keys are files of this machine, not of the one that"
            " carries it",
            "use tcp:, or run the network on one machine",
        )
    if _is_of_one_machine(parse_target(text).address):
        raise NotAvailable(
            f"the controller of {switch} is at {text}, which every machine takes for itself",
            "have it listen at an address that all machines reach, and name that, such as tcp:10.8.0.9:6653",
        )


def _is_of_one_machine(address: str) -> bool:
    try:
        known = ip_address(address)
    except ValueError:
        return address == "localhost"
    return known.is_loopback or known.is_unspecified
