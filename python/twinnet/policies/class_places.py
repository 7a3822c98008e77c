"""The ports that each class can reach: a class whose sources and destinations are named uses only their paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.policies.conditions import HostAddresses
from twinnet.policies.paths import Paths
from twinnet.policies.traffic_class import TrafficClass

__all__ = ["ClassPlaces"]

_MOST_PAIRS = 4096


class ClassPlaces:
    """The switches and ports that the `classes`, by queue number, can pass.

    A class without names of hosts on one side of a match, with prefixes, or with very many pairs of switches counts as
    coming by everywhere: that costs rules and never a packet.
    """

    def __init__(self, paths: Paths, addresses: HostAddresses, classes: Mapping[int, TrafficClass]) -> None:
        self._everywhere: set[int] = set()
        self._at: dict[str, dict[int, set[int]]] = {}
        for number, one in classes.items():
            places = _places(paths, addresses, one)
            if places is None:
                self._everywhere.add(number)
                continue
            for switch, port in places:
                self._at.setdefault(switch, {}).setdefault(port, set()).add(number)

    def at_port(self, switch: str, port: int) -> frozenset[int]:
        """Return the numbers of the classes whose packets `switch` may send by `port`."""
        return frozenset(self._everywhere | self._at.get(switch, {}).get(port, set()))

    def at_switch(self, switch: str, ports: Sequence[int]) -> frozenset[int]:
        """Return the numbers of the classes whose packets `switch` may send by one of `ports`."""
        return frozenset[int]().union(*(self.at_port(switch, port) for port in ports))


def _places(paths: Paths, addresses: HostAddresses, one: TrafficClass) -> set[tuple[str, int]] | None:
    found: set[tuple[str, int]] = set()
    if one.is_rest:
        return None
    for match in one.matches:
        if match.source is None or match.destination is None:
            return None
        hosts = [*match.source, *match.destination]
        if any(host not in addresses or host not in paths.of_host for host in hosts):
            return None
        starts = {paths.of_host[host].switch: host for host in match.source}
        if len(starts) * len(match.destination) > _MOST_PAIRS:
            return None
        for source in starts.values():
            for target in match.destination:
                found.update(paths.hops(source, target))
    return found
