"""Multimedia on the path with most spare capacity, the rest on the shortest, as OpenQoS proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.network.network import Network
from twinnet.policies.applications import application_and_rest
from twinnet.policies.forwarding import Routes
from twinnet.policies.line_loads import lines_of_others, rate_of
from twinnet.policies.load import Load
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass

__all__ = ["SpareCapacity"]


class SpareCapacity(Policy):
    """Routes one application by spare capacity; its packets also have half of the port, and are served first.

    Every other demand is put on its shortest path first; then each demand of the application, in the order of the load,
    takes the path whose narrowest line has most left, both ways alike. A demand without a rate counts as 1 Mbit/s.

    Parameters
    ----------
    application
        The application that is routed.
    """

    name = "openqos"
    title = "Video on the path with most spare capacity, the rest on the shortest"
    promise = "Video goes round busy lines as long as another path has more to spare."
    origin = "Egilmez, Dane, Bagci and Tekalp, OpenQoS, APSIPA 2012"
    fails = "When the load does not say what it needs, or changes: paths are chosen beforehand, by what is promised."

    def __init__(self, application: str = "video") -> None:
        self._application = application

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the application and the rest."""
        del network
        return application_and_rest(load, self._application)

    def routes(self, network: Network, load: Load) -> Mapping[str, Routes]:
        """Return the paths of the application's demands."""
        lines = lines_of_others(network, load.demands, self._application)
        found: dict[tuple[str, str], list[str]] = {}
        for one in load.demands:
            pair = (one.server, one.client)
            if one.application != self._application or pair in found:
                continue
            switches = lines.widest(*pair)
            lines.put(switches, rate_of(one))
            found[pair] = switches
            found[one.client, one.server] = switches[::-1]
        return {self._application: found} if found else {}
