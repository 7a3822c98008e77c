"""Real hosts that know each other's hardware addresses from the start, as those of Mininet's option ``--arp``."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twinnet.errors import NotAvailable

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["introduce"]


def introduce(lab: Lab) -> None:
    """Tell every real host of `lab` the hardware addresses of all others on its subnets, for good.

    Raises
    ------
    NotAvailable
        A host has no program ``ip`` that takes them.
    """
    hosts = [lab.layout.node(name) for name in lab.layout.names("host")]
    known = [
        (node["name"], port["mac"], ipaddress.ip_interface(address))
        for node in hosts
        for port in node["ports"]
        for address in port["addresses"]
    ]
    for node in (node for node in hosts if not node.get("model")):
        lines = "".join(f"{line}\n" for line in _lines(node, known))
        if not lines:
            continue
        done = lab[node["name"]].run(["ip", "-batch", "-"], input=lines)
        if done.returncode != 0:
            raise NotAvailable(
                f"{node['name']} was not told of the other hosts: {str(done.stderr).strip()}",
                "install iproute2, or leave static_neighbours (--arp) away",
            )


def _lines(node: Mapping[str, Any], known: list[tuple[str, str, Any]]) -> Iterator[str]:
    """The lines for ``ip -batch`` that name the neighbours of a host."""
    for port in node["ports"]:
        for own in (ipaddress.ip_interface(address) for address in port["addresses"]):
            for name, mac, other in known:
                if name != node["name"] and other.ip in own.network:
                    yield f"neigh replace {other.ip} lladdr {mac} dev {port['name']} nud permanent"
