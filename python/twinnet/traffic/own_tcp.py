"""Applications of one's own that have TCP connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from twinnet.traffic.app import App
from twinnet.traffic.application import OfOwnClass, SendsAsOwnClass
from twinnet.traffic.parts import AppSettings, FlowSettings, SourceSettings
from twinnet.traffic.traffic_settings import CongestionControl, CountingInterval

__all__ = ["OwnTcp", "OwnTcpSink", "OwnTcpSource"]


@dataclass(frozen=True)
class OwnTcpSource(SendsAsOwnClass, SourceSettings):
    """The end in `host` of an application of your own that connects to the host or address `to`; the settings are those
    of `OwnTcp`."""

    app_kind: ClassVar[str] = "own_tcp_source"

    congestion_control: CongestionControl | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class OwnTcpSink(OfOwnClass, AppSettings):
    """The end in `host` of an application of your own that is connected to, which counts what comes; the settings are
    those of `OwnTcp`."""

    app_kind: ClassVar[str] = "own_tcp_sink"

    congestion_control: CongestionControl | None = field(default=None, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)


@dataclass(frozen=True)
class OwnTcp(SendsAsOwnClass, FlowSettings):
    """An application of your own between host `source` and host `sink` that has TCP connections, as many as its source
    makes. What it writes is counted at `sink`, over all connections of a source. The settings are those of
    `SendsAsOwnClass` and these.

    Parameters
    ----------
    congestion_control
        The name of that of both ends, such as ``"cubic"``; default: the hosts' own.
    interval
        The interval of counting.
    """

    source: str
    sink: str
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)

    in_words: ClassVar[str] = "TCP connections of an own application"
    protocol: ClassVar[str] = "tcp"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "tcp"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("of", "port", "duration")
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "interval"})

    def made_receiver(self) -> App:
        """Return the end that is connected to."""
        return OwnTcpSink(self.sink, interval=self.interval, **self._of_both())

    def made_sender(self) -> App:
        """Return the end that connects."""
        given = cast("dict[str, Any]", {"flow": self.flow, "dscp": self.dscp, "duration": self.duration})
        return OwnTcpSource(self.source, self.sink, **self._of_both(), **given)

    def _of_both(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("of", "port", "settings", "congestion_control")}
