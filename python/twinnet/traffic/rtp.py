"""Video over RTP: a transport stream (payload type 33) in payloads of 1316 bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from twinnet.errors import BadValue
from twinnet.settings import Number, Whole, duration, rate
from twinnet.traffic.app import App
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import (
    Dscp,
    FlowNumber,
    FrameSizes,
    Port,
    RunTime,
    Switch,
    TrafficSettings,
)
from twinnet.traffic.udp import CountedPackets
from twinnet.units import BitsPerSecond, Duration, Picoseconds, Rate

__all__ = ["USUAL_RATE", "Rtp", "RtpSink", "RtpSource", "VideoStream"]

USUAL_RATE = BitsPerSecond(1_026_000)
"""The mean rate of the video of the multimedia studies."""
_USUAL_DURATION = Picoseconds(50 * 10**12)
_MODEL = ("rate", "group_frames", "b_frames", "variation")


VideoRate = Annotated[Rate, rate(1000, 10**11)]
"""The mean rate of coded video."""
ShapingWindow = Annotated[Duration, duration(10**9, 10**13, or_zero=True)]
"""Windows over which a stream is spread: 1 ms to 10 s; 0 s for none."""


@dataclass(frozen=True, kw_only=True)
class VideoStream(TrafficSettings):
    """A stream of video. The defaults are those of the multimedia studies: 50 s, 1026 kbit/s, 60 frames a second.

    Parameters
    ----------
    port
        The destination port.
    flow
        The flow's number in reports; default: chosen by the lab.
    rate
        Mean rate of the coded video, before the transport stream; default: 1026 kbit/s.
    frames_per_second
        The frame rate.
    group_frames, b_frames, variation
        The coder's model: frames from one I frame to the next (60), B frames between two others (2), and the deviation
        of a frame's size over the mean of its type (0.3).
    frame_sizes
        Instead of the model: the size of each frame, or the path of a file with one on each line; repeated.
    paced
        Whether the packets of a frame are spread over its interval; back to back otherwise.
    shaping
        Instead of that: windows, such as ``"200 ms"``, over which the stream is spread evenly, as VLC's multiplexer
        does.
    dscp
        Differentiated services code point, 0 to 63.
    duration, frames
        When it ends: give one of the two; default: 50 s.
    """

    port: Port = 5004
    flow: FlowNumber | None = None
    rate: VideoRate | None = None
    frames_per_second: Annotated[float, Number(BadValue, 0.001, 1e5)] = 60.0
    group_frames: Annotated[int, Whole(BadValue, 1, 10_000)] | None = None
    b_frames: Annotated[int, Whole(BadValue, 0, 16)] | None = None
    variation: Annotated[float, Number(BadValue, 0.0, 10.0)] | None = None
    frame_sizes: FrameSizes | None = None
    paced: Switch = False
    shaping: ShapingWindow | None = None
    dscp: Dscp | None = None
    duration: RunTime | None = None
    frames: Annotated[int, Whole(BadValue, 1, (1 << 32) - 1)] | None = None

    in_words: ClassVar[str] = "video over RTP"
    protocol: ClassVar[str] = "rtp"
    application: ClassVar[str | None] = "video"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port", "duration")
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "frames", "interval", "path_mtu", "clock_hz"})
    only_apps: ClassVar[frozenset[str] | None] = frozenset()

    def check(self) -> None:
        """Refuse what excludes each other."""
        if self.duration is not None and self.frames is not None:
            raise BadValue("an RTP source has a duration or a number of frames, not both", 'give duration="50 s"')
        if self.paced and self.shaping:
            raise BadValue("a stream is paced or shaped, not both", "leave paced or shaping out")
        if self.frame_sizes is not None:
            self._refuse_the_model()

    def _refuse_the_model(self) -> None:
        beside = [name for name in _MODEL if getattr(self, name) is not None]
        if beside:
            names = ", ".join(repr(name) for name in beside)
            raise BadValue("'frame_sizes' take the model's place", f"leave {names} out")

    def source_fields(self) -> dict[str, Any]:
        """Return the fields of an ``rtp_source`` besides ``to``."""
        found: dict[str, Any] = {"flow": None} | self.given(VideoStream)
        model = {
            "rate_bps": found.pop("rate_bps", int(USUAL_RATE)),
            "group_frames": found.pop("group_frames", 60),
            "b_frames": found.pop("b_frames", 2),
            "variation": found.pop("variation", 0.3),
        }
        sizes: list[int] | None = found.pop("frame_sizes", None)
        if not self.shaping:
            found.pop("shaping_ps", None)
        if self.duration is None and self.frames is None:
            found["duration_ps"] = int(_USUAL_DURATION)
        return found | ({"model": model} if sizes is None else {"frame_bytes": sizes})


@dataclass(frozen=True)
class RtpSource(VideoStream, SourceSettings):
    """A source of video in `host`, to the host or address `to`; the settings are those of `VideoStream`."""

    app_kind: ClassVar[str] = "rtp_source"


ClockRate = Annotated[int, Whole(BadValue, 1000, 10_000_000)]
"""The clock of an RTP payload in Hz; video has 90 kHz."""


@dataclass(frozen=True)
class RtpSink(CountedPackets, AppSettings):
    """A receiver of RTP in `host`, from twinnet's sources and from others; `clock_hz` is the payload's clock
    (default: 90 kHz)."""

    app_kind: ClassVar[str] = "rtp_sink"

    port: Port = field(default=5004, kw_only=True)
    clock_hz: ClockRate | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Rtp(CountedPackets, VideoStream, FlowSettings):
    """A stream of video over RTP from host `source` to host `sink`; the settings are those of `VideoStream` and of
    what the receiver counts."""

    source: str
    sink: str

    def made_receiver(self) -> App:
        """Return the sink."""
        return RtpSink(self.sink, port=self.port, **self.counted())

    def made_sender(self) -> App:
        """Return the source."""
        return App(self.source, RtpSource.app_kind, {"to": self.sink} | self.source_fields())
