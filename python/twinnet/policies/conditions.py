"""The matches of a policy as conditions on numbers: what flow rules say, and whether two of them overlap."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.policies.match import IP_VERSIONS, IpVersion, Match
from twinnet.policies.prefixes import Prefix, fewest_prefixes

__all__ = ["ADDRESS_BITS", "Condition", "HostAddresses", "by_precedence", "first_overlap", "kind_word"]

_MOST_CONDITIONS = 100_000
_EVERY: Prefix = (0, 0)
ADDRESS_BITS: Mapping[IpVersion, int] = {4: 32, 6: 128}
"""Bits of an address, by version of IP."""
_WORDS: Mapping[IpVersion, Mapping[str | None, str]] = {
    4: {None: "ip", "tcp": "tcp", "udp": "udp", "icmp": "icmp"},
    6: {None: "ipv6", "tcp": "tcp6", "udp": "udp6", "icmp": "icmp6"},
}
_ADDRESS_KEYS: Mapping[IpVersion, tuple[str, str]] = {4: ("nw_src", "nw_dst"), 6: ("ipv6_src", "ipv6_dst")}


@dataclass(frozen=True, slots=True)
class Condition:
    """One flow rule's condition; ``None`` and a prefix of length 0 are no condition."""

    protocol: str | None
    source: Prefix
    destination: Prefix
    source_port: int | None
    destination_port: int | None
    dscp: int | None
    version: IpVersion = 4

    def text(self) -> str:
        """Return it in ``ovs-ofctl`` syntax."""
        words = [kind_word(self.version, self.protocol)]
        for key, prefix in zip(_ADDRESS_KEYS[self.version], (self.source, self.destination), strict=True):
            if prefix[1]:
                words.append(f"{key}={_prefix_text(prefix, self.version)}")
        if self.dscp is not None:
            words.append(f"ip_dscp={self.dscp}")
        for key, port in (("tp_src", self.source_port), ("tp_dst", self.destination_port)):
            if port is not None:
                words.append(f"{key}={port}")
        return ",".join(words)

    def meets(self, other: Condition) -> bool:
        """Return whether some packet has this condition and the other."""
        if self.version != other.version:
            return False
        plain = (
            (self.protocol, other.protocol),
            (self.source_port, other.source_port),
            (self.destination_port, other.destination_port),
            (self.dscp, other.dscp),
        )
        if any(a is not None and b is not None and a != b for a, b in plain):
            return False
        bits = ADDRESS_BITS[self.version]
        return all(_meet(a, b, bits) for a, b in ((self.source, other.source), (self.destination, other.destination)))


def kind_word(version: IpVersion, protocol: str | None) -> str:
    """Return the word that stands for a protocol of an IP version in ``ovs-ofctl`` syntax: ``tcp6``."""
    return _WORDS[version][protocol]


def _meet(a: Prefix, b: Prefix, bits: int) -> bool:
    free = bits - min(a[1], b[1])
    return a[0] >> free == b[0] >> free


def _prefix_text(prefix: Prefix, version: IpVersion) -> str:
    address = ipaddress.IPv4Address(prefix[0]) if version == 4 else ipaddress.IPv6Address(prefix[0])
    return str(address) if prefix[1] == ADDRESS_BITS[version] else f"{address}/{prefix[1]}"


