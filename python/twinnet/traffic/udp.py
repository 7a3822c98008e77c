"""UDP: datagrams by a schedule, a distribution, a trace or as fast as possible; also voice and known applications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, cast

from twinnet.errors import BadValue
from twinnet.settings import OneOf, settings_of
from twinnet.traffic.app import App
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.presets import PRESETS, VOICE_CODECS, voice_settings
from twinnet.traffic.traffic_settings import (
    CountingInterval,
    CountOf,
    DatagramPayload,
    Dscp,
    FlowNumber,
    GapProcess,
    Gaps,
    OnOffPeriods,
    PacketRate,
    PathMtu,
    PayloadRate,
    Port,
    Recorded,
    RunTime,
    Sizes,
    Switch,
    TraceOfDatagrams,
    TrafficSettings,
)
from twinnet.units import Bytes

__all__ = ["Datagrams", "Preset", "Udp", "UdpSink", "UdpSource", "Voice"]

_USUAL_PAYLOAD = Bytes(1472)
_VOICE_PORT = 5006
_VOICE_DSCP = 46
"""Expedited forwarding (RFC 3246)."""
_PROTOCOL_LACKS = ("preset", "voice", "silence_suppression")
"""Settings that are short for others; the protocol has only those others."""


PresetName = Annotated[str, OneOf(BadValue, tuple(PRESETS))]
"""A known application."""
Codec = Annotated[str, OneOf(BadValue, tuple(VOICE_CODECS))]
"""A codec of voice."""


@dataclass(frozen=True, kw_only=True)
class Datagrams(TrafficSettings):
    """Datagrams as a source sends them.

    Parameters
    ----------
    port
        The destination port; default: 5003, for voice 5006.
    flow
        The flow's number in reports; default: chosen by the lab.
    rate, packets_per_second, gap
        How often: a rate of UDP payload; datagrams a second; or a distribution of gaps.
    payload, size
        The UDP payload of each datagram (default: 1472 B), or a distribution of payloads.
    process
        With a rate: ``constant`` gaps or ``poisson``.
    on_off
        Periods of talk and of silence; each period of talk begins with a datagram.
    trace
        Instead of all of these: a gap and a payload for each datagram, or the path of a file with lines such as
        ``2 ms, 1000 B``.
    repeat
        Whether the trace is repeated after its end.
    unpaced
        Instead of any schedule: as many datagrams as the host accepts.
    exact
        Whether each datagram leaves at its own moment on real sockets, too. If not, a source that is faster than
        5000 datagrams a second may collect them for up to 200 us and send them together, which costs far less.
    fragment
        Whether datagrams above the MTU may be fragmented; if not, they are refused.
    preset
        A known application: ``dns``, ``telnet``, ``game-client`` or ``game-server``. Other settings override it.
    voice
        One direction of a call, by its codec: ``G.711``, ``G.723.1`` or ``G.729``; marked with DSCP 46.
    silence_suppression
        With `voice`: talkspurts (ITU-T P.59) instead of packets all the time.
    dscp
        Differentiated services code point, 0 to 63.
    duration, packets
        When it ends: give one of the two; a trace that is not repeated ends by itself.
    """

    port: Port | None = None
    flow: FlowNumber | None = None
    rate: PayloadRate | None = None
    packets_per_second: PacketRate | None = None
    gap: Gaps | None = None
    payload: DatagramPayload | None = None
    size: Sizes | None = None
    process: GapProcess | None = None
    on_off: OnOffPeriods | None = None
    trace: TraceOfDatagrams | None = None
    repeat: Switch | None = None
    unpaced: Switch | None = None
    exact: Switch | None = None
    fragment: Switch | None = None
    preset: PresetName | None = None
    voice: Codec | None = None
    silence_suppression: Switch | None = None
    dscp: Dscp | None = None
    duration: RunTime | None = None
    packets: CountOf | None = None

    in_words: ClassVar[str] = "UDP datagrams"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port", "duration")
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset(
        {"flow", "packets", "voice", "silence_suppression", "interval", "path_mtu"}
    )
    only_apps: ClassVar[frozenset[str] | None] = frozenset(
        {"gap", "size", "on_off", "trace", "exact", "dscp", "packets_per_second", "preset", "unpaced", "fragment"}
    )

    @classmethod
    def in_study(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """By default a trace is repeated for the duration."""
        return settings | {"repeat": True} if settings.get("trace") and settings.get("repeat") is None else settings

    def complete(self) -> None:
        """Fill in what a preset stands for, and what goes without saying."""
        if self.preset is not None or self.voice is not None:
            self._be_a_known_application()
        if self.port is None:
            self._keep("port", 5003)
        if self.trace is None and self.size is None and self.payload is None:
            self._keep("payload", _USUAL_PAYLOAD)
        if self.process is None and (self.rate is not None or self.packets_per_second is not None):
            self._keep("process", "constant")

    def check(self) -> None:
        """Refuse what no source could send."""
        if self.silence_suppression and self.voice is None:
            raise BadValue("silence suppression is for voice", "give voice: G.711, or leave it out")
        if self.preset is not None and self.voice is not None:
            raise BadValue("a flow has a preset or voice, not both")
        if self.preset is not None or self.voice is not None:
            what = f"{'preset' if self.preset is not None else 'voice'} says when datagrams are sent"
            self.refuse(("rate", "packets_per_second", "process", "trace", "unpaced"), what)
        elif self.unpaced:
            schedule = ("rate", "packets_per_second", "gap", "process", "on_off", "trace", "exact")
            self.refuse(schedule, "an unpaced source has no schedule")
        elif self.trace is not None:
            ways = ("rate", "packets_per_second", "gap", "payload", "size", "process", "on_off")
            self.refuse(ways, "a trace has gaps and payloads of its own")
            if self.repeat and not any(gap for gap, _ in cast("Sequence[tuple[int, int]]", self.trace)):
                raise BadValue("a trace is sent over and over: one of its gaps must be above zero")
        elif [self.rate, self.packets_per_second, self.gap].count(None) != 2:
            raise BadValue(
                "a UDP source has either 'rate', 'gap' or 'trace', or 'packets_per_second', 'preset' or 'unpaced': one "
                "of them",
                'give for example rate="10 Mbit"',
            )
        if self.repeat is not None and self.trace is None:
            self.refuse(("repeat",), "'repeat' is for a trace")
        endless = self.trace is None or self.repeat
        if (endless or None not in (self.duration, self.packets)) and (self.duration is None) == (self.packets is None):
            raise BadValue("a UDP source has a duration or a number of packets, one of both", 'give duration="10 s"')
        self._one_size()
        if self.rate is not None and self.size is not None:
            raise BadValue("a rate needs one payload", "give packets_per_second or gap for sizes that vary")
        if self.gap is not None and self.process is not None:
            raise BadValue("a gap is a process itself", "leave process out")

    def _one_size(self) -> None:
        if self.size is not None and self.payload is not None:
            raise BadValue("a UDP source has a payload or a distribution of sizes, not both", "leave one out")

    def _be_a_known_application(self) -> None:
        """Fill in the settings that a preset or a codec stands for."""
        if self.voice is not None:
            known = voice_settings(self.voice, bool(self.silence_suppression))
            known |= {"port": _VOICE_PORT, "dscp": _VOICE_DSCP}
        else:
            known = dict(PRESETS[cast("str", self.preset)])
        for name, value in known.items():
            if getattr(self, name) is None:
                self._keep(name, settings_of(Datagrams)[name].kept(value, name))
        self._one_size()

    def source_fields(self) -> dict[str, Any]:
        """Return the fields of a ``udp_source`` besides ``to``."""
        found = self.given(Datagrams)
        for name in _PROTOCOL_LACKS:
            found.pop(name, None)
        # What is as it would be without the setting is left out; to a source, what is there has been asked for.
        usual = {"repeat": False, "unpaced": False, "exact": False, "fragment": True}
        return {"flow": None} | {name: value for name, value in found.items() if usual.get(name) is not value}


@dataclass(frozen=True)
class UdpSource(Datagrams, SourceSettings):
    """A source of UDP datagrams in `host`, to the host or address `to`; the settings are those of `Datagrams`."""

    app_kind: ClassVar[str] = "udp_source"


@dataclass(frozen=True, kw_only=True)
class CountedPackets(TrafficSettings):
    """Settings of a receiver that counts datagrams.

    Parameters
    ----------
    interval
        The interval of counting.
    record_packets
        How many packets of each flow are kept one by one.
    path_mtu
        The path's MTU in bytes; with it, the frames, network bytes and wire bytes of each packet are counted too.
    """

    interval: CountingInterval = "1 s"
    record_packets: Recorded | None = None
    path_mtu: PathMtu | None = None

    def counted(self) -> dict[str, Any]:
        """Return these settings, for the receiver of a flow that has them."""
        return {name: getattr(self, name) for name in settings_of(CountedPackets)}


@dataclass(frozen=True)
class UdpSink(CountedPackets, AppSettings):
    """A receiver of UDP datagrams in `host`."""

    app_kind: ClassVar[str] = "udp_sink"

    port: Port = field(default=5003, kw_only=True)


@dataclass(frozen=True)
class Udp(CountedPackets, Datagrams, FlowSettings):
    """A flow of UDP datagrams from host `source` to host `sink`; the settings are those of `Datagrams` and of
    `CountedPackets`.

    Examples
    --------
    >>> Udp("h1", "h4", rate="512 Mbit", duration="80 s").sender.kind
    'udp_source'
    """

    source: str
    sink: str

    def made_receiver(self) -> App:
        """Return the sink."""
        assert self.port is not None
        return UdpSink(self.sink, port=self.port, **self.counted())

    def made_sender(self) -> App:
        """Return the source."""
        return App(self.source, UdpSource.app_kind, {"to": self.sink} | self.source_fields())


@dataclass(frozen=True)
class Voice(Udp):
    """One direction of a call: packets of `codec` (``G.711``, ``G.723.1``, ``G.729``) with RTP's header.

    They are sent continuously or, with `silence_suppression`, in talkspurts (ITU-T P.59), marked with DSCP 46
    (RFC 3246).

    Parameters
    ----------
    codec
        ``G.711``, ``G.723.1`` or ``G.729``.
    """

    codec: Codec = "G.711"

    in_words: ClassVar[str] = "one direction of a call"
    application: ClassVar[str | None] = "voice"
    only_apps: ClassVar[frozenset[str] | None] = None
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset(
        {"flow", "packets", "voice", "interval", "path_mtu", "preset", "rate", "packets_per_second", "gap", "payload"}
        | {"size", "process", "on_off", "trace", "repeat", "unpaced", "exact", "fragment"}
    )

    def __post_init__(self) -> None:
        self._keep("voice", self.codec)
        super().__post_init__()


@dataclass(frozen=True)
class Preset(Udp):
    """The traffic of a known application: ``dns``, ``telnet``, ``game-client`` or ``game-server``. The sources are
    listed in :mod:`twinnet.traffic.presets`."""

    name: str

    def __post_init__(self) -> None:
        self._keep("preset", self.name)
        super().__post_init__()
