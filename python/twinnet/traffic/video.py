"""Video in segments over HTTP, as DASH and HLS do."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, cast

from twinnet.errors import BadValue, did_you_mean
from twinnet.settings import Quantity, Setting, duration, rate
from twinnet.traffic.app import App, Flow
from twinnet.traffic.http import HttpServer
from twinnet.traffic.traffic_settings import CongestionControl, CountingInterval, FlowNumber, Port, TrafficSettings
from twinnet.units import BitsPerSecond, Duration, Rate

__all__ = ["VIDEO_LADDER", "Video"]

VIDEO_LADDER: Mapping[str, str] = {
    "240p": "235 kbit",
    "360p": "560 kbit",
    "480p": "1050 kbit",
    "720p": "2350 kbit",
    "1080p": "4300 kbit",
}
"""Rates of resolutions: those of Netflix' fixed ladder (A. Aaron and others, Per-Title Encode Optimization, 2015), the
lower one where it has two; 240p is its 320x240, 360p its 512x384, 480p its 640x480."""
_MOST_RATES = 32
_SECOND_PS = 10**12


@dataclass(frozen=True)
class Ladder(Setting):
    """Rates, each above the one before."""

    each: Quantity = field(default=rate(8_000, 10**10))

    def read(self, value: object, what: str) -> list[int]:
        """Return the rates in bits per second."""
        return [int(one) for one in self.kept(value, what)]

    def kept(self, value: object, what: str) -> tuple[BitsPerSecond, ...]:
        """Return the rates as typed numbers."""
        listed = cast("Sequence[object]", value if isinstance(value, Sequence) and not isinstance(value, str) else ())
        found = tuple(BitsPerSecond(self.each.read(one, "rate")) for one in listed)
        if not 1 <= len(found) <= _MOST_RATES or any(low >= high for low, high in itertools.pairwise(found)):
            raise self.error(
                "the rates of a video's ladder do not rise",
                f"give 1 to {_MOST_RATES}, each above the one before",
            )
        return found

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a list of rates."""
        return {"type": "array", "minItems": 1, "maxItems": _MOST_RATES, "items": self.each.json_schema()}


SegmentTime = Annotated[Duration, duration(_SECOND_PS // 10, 60 * _SECOND_PS)]
BufferTime = Annotated[Duration, duration(1, 3600 * _SECOND_PS)]
SessionTime = Annotated[Duration, duration(1, 100_000 * _SECOND_PS)]


@dataclass(frozen=True)
class Video(TrafficSettings, Flow):
    """A session of video in segments that host `client` watches from host `server`.

    Parameters
    ----------
    client, server
        Names of hosts.
    resolutions
        The available resolutions, names of :data:`VIDEO_LADDER`; default: 360p, 480p and 720p. The viewer takes the
        best one that it expects to receive in time.
    rates
        Instead of `resolutions`: the rates of the ladder, in rising order.
    duration
        How long the session lasts.
    segment
        The length of a segment, 0.1 s to 60 s.
    buffer
        The most media that is buffered: two segments or more.
    needed
        How much media must be buffered before playing begins, or continues after a stall.
    port, interval, flow, congestion_control
        As for :class:`~twinnet.traffic.http.HttpGet`.
    """

    client: str
    server: str
    receiver: App = field(init=False, repr=False)
    sender: App = field(init=False, repr=False)
    resolutions: Sequence[str] = field(default=("360p", "480p", "720p"), kw_only=True)
    rates: Annotated[Sequence[Rate], Ladder(called="ladder_bps")] | None = field(default=None, kw_only=True)
    duration: SessionTime = field(kw_only=True)
    segment: SegmentTime = field(default="2 s", kw_only=True)
    buffer: BufferTime = field(default="30 s", kw_only=True)
    needed: BufferTime = field(default="2 s", kw_only=True)
    port: Port = field(default=8081, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)

    in_words: ClassVar[str] = "video in segments over HTTP/1.1"
    protocol: ClassVar[str] = "http"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "tcp"
    application: ClassVar[str | None] = "video"
    asked_for: ClassVar[bool] = True
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port", "duration", "rates")
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "interval"})
    only_apps: ClassVar[frozenset[str]] = frozenset({"segment", "buffer", "needed"})
    other_names: ClassVar[Mapping[str, str]] = {"ladder": "rates"}

    def __post_init__(self) -> None:
        if self.rates is None:
            unknown = next((one for one in self.resolutions if one not in VIDEO_LADDER), None)
            if unknown is not None:
                raise BadValue(f"the resolution {unknown!r} is not known", did_you_mean(str(unknown), VIDEO_LADDER))
            self._keep("rates", tuple(VIDEO_LADDER[one] for one in self.resolutions))
        super().__post_init__()
        found = self.given()
        found.pop("congestion_control", None)
        server = HttpServer(self.server, port=self.port, congestion_control=self.congestion_control)
        self._keep("receiver", server)
        self._keep("sender", App(self.client, "video_client", {"to": self.server, "flow": None} | found))

    def check(self) -> None:
        """Refuse a buffer that does not hold what it must."""
        segment, buffer, needed = (cast("int", one) for one in (self.segment, self.buffer, self.needed))
        if buffer < 2 * segment:
            raise BadValue("the buffer holds less than two segments", "give a longer buffer or shorter segments")
        if needed > buffer:
            raise BadValue("what is needed to play is more than the buffer holds", "lower needed or raise buffer")
