"""The kinds of traffic by the names that people write: in study files, and to ``twinnet send``."""

from __future__ import annotations

from collections.abc import Mapping

from twinnet.traffic.application import Own
from twinnet.traffic.bandwidth import Bandwidth
from twinnet.traffic.http import HttpGet
from twinnet.traffic.own_tcp import OwnTcp
from twinnet.traffic.ping import Ping
from twinnet.traffic.rtp import Rtp, RtpSource
from twinnet.traffic.tcp import TcpBulk, TcpSource
from twinnet.traffic.udp import Udp, UdpSource, Voice
from twinnet.traffic.video import Video

__all__ = ["FLOWS", "SOURCES", "FlowKind", "SourceKind"]

FlowKind = (
    type[Udp]
    | type[TcpBulk]
    | type[HttpGet]
    | type[Ping]
    | type[Rtp]
    | type[Voice]
    | type[Video]
    | type[Bandwidth]
    | type[Own]
    | type[OwnTcp]
)
SourceKind = type[UdpSource] | type[TcpSource] | type[RtpSource] | type[Ping]

FLOWS: Mapping[str, FlowKind] = {
    "udp": Udp,
    "tcp": TcpBulk,
    "http": HttpGet,
    "ping": Ping,
    "rtp": Rtp,
    "voice": Voice,
    "video": Video,
    "bandwidth": Bandwidth,
    "own": Own,
    "own_tcp": OwnTcp,
}
"""The kinds of traffic that a study can have, by the name in the entry's `app`."""
SOURCES: Mapping[str, SourceKind] = {
    "udp": UdpSource,
    "tcp": TcpSource,
    "rtp": RtpSource,
    "icmp": Ping,
}
"""The kinds of source that ``twinnet send`` offers, by protocol."""
