"""The load of a network: clients, servers, and the traffic between them. A policy may derive its classes from it."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.network.nodes import Host
from twinnet.policies.match import Protocol
from twinnet.ranges import line_rate_bps
from twinnet.units import Rate

__all__ = ["Demand", "Load", "spread_evenly"]


@dataclass(frozen=True)
class Demand:
    """One client asks one server for one kind of traffic.

    Parameters
    ----------
    client, server
        Names of hosts.
    application
        What it is, such as ``http``, ``video`` or ``ping``; classes by application go by this.
    protocol, port
        How the server is reached: ``tcp``, ``udp`` or ``icmp``, and the server's port (``None`` for ICMP).
    rate
        What it needs, with unit, where a policy routes by it.
    """

    client: str
    server: str
    application: str
    protocol: Protocol = "tcp"
    port: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.client == self.server:
            raise BadPolicy(f"{self.client} would ask itself for {self.application}", "name another server")
        if (self.port is None) != (self.protocol == "icmp"):
            raise BadPolicy(
                f"{self.application} of {self.client} is {self.protocol} with the port {self.port}",
                "TCP and UDP have a port, ICMP has none",
            )
        if self.rate is not None:
            line_rate_bps(self.rate, "rate")


@dataclass(frozen=True)
class Load:
    """All that is asked for.

    Parameters
    ----------
    demands
        What each client asks for.
    """

    demands: Sequence[Demand] = field(default_factory=tuple[Demand, ...])

    @cached_property
    def clients(self) -> list[str]:
        """The clients, each once, in the order of their demands."""
        return list(dict.fromkeys(one.client for one in self.demands))

    @cached_property
    def servers(self) -> list[str]:
        """The servers, each once, in the order of the demands for them."""
        return list(dict.fromkeys(one.server for one in self.demands))

    @cached_property
    def applications(self) -> Mapping[str, list[tuple[Protocol, int | None]]]:
        """The protocols and ports of the servers of each application."""
        found: dict[str, dict[tuple[Protocol, int | None], None]] = {}
        for one in self.demands:
            found.setdefault(one.application, {})[one.protocol, one.port] = None
        return {name: list(ways) for name, ways in found.items()}

    def check(self, network: Network) -> None:
        """Raise `BadPolicy` when `network` lacks a client or server, or one of them has no IPv4 address."""
        hosts = {host.name: host for host in network.hosts}
        for one in self.demands:
            for role, name in (("client", one.client), ("server", one.server)):
                if name not in hosts:
                    raise BadPolicy(
                        f"the {role} {name} of the demand for {one.application} is no host of the network",
                        did_you_mean(name, hosts),
                    )
                if hosts[name].ip is None:
                    raise BadPolicy(
                        f"the {role} {name} has no IPv4 address", "give it one, or leave it out of the load"
                    )


def spread_evenly(clients: Iterable[Host | str], servers: Iterable[Host | str]) -> list[tuple[str, str]]:
    """Return client and server of each pair when `clients` take turns over `servers`, so that no server has two
    clients more than another.

    Raises
    ------
    BadPolicy
        When there are clients but no servers.

    Examples
    --------
    >>> spread_evenly(["h1", "h2", "h3"], ["v1", "v2"])
    [('h1', 'v1'), ('h2', 'v2'), ('h3', 'v1')]
    """
    asking, asked = [_name(one) for one in clients], [_name(one) for one in servers]
    if asking and not asked:
        raise BadPolicy(f"{len(asking)} clients, {asking[0]} first, have no server to ask", "name at least one server")
    return [(client, asked[place % len(asked)]) for place, client in enumerate(asking)]


def _name(host: Host | str) -> str:
    return host.name if isinstance(host, Host) else host
