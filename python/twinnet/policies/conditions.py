"""The matches of a policy as conditions on numbers: what flow rules say, and whether two of them overlap."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.policies.match import Match
from twinnet.policies.prefixes import Prefix, fewest_prefixes

__all__ = ["Condition", "HostAddresses", "first_overlap"]

_MOST_CONDITIONS = 100_000
_EVERY: Prefix = (0, 0)


@dataclass(frozen=True, slots=True)
class Condition:
    """One flow rule's condition; ``None`` and a prefix of length 0 are no condition."""

    protocol: str | None
    source: Prefix
    destination: Prefix
    source_port: int | None
    destination_port: int | None
    dscp: int | None

    def text(self) -> str:
        """Return it in ``ovs-ofctl`` syntax."""
        words = [self.protocol or "ip"]
        for key, prefix in (("nw_src", self.source), ("nw_dst", self.destination)):
            if prefix[1]:
                words.append(f"{key}={_prefix_text(prefix)}")
        if self.dscp is not None:
            words.append(f"ip_dscp={self.dscp}")
        for key, port in (("tp_src", self.source_port), ("tp_dst", self.destination_port)):
            if port is not None:
                words.append(f"{key}={port}")
        return ",".join(words)


def _prefix_text(prefix: Prefix) -> str:
    address = str(ipaddress.IPv4Address(prefix[0]))
    return address if prefix[1] == 32 else f"{address}/{prefix[1]}"


class HostAddresses:
    """The IPv4 addresses of the hosts of `network`."""

    def __init__(self, network: Network) -> None:
        self.of_host: dict[str, list[int]] = {}
        for host in network.hosts:
            texts = [*host.addresses, *(address for port in host.ports for address in port.addresses)]
            numbers = {int(ipaddress.IPv4Address(text.split("/")[0])) for text in texts if ":" not in text}
            self.of_host[host.name] = sorted(numbers)
        self.known: list[int] = sorted({number for numbers in self.of_host.values() for number in numbers})

    def prefixes(self, group: Sequence[str] | None, where: str) -> list[Prefix]:
        """Return the fewest prefixes that stand for a group of names, addresses and prefixes; of ``None`` the one that
        covers all. Raises `BadPolicy`, which names `where` the group stands."""
        if group is None:
            return [_EVERY]
        members: set[int] = set()
        given: list[Prefix] = []
        for one in group:
            if one in self.of_host:
                if not self.of_host[one]:
                    raise BadPolicy(f"{where}: the host {one} has no IPv4 address", "give it one, or leave it out")
                members.update(self.of_host[one])
                continue
            try:
                network = ipaddress.IPv4Network(one)
            except ValueError:
                raise BadPolicy(
                    f"{where}: {one!r} is neither a host of the network nor an IPv4 address or prefix",
                    did_you_mean(one, self.of_host),
                ) from None
            given.append((int(network.network_address), network.prefixlen))
        found = fewest_prefixes(sorted(members), self.known, 32)
        return sorted({*found, *given})

    def conditions(self, match: Match, where: str) -> list[Condition]:
        """Return the conditions that together are `match`."""
        sources = self.prefixes(match.source, where)
        destinations = self.prefixes(match.destination, where)
        if len(sources) * len(destinations) > _MOST_CONDITIONS:
            raise BadPolicy(
                f"{where}: {len(sources)} prefixes of sources and {len(destinations)} of destinations make too many "
                "rules",
                "number the hosts of a group one after the other, so that few prefixes cover them",
            )
        ports = (match.source_port, match.destination_port)
        return [
            Condition(match.protocol, source, destination, *ports, match.dscp)
            for source in sources
            for destination in destinations
        ]


_Shape = tuple[bool, int, int, bool, bool, bool]


def _shape(one: Condition) -> _Shape:
    ports = (one.source_port is not None, one.destination_port is not None)
    return (one.protocol is not None, one.source[1], one.destination[1], *ports, one.dscp is not None)


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
        both = (a[0] and b[0], min(a[1], b[1]), min(a[2], b[2]), a[3] and b[3], a[4] and b[4], a[5] and b[5])
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
    return (
        one.protocol if shape[0] else None,
        one.source[0] >> (32 - shape[1]),
        one.destination[0] >> (32 - shape[2]),
        one.source_port if shape[3] else None,
        one.destination_port if shape[4] else None,
        one.dscp if shape[5] else None,
    )


def by_precedence(
    classes: Mapping[str, tuple[int, Sequence[Condition]]],
) -> Iterator[tuple[int, list[tuple[str, Condition]]]]:
    """The conditions of each precedence, with the names of their classes."""
    found: dict[int, list[tuple[str, Condition]]] = {}
    for name, (precedence, conditions) in classes.items():
        found.setdefault(precedence, []).extend((name, one) for one in conditions)
    yield from sorted(found.items())
