"""Strict priority between applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.errors import BadPolicy
from twinnet.network.network import Network
from twinnet.policies import schedulers
from twinnet.policies.applications import application_matches
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos.queue import Queue

__all__ = ["StrictPriority"]


class StrictPriority(Policy):
    """Applications in their order: a frame is sent only when none of an earlier one waits; the rest comes last.

    Parameters
    ----------
    order
        The applications, first the one that is always served first.
    """

    name = "strict-priority"
    title = "Strict priority: round trips, video, HTTP, the rest"
    promise = "The first application waits for one frame of another at most; later ones have what it leaves."
    origin = "Classic; RFC 1046 (1988) and every switch since"
    fails = "When an earlier application can fill the port: later ones starve."
    rest_first = False

    def __init__(self, order: Sequence[str] = ("ping", "video", "http")) -> None:
        if isinstance(order, str) or not order or len(set(order)) < len(order):
            raise BadPolicy(f"the order is {order!r}", "name each application once, as a list")
        self._order = tuple(order)
        self.address_resolution: str | None = self._order[0]

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the applications that have a port, in order."""
        del network
        named = [(name, application_matches(load, name)) for name in self._order]
        last = len(named)
        return [TrafficClass(name, matches, precedence=last - n) for n, (name, matches) in enumerate(named) if matches]

    def queue(self, rate_bps: int, classes: Mapping[int, TrafficClass]) -> Queue:
        """Return a band for each class, under a shaper."""
        return schedulers.strict_priority(rate_bps, classes)
