"""What must be true of a machine before traffic starts: its interface, address, MTU, line rate and routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from twinnet.errors import LabError
from twinnet.machines.session import AgentSession
from twinnet.network.machines import PhysicalMachine
from twinnet.network.network import Network

__all__ = ["check_interface", "check_routes"]


def check_interface(network: Network, machine: PhysicalMachine, facts: Mapping[str, Any] | None) -> None:
    """Raise `LabError` unless the interface of `machine` is there, is up, and is as `network` describes it."""
    name, interface = machine.name, machine.interface
    if facts is None:
        raise LabError(
            f"{name} has no interface {interface}", f"see the names with: ssh {machine.ssh} ip link", "NoSuchInterface"
        )
    if not facts["up"]:
        raise LabError(
            f"the interface {interface} of {name} is down", f"on {name}: ip link set {interface} up", "InterfaceDown"
        )
    if not facts["carrier"]:
        raise LabError(
            f"the interface {interface} of {name} has no carrier",
            "see that the cable is in at both ends and that the other end is up",
            "InterfaceDown",
        )
    there = [str(one).partition("/")[0] for one in facts["addresses"]]
    for address in machine.addresses:
        if address.partition("/")[0] not in there:
            raise LabError(
                f"the interface {interface} of {name} has not the address {address}; it has"
                f" {', '.join(facts['addresses']) or 'none'}",
                f"on {name}: ip address add {address} dev {interface}",
                "NoSuchAddress",
            )
    for link in network.links:
        if machine.name in (link.a.node, link.b.node):
            _check_link(network, machine, link, facts)


def _check_link(network: Network, machine: PhysicalMachine, link: Any, facts: Mapping[str, Any]) -> None:
    name, interface = machine.name, machine.interface
    if facts["mtu"] is not None and facts["mtu"] != link.mtu:
        raise LabError(
            f"the interface {interface} of {name} has an MTU of {facts['mtu']} bytes, its link is described with"
            f" {link.mtu}",
            f"on {name}: ip link set {interface} mtu {link.mtu}, or describe the link with mtu: {facts['mtu']}",
            "OtherMtu",
        )
    ways = link.ab if link.a.node == name else link.ba
    rate_bps = ways.get("rate_bps")
    if rate_bps and facts["speed_mbps"] is not None and facts["speed_mbps"] * 1_000_000 != rate_bps:
        raise LabError(
            f"the interface {interface} of {name} runs at {facts['speed_mbps']} Mbit/s, its link is described with"
            f" {rate_bps / 1e6:g} Mbit/s",
            f"on {name}: ethtool -s {interface} speed {rate_bps // 1_000_000} duplex full, or describe the link with"
            f" rate: {facts['speed_mbps']} Mbit",
            "OtherRate",
        )


def check_routes(
    sessions: Mapping[str, AgentSession], addresses: Mapping[str, str], interfaces: Mapping[str, str]
) -> None:
    """Raise `LabError` unless every machine reaches every other one from its address in the network, which its
    interface there has."""
    for name, session in sessions.items():
        others = [other for other in addresses if other != name]
        mine = ipaddress.ip_address(addresses[name])
        sources = session.request("routes", to=[addresses[other] for other in others])
        for other, source in zip(others, sources, strict=True):
            if source is None or ipaddress.ip_address(str(source)) != mine:
                way = "it has no route there" if source is None else f"it would send from {source}"
                raise LabError(
                    f"{name} does not reach {other} ({addresses[other]}) through {interfaces[name]}: {way}",
                    f"see with ip route get {addresses[other]} on {name}; addresses of one network belong to one subnet"
                    " of its own",
                    "OtherRoute",
                )
