"""HTTP/1.1: a server of objects of any size, and clients that fetch them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from twinnet.errors import BadValue
from twinnet.settings import Whole
from twinnet.traffic.app import App
from twinnet.traffic.distributions import Distribution
from twinnet.traffic.parts import AppSettings, FlowSettings
from twinnet.traffic.traffic_settings import (
    CongestionControl,
    CountingInterval,
    CountOf,
    FlowNumber,
    Gaps,
    Port,
    RunTime,
    Sizes,
    Transfer,
)
from twinnet.units import Duration, Size

__all__ = ["HttpFlow", "HttpGet", "HttpServer"]


@dataclass(frozen=True)
class HttpServer(AppSettings):
    """A server in `host` that serves ``/bytes/N``, N bytes, by the named congestion control (default: the
    host's)."""

    app_kind: ClassVar[str] = "http_server"

    port: Port = field(default=8080, kw_only=True)
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class HttpFlow(FlowSettings):
    """Base class of what host `client` fetches from a server of HTTP in host `server`."""

    client_kind: ClassVar[str]
    """The kind of the client in the lab protocol."""
    protocol: ClassVar[str] = "http"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "tcp"
    asked_for: ClassVar[bool] = True

    client: str
    server: str
    port: Port = field(default=8080, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)

    def made_receiver(self) -> App:
        """Return the server."""
        return HttpServer(self.server, port=self.port, congestion_control=self.congestion_control)

    def made_sender(self) -> App:
        """Return the client."""
        found = self.given()
        found.pop("congestion_control", None)
        return App(self.client, self.client_kind, {"to": self.server, "flow": None} | found)


@dataclass(frozen=True)
class HttpGet(HttpFlow):
    """Host `client` fetches from host `server`, over persistent connections.

    Parameters
    ----------
    client, server
        Names of hosts.
    bytes, size
        Size of each requested object, or a distribution of it. A `size` that is text means `bytes`.
    count
        How many requests.
    connections
        How many at once.
    think
        How long a connection waits after an answer, before its next request: a time or a distribution; default: not
        at all.
    duration
        Time after which it ends, even if requests remain.
    port
        The server's port.
    interval
        The interval of counting.
    flow
        The flow's number in reports; default: chosen by the lab.
    congestion_control
        Congestion control of the server's connections; default: the host's own.
    """

    bytes: Transfer | None = field(default=None, kw_only=True)
    size: Sizes | Size | None = field(default=None, kw_only=True)
    count: CountOf = field(default=1, kw_only=True)
    connections: Annotated[int, Whole(BadValue, 1, 10_000)] = field(default=1, kw_only=True)
    think: Gaps | Duration | None = field(default=None, kw_only=True)
    duration: RunTime | None = field(default=None, kw_only=True)

    client_kind: ClassVar[str] = "http_client"
    in_words: ClassVar[str] = "HTTP/1.1 GET"
    application: ClassVar[str | None] = "http"
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port",)
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "interval"})
    only_apps: ClassVar[frozenset[str] | None] = frozenset({"size", "think"})

    def __post_init__(self) -> None:
        if self.size is not None and not isinstance(self.size, (Distribution, Mapping)) and self.bytes is None:
            self._keep("bytes", self.size)
            self._keep("size", None)
        super().__post_init__()

    def check(self) -> None:
        """Refuse both sizes, or none."""
        if (self.bytes is None) == (self.size is None):
            raise BadValue(
                "a fetch asks for 'bytes' or a distribution of them, 'size', one of both", 'give size="1 MB"'
            )
