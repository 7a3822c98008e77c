"""Networks and loads that the tests of policies share."""

from __future__ import annotations

from twinnet.network import Network, templates
from twinnet.policies import Demand, Load, Policy, TrafficClass, spread_evenly

__all__ = ["WAYS", "Classes", "small_load", "small_tree"]

WAYS = (("http", "tcp", 8080), ("video", "udp", 5004), ("ping", "icmp", None))


def small_tree(rate: str = "100 Mbit") -> Network:
    """s1 above s2, s3 and s4, with three hosts each: servers h1 and h2, clients h4 to h9."""
    return templates.tree(2, 3, rate=rate)


def small_load() -> Load:
    """Every client asks its server for HTTP, video and echoes."""
    pairs = spread_evenly([f"h{n}" for n in range(4, 10)], ["h1", "h2"])
    return Load(tuple(Demand(c, s, name, protocol, port) for c, s in pairs for name, protocol, port in WAYS))  # type: ignore[arg-type]


class Classes(Policy):
    """A policy of given classes."""

    name = "given"

    def __init__(self, *classes: TrafficClass) -> None:
        self._classes = classes

    def classes(self, network: Network, load: Load) -> tuple[TrafficClass, ...]:
        return self._classes
