"""The MTU of the paths that a study's traffic takes through its network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twinnet.study.specification import Traffic

__all__ = ["PathMtus"]

_DATAGRAMS = ("udp", "rtp", "voice", "own")


class PathMtus:
    """The MTUs of paths in a network.

    Parameters
    ----------
    links
        The network's links in the form of the lab protocol.
    """

    def __init__(self, links: Iterable[Mapping[str, Any]]) -> None:
        self._neighbours: dict[str, dict[str, int]] = {}
        for link in links:
            ends = (str(link["a"]["node"]), str(link["b"]["node"]))
            for here, there in (ends, ends[::-1]):
                known = self._neighbours.setdefault(here, {})
                known[there] = max(int(link["mtu"]), known.get(there, 0))

    def between(self, source: str, target: str) -> int | None:
        """The least MTU on the way with the fewest links, in bytes, and of several such ways that of the widest;
        `None` when there is no way."""
        reached, frontier = {source}, {source: 1 << 16}
        while frontier and target not in frontier:
            beyond: dict[str, int] = {}
            for node, mtu in frontier.items():
                for neighbour, link_mtu in self._neighbours.get(node, {}).items():
                    if neighbour not in reached:
                        beyond[neighbour] = max(beyond.get(neighbour, 0), min(mtu, link_mtu))
            reached |= set(beyond)
            frontier = beyond
        found = frontier.get(target)
        return None if found is None or source == target else found

    def to_receiver(self, traffic: Iterable[Traffic], target: str) -> set[int]:
        """The MTUs of all ways on which datagrams of `traffic` reach `target`; its receivers count by one."""
        ways = ((source, entry.to) for entry in traffic if entry.app in _DATAGRAMS for source in entry.sources)
        found = (self.between(source, to) for source, to in ways if to == target)
        return {mtu for mtu in found if mtu is not None}
