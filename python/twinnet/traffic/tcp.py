"""TCP: as fast as possible, or by a schedule of writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from twinnet.errors import BadValue
from twinnet.settings import size
from twinnet.traffic.app import App
from twinnet.traffic.distributions import Distribution
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import (
    CongestionControl,
    CountingInterval,
    CountOf,
    Dscp,
    FlowNumber,
    GapProcess,
    Gaps,
    OnOffPeriods,
    PacketRate,
    PayloadRate,
    Port,
    RunTime,
    Sizes,
    TrafficSettings,
)
from twinnet.units import Bytes, Size

__all__ = ["Tcp", "TcpBulk", "TcpSink", "TcpSource", "Writes"]

_USUAL_WRITE = Bytes(1448)
_LEAST_BYTES = 12
"""Bytes of the header that announces the stream to its receiver."""
_ABOUT_WRITES = ("writes", "payload", "process", "on_off")


WritePayload = Annotated[Size, size(16, 1 << 30)]
"""The bytes of a write."""
StreamBytes = Annotated[Size, size(_LEAST_BYTES, 10**15, called="bytes")]
"""The bytes of a stream, including the header that announces it."""


@dataclass(frozen=True, kw_only=True)
class Writes(TrafficSettings):
    """A TCP stream that sends as fast as it can or, by a schedule, a number of bytes at each deadline.

    Parameters
    ----------
    port
        The destination port.
    flow
        The flow's number in reports; default: chosen by the lab.
    rate, packets_per_second, gap
        How often: a rate of payload; writes a second; or a distribution of gaps. Without one of them the source sends
        as fast as it can. Deadlines count from the moment of the connection. Bytes that the connection does not
        accept wait; the report says if the source could not keep up.
    payload, size
        The bytes of each write (default: 1448 B), or a distribution of them. A `size` that is text, such
        as ``"1 GB"``, is that of the whole transfer, as `bytes` is.
    process
        With a rate: ``constant`` gaps or ``poisson``.
    on_off
        Periods of talk and of silence; each period of talk begins with a write.
    duration, bytes, writes
        When it ends: after a time, after a number of bytes, or by a schedule also after a number of writes.
    dscp
        Differentiated services code point of the source's segments, 0 to 63.
    interval
        The interval of counting.
    congestion_control
        Its name, such as ``"cubic"``; default: the host's own.
    info_interval
        If given, the report has the congestion window, threshold, round trip and retransmissions of the connection,
        sampled at this interval.
    """

    port: Port = 5002
    flow: FlowNumber | None = None
    rate: PayloadRate | None = None
    packets_per_second: PacketRate | None = None
    gap: Gaps | None = None
    payload: WritePayload | None = None
    size: Sizes | Size | None = None
    process: GapProcess | None = None
    on_off: OnOffPeriods | None = None
    duration: RunTime | None = None
    bytes: StreamBytes | None = None
    writes: CountOf | None = None
    dscp: Dscp | None = None
    interval: CountingInterval = "1 s"
    congestion_control: CongestionControl | None = None
    info_interval: CountingInterval | None = None

    in_words: ClassVar[str] = "one TCP connection"
    protocol: ClassVar[str] = "tcp"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "tcp"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port",)
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "writes", "interval", "info_interval"})
    only_apps: ClassVar[frozenset[str] | None] = frozenset({"rate", "packets_per_second", "gap", "dscp"})

    def __post_init__(self) -> None:
        if self.size is not None and not isinstance(self.size, (Distribution, Mapping)):
            if self.bytes is not None:
                raise BadValue("a TCP source has bytes or a size of the whole, not both", "leave one out")
            self._keep("bytes", self.size)
            self._keep("size", None)
        super().__post_init__()

    def complete(self) -> None:
        """Fill in what goes without saying of a schedule."""
        if self.scheduled:
            if self.size is None and self.payload is None:
                self._keep("payload", _USUAL_WRITE)
            if self.gap is None and self.process is None:
                self._keep("process", "constant")

    @property
    def scheduled(self) -> bool:
        """True if it sends by a schedule."""
        return any(way is not None for way in (self.rate, self.packets_per_second, self.gap))

    def check(self) -> None:
        """Refuse what no source could send."""
        if not self.scheduled:
            for name in (*_ABOUT_WRITES, "size"):
                if getattr(self, name) is not None:
                    raise BadValue(
                        f"{name!r} belongs to a schedule", "give a rate, packets_per_second or gap too, or leave it out"
                    )
            if (self.duration is None) == (self.bytes is None):
                raise BadValue(
                    "a TCP source has either 'duration' or 'bytes', one of both", 'give for example duration="10 s"'
                )
            return
        if [self.rate, self.packets_per_second, self.gap].count(None) != 2:
            raise BadValue("a schedule has 'rate', 'packets_per_second' or 'gap', one of them", "leave the others out")
        if [self.duration, self.bytes, self.writes].count(None) != 2:
            raise BadValue(
                "a TCP source with a schedule has a duration, a size or a number of writes, one of them",
                'give for example duration="10 s"',
            )
        if self.gap is not None and self.process is not None:
            raise BadValue("a gap is a process itself", "leave 'process' out")
        if self.size is not None and self.payload is not None:
            raise BadValue("a TCP source has a payload or a distribution of sizes, not both", "leave one out")
        if self.size is not None and self.rate is not None:
            raise BadValue("a rate needs one payload", "give packets_per_second or gap for sizes that vary")
        if self.size is not None and self.bytes is not None:
            raise BadValue("'bytes' end traffic whose writes have one 'payload'", "beside 'size' give 'duration'")

    def source_fields(self) -> dict[str, Any]:
        """Return the fields of a ``tcp_source`` besides ``to``."""
        return {"flow": None} | self.given(Writes)


@dataclass(frozen=True)
class TcpSource(Writes, SourceSettings):
    """A source of TCP in `host`, to the host or address `to`; the settings are those of `Writes`."""

    app_kind: ClassVar[str] = "tcp_source"


@dataclass(frozen=True)
class TcpSink(AppSettings):
    """A receiver of TCP in `host` that counts per `interval`."""

    app_kind: ClassVar[str] = "tcp_sink"

    port: Port = field(default=5002, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)


@dataclass(frozen=True)
class TcpBulk(Writes, FlowSettings):
    """A stream of TCP from host `source` to host `sink`, as fast as possible or by a schedule; the settings are those
    of `Writes`."""

    source: str
    sink: str

    def made_receiver(self) -> App:
        """Return the sink."""
        return TcpSink(self.sink, port=self.port, interval=self.interval)

    def made_sender(self) -> App:
        """Return the source."""
        return App(self.source, TcpSource.app_kind, {"to": self.sink} | self.source_fields())


@dataclass(frozen=True)
class Tcp(TcpBulk):
    """A stream of TCP from host `source` to host `sink` by a schedule of writes; the settings are those of `Writes`.

    Examples
    --------
    >>> Tcp("h1", "h2", rate="2 Mbit", duration="10 s").sender.fields["payload_bytes"]
    1448
    """

    def check(self) -> None:
        """Refuse a flow that has no schedule."""
        if not self.scheduled:
            raise BadValue(
                "a flow of TCP has a rate, packets_per_second or gap, one of them",
                "for one without a schedule: tcp_bulk",
            )
        super().check()
