"""Matches of applications: both directions of what clients ask servers for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twinnet.errors import BadPolicy
from twinnet.policies.load import Load
from twinnet.policies.match import Match, Protocol
from twinnet.policies.traffic_class import TrafficClass

__all__ = ["KNOWN_PORTS", "application_and_rest", "application_matches", "both_ways"]

KNOWN_PORTS: Mapping[str, Sequence[tuple[Protocol, int | None]]] = {
    "http": (("tcp", 80), ("tcp", 8080)),
    "video": (("udp", 5004), ("tcp", 1935), ("tcp", 8081)),
    "ping": (("icmp", None),),
}
"""The protocols and ports of applications that the load does not give: HTTP (RFC 9110; 8080 is this package's
server), RTP (RFC 3551) and RTMP, this package's video server, and ICMP."""


def both_ways(ways: Iterable[tuple[Protocol, int | None]], dscp: int | None = None) -> list[Match]:
    """Return what is sent to servers at these ports, and what they answer."""
    found: list[Match] = []
    for protocol, port in ways:
        if port is None:
            found.append(Match(protocol, dscp=dscp))
            continue
        found.append(Match(protocol, source_port=port, dscp=dscp))
        found.append(Match(protocol, destination_port=port, dscp=dscp))
    return found


def application_matches(load: Load, application: str, dscp: int | None = None) -> list[Match]:
    """Return what belongs to `application`: by the ports of the load's demands for it, or else by known ports; none
    when there are neither."""
    ways = load.applications.get(application) or KNOWN_PORTS.get(application, ())
    return both_ways(ways, dscp)


def application_and_rest(load: Load, application: str) -> list[TrafficClass]:
    """Return two classes: `application`, with half of the port and served first, and all else.

    Raises
    ------
    BadPolicy
        The load has nothing of the application.
    """
    matches = application_matches(load, application)
    if not matches:
        raise BadPolicy(f"the load has no demand for {application!r}", "name an application that it has")
    return [
        TrafficClass(application, matches, minimum=0.5, priority=0),
        TrafficClass("rest", minimum=0.1, priority=1),
    ]
