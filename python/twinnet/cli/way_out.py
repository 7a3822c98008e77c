"""``--nat``: a gateway, by which the hosts of a lab reach the network outside."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twinnet import outward
from twinnet.errors import BadValue, NotAvailable
from twinnet.interpreter import PYTHON
from twinnet.outward import interface

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.network.network import Network

__all__ = ["GATEWAY", "give_gateway", "open_way"]

GATEWAY = "nat0"
"""The name of the gateway."""
_DEFAULT = "0.0.0.0/0"
_PATIENCE_S = 15.0


def give_gateway(network: Network) -> None:
    """Add the gateway at the first switch of `network`, with the highest free address of the first host's network, and
    have hosts of that network without a default route send by it."""
    hosts = [(host, address) for host in network.hosts if (address := _first_address(host.addresses)) is not None]
    if not network.switches or not hosts:
        raise BadValue("--nat gives a network no way out that has no switch, or no host with an IPv4 address", "")
    inside = hosts[0][1].network
    taken = {address.ip for _, address in hosts}
    taken |= {
        ipaddress.ip_interface(address).ip
        for node in network.nodes.values()
        for port in node.ports
        for address in port.addresses
    }
    free = next((one for one in _from_above(inside) if one not in taken), None)
    if free is None:
        raise BadValue(f"--nat needs a free address in {inside}", "give hosts a longer network, such as 10.0.0.1/8")
    for host, address in hosts:
        has_route = any(destination == _DEFAULT for destination, _ in host.routes)
        if address.network == inside and not has_route:
            host.routes.append((_DEFAULT, str(free)))
    network.host(GATEWAY, ip=f"{free}/{inside.prefixlen}", ip6=False, sysctls={"net.ipv4.ip_forward": 1})
    network.link(GATEWAY, network.switches[0])


def _first_address(addresses: tuple[str, ...]) -> ipaddress.IPv4Interface | None:
    found = (ipaddress.ip_interface(address) for address in addresses)
    return next((one for one in found if isinstance(one, ipaddress.IPv4Interface)), None)


def _from_above(network: ipaddress.IPv4Network) -> Iterator[ipaddress.IPv4Address]:
    for number in range(int(network.broadcast_address) - 1, int(network.network_address), -1):
        yield ipaddress.IPv4Address(number)


@contextmanager
def open_way(lab: Lab, wanted: bool) -> Generator[None]:
    """Let the gateway of `lab` lead outside, where that is `wanted`, until the end of the block.

    Raises
    ------
    NotAvailable
        The gateway can have no interface.
    """
    if not wanted:
        yield
        return
    near, far = socket.socketpair()
    with near:
        with far:
            made = lab[GATEWAY].popen([*PYTHON, interface.__file__], stdin=far.fileno())
        near.settimeout(_PATIENCE_S)
        descriptors = socket.recv_fds(near, 1, 1)[1]
    _, said = made.communicate()
    if not descriptors:
        raise NotAvailable(f"{GATEWAY} has no way out: {said.decode(errors='replace').strip()}", "leave --nat away")
    with socket.socket(fileno=descriptors[0]) as packets:
        way = outward.carry(packets.fileno())
    try:
        yield
    finally:
        way.close()