class HostAddresses:
    """The IP addresses of the hosts of `network`, by version, as numbers."""

    def __init__(self, network: Network) -> None:
        self._of_host: dict[IpVersion, dict[str, list[int]]] = {4: {}, 6: {}}
        for host in network.hosts:
            texts = [*host.addresses, *(address for port in host.ports for address in port.addresses)]
            found = [ipaddress.ip_address(text.split("/")[0]) for text in texts]
            for version, hosts in self._of_host.items():
                hosts[host.name] = sorted({int(one) for one in found if one.version == version})
        self._known: dict[IpVersion, list[int]] = {
            version: sorted({number for numbers in hosts.values() for number in numbers})
            for version, hosts in self._of_host.items()
        }

    def __contains__(self, name: str) -> bool:
        """Return whether `name` is a host of the network."""
        return name in self._of_host[4]

    def prefixes(self, group: Sequence[str] | None, where: str, version: IpVersion = 4) -> list[Prefix]:
        """Return the fewest prefixes that stand for a group of names, addresses and prefixes; of ``None`` the one that
        covers all. Raises `BadPolicy`, which names `where` the group stands."""
        return self._prefixes(group, where, version, strict=True)

    def _prefixes(self, group: Sequence[str] | None, where: str, version: IpVersion, strict: bool) -> list[Prefix]:
        if group is None:
            return [_EVERY]
        of_host = self._of_host[version]
        members: set[int] = set()
        given: list[Prefix] = []
        for one in group:
            if one in of_host:
                if strict and not of_host[one]:
                    raise BadPolicy(
                        f"{where}: the host {one} has no IPv{version} address", "give it one, or leave it out"
                    )
                members.update(of_host[one])
                continue
            network = self._literal(one, where)
            if network.version == version:
                given.append((int(network.network_address), network.prefixlen))
            elif strict:
                raise BadPolicy(
                    f"{where}: {one} is of IPv{network.version}, and the match is of IPv{version}",
                    "leave its version out, or give it a match of its own",
                )
        found = fewest_prefixes(sorted(members), self._known[version], ADDRESS_BITS[version])
        return sorted({*found, *given})

    def _literal(self, one: str, where: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        try:
            return ipaddress.ip_network(one)
        except ValueError:
            raise BadPolicy(
                f"{where}: {one!r} is neither a host of the network nor an address or prefix",
                did_you_mean(one, self._of_host[4]),
            ) from None

    def _versions(self, match: Match, where: str, usual: Sequence[IpVersion]) -> Sequence[IpVersion]:
        """The versions of IP that `match` is of."""
        if match.version is not None:
            return (match.version,)
        words = [*(match.source or ()), *(match.destination or ())]
        literal = {self._literal(one, where).version for one in words if one not in self}
        return [version for version in IP_VERSIONS if version in (literal or usual)]

    def conditions(self, match: Match, where: str, versions: Sequence[IpVersion] = (4,)) -> list[Condition]:
        """Return the conditions that together are `match`; without addresses and a version of its own it is of
        `versions`. Hosts without an address of one of two versions are left out there."""
        wanted = self._versions(match, where, versions)
        found = [one for version in wanted for one in self._of_version(match, where, version, len(wanted) == 1)]
        if not found:
            raise BadPolicy(
                f"{where}: the sources and destinations of a match have no IP version in common",
                "give the hosts addresses of one version, or leave the match away",
            )
        return found

    def _of_version(self, match: Match, where: str, version: IpVersion, strict: bool) -> list[Condition]:
        sources = self._prefixes(match.source, where, version, strict)
        destinations = self._prefixes(match.destination, where, version, strict)
        if len(sources) * len(destinations) > _MOST_CONDITIONS:
            raise BadPolicy(
                f"{where}: {len(sources)} prefixes of sources and {len(destinations)} of destinations make too many "
                "rules",
                "number the hosts of a group one after the other, so that few prefixes cover them",
            )
        ports = (match.source_port, match.destination_port)
        return [
            Condition(match.protocol, source, destination, *ports, match.dscp, version)
            for source in sources
            for destination in destinations
        ]


_Shape = tuple[IpVersion, bool, int, int, bool, bool, bool]


def _shape(one: Condition) -> _Shape:
    ports = (one.source_port is not None, one.destination_port is not None)
    return (one.version, one.protocol is not None, one.source[1], one.destination[1], *ports, one.dscp is not None)


def first_overlap(named: Iterable[tuple[str, Condition]]) -> tuple[str, str, Condition] | None:
    """Return two names whose conditions some packet meets both, and the condition of the second; ``None`` when there
    are none. Conditions of one name may overlap.

    Conditions are kept by their shape: which fields they have and how long their prefixes are. Two overlap exactly when
    they agree in all that both shapes have, so that two shapes need one look-up for each condition and not one for each
    pair (tuple space search, Srinivasan, Suri and Varghese 1999).
    """
    shapes: dict[_Shape, list[tuple[str, Condition]]] = {}
    for name, one in named:
        shapes.setdefault(_shape(one), []).append((name, one))
    for a, b in combinations_with_replacement(shapes, 2):
        if a[0] != b[0]:
            continue
        fewest = (min(a[2], b[2]), min(a[3], b[3]))
        both = (a[0], a[1] and b[1], *fewest, a[4] and b[4], a[5] and b[5], a[6] and b[6])
        seen: dict[tuple[object, ...], list[str]] = {}
        for name, one in shapes[a]:
            names = seen.setdefault(_cut(one, both), [])
            # Two different names of one place are enough to find any overlap with a third.
            if name not in names and len(names) < 2:
                names.append(name)
        for name, one in shapes[b]:
            other = next((known for known in seen.get(_cut(one, both), ()) if known != name), None)
            if other is not None:
                return other, name, one
    return None


def _cut(one: Condition, shape: _Shape) -> tuple[object, ...]:
    bits = ADDRESS_BITS[shape[0]]
    return (
        one.protocol if shape[1] else None,
        one.source[0] >> (bits - shape[2]),
        one.destination[0] >> (bits - shape[3]),
        one.source_port if shape[4] else None,
        one.destination_port if shape[5] else None,
        one.dscp if shape[6] else None,
    )


def by_precedence(
    classes: Mapping[str, tuple[int, Sequence[Condition]]],
) -> Iterator[tuple[int, list[tuple[str, Condition]]]]:
    """The conditions of each precedence, with the names of their classes."""
    found: dict[int, list[tuple[str, Condition]]] = {}
    for name, (precedence, conditions) in classes.items():
        found.setdefault(precedence, []).extend((name, one) for one in conditions)
    yield from sorted(found.items())
