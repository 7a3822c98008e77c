"""The ways of a run's flows through its network, kept half-way through its traffic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.lab.following import Follower, Packet
from twinnet.study.traffic import Traffic

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["MOST_FLOWS", "kept_ways"]

MOST_FLOWS = 8
"""A way takes one to three kilobytes of the run's record."""
_PACKETS = {"icmp": "icmp", "udp": "udp", "rtp": "udp", "bandwidth": "udp"}
"""The packets of each protocol of a flow; all others are of TCP."""
_OWN_PORT = 49152
"""The port of the end that has no fixed one."""


def kept_ways(lab: Lab, traffic: Sequence[Traffic], zero_ps: int) -> list[dict[str, Any]]:
    """Return the ways of a packet of each flow, there and back, as :meth:`twinnet.Lab.follow` gives them now:
    ``words``, ``at_s`` (seconds after the start of the traffic, `zero_ps`) and ``way``. Of more than `MOST_FLOWS` flows
    the first have them. A flow with a DSCP of its own has none: packets that are followed have none."""
    flows = [
        (entry, source) for entry in traffic if entry.protocol in _PACKETS or entry.port for source in entry.sources
    ]
    found: list[dict[str, Any]] = []
    try:
        follower = Follower(lab)
    except TwinnetError:
        # The lab has just ended; what follows will say so.
        return found
    at_s = round((lab.now_ps() - zero_ps) / 1e12, 6)
    for entry, source in [(entry, source) for entry, source in flows if not entry.sends.get("dscp")][:MOST_FLOWS]:
        kind, port = _PACKETS.get(entry.protocol, "tcp"), entry.port or 0
        for ends, ports in (((source, entry.to), (_OWN_PORT, port)), ((entry.to, source), (port, _OWN_PORT))):
            try:
                way = follower.follow(*ends, Packet(kind, source_port=ports[0], port=ports[1]))
            except TwinnetError:
                # Its hosts have no addresses of one version, or the lab has just ended.
                continue
            found.append({"words": f"{entry.name}: {ends[0]} to {ends[1]}", "at_s": at_s, "way": way.as_dict()})
    return found
