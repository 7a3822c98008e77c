"""Groups of hosts that policies treat alike: parts of a list, as even as can be."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies.load import Load

__all__ = ["Groups", "checked_groups", "clients_of", "even_parts", "servers_of"]

Groups = Mapping[str, Sequence[str]]
"""Names of hosts by the name of their group."""


def even_parts(hosts: Sequence[str], count: int, stem: str) -> dict[str, list[str]]:
    """Return `hosts` cut into `count` parts of neighbours, of which none has two hosts more than another.

    Neighbours have neighbouring addresses, so that few prefixes stand for a group.

    Raises
    ------
    BadPolicy
        When there are fewer hosts than parts.

    Examples
    --------
    >>> even_parts(["h1", "h2", "h3"], 2, "clients")
    {'clients-1': ['h1', 'h2'], 'clients-2': ['h3']}
    """
    if not 1 <= count <= len(hosts):
        raise BadPolicy(
            f"{len(hosts)} hosts cannot make {count} groups of {stem}: one would be empty", "ask for fewer groups"
        )
    size, more = divmod(len(hosts), count)
    parts: dict[str, list[str]] = {}
    begin = 0
    for place in range(count):
        end = begin + size + (place < more)
        parts[f"{stem}-{place + 1}"] = list(hosts[begin:end])
        begin = end
    return parts


def checked_groups(groups: Groups) -> Groups:
    """Return `groups`; raises `BadPolicy` for what is no groups, an empty group, or a host that is in two."""
    if not isinstance(groups, Mapping) or not all(_is_list(hosts) for hosts in groups.values()):
        raise BadPolicy(f"the groups are {groups!r}", "give names with lists of hosts: {web: [h1, h2], rest: [h3]}")
    owners: dict[str, str] = {}
    for name, hosts in groups.items():
        if not hosts:
            raise BadPolicy(f"the group {name} is empty", "name its hosts, or leave it out")
        for host in hosts:
            if owners.setdefault(host, name) != name:
                raise BadPolicy(
                    f"the host {host} is in the groups {owners[host]} and {name}", "leave it in one of them"
                )
    return groups


def _is_list(hosts: object) -> bool:
    return isinstance(hosts, (list, tuple)) and all(isinstance(host, str) for host in cast("Sequence[object]", hosts))


def clients_of(network: Network, load: Load) -> list[str]:
    """The clients of the load, in the order of the network; all hosts without servers when it is empty."""
    wanted = set(load.clients) or {host.name for host in network.hosts} - set(load.servers)
    return [host.name for host in network.hosts if host.name in wanted]


def servers_of(network: Network, load: Load) -> list[str]:
    """The servers of the load, in the order of the network; all hosts when it is empty."""
    wanted = set(load.servers) or {host.name for host in network.hosts}
    return [host.name for host in network.hosts if host.name in wanted]
