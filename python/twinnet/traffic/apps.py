"""Traffic: the apps that a lab runs in its hosts.

Each makes an :class:`App`, or a :class:`Flow` that has a sending and a receiving app. ``lab.start`` starts them;
nothing happens before. Each kind of traffic is one class, in a file of its own, which says what its settings mean.
"""

from __future__ import annotations

from twinnet.traffic.app import App, Flow
from twinnet.traffic.application import Own
from twinnet.traffic.http import HttpGet, HttpServer
from twinnet.traffic.own_tcp import OwnTcp
from twinnet.traffic.ping import Ping
from twinnet.traffic.rtp import Rtp, RtpSink, RtpSource
from twinnet.traffic.tcp import Tcp, TcpBulk, TcpSink, TcpSource
from twinnet.traffic.udp import Preset, Udp, UdpSink, UdpSource, Voice
from twinnet.traffic.video import VIDEO_LADDER, Video

__all__ = [
    "VIDEO_LADDER",
    "App",
    "Flow",
    "http_get",
    "http_server",
    "own",
    "own_tcp",
    "ping",
    "preset",
    "rtp",
    "rtp_sink",
    "rtp_source",
    "tcp",
    "tcp_bulk",
    "tcp_sink",
    "tcp_source",
    "udp",
    "udp_sink",
    "udp_source",
    "video",
    "voice",
]

udp = Udp
udp_source = UdpSource
udp_sink = UdpSink
voice = Voice
preset = Preset
tcp = Tcp
tcp_bulk = TcpBulk
tcp_source = TcpSource
tcp_sink = TcpSink
rtp = Rtp
rtp_source = RtpSource
rtp_sink = RtpSink
http_get = HttpGet
http_server = HttpServer
video = Video
ping = Ping
own = Own
own_tcp = OwnTcp
