"""HTTP/1.1: a server of objects of any size, and clients that fetch them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from twinnet.errors import BadValue
from twinnet.settings import Whole
from twinnet.traffic.app import App, Flow
from twinnet.traffic.distributions import Distribution
from twinnet.traffic.traffic_settings import (
    CongestionControl,
    CountingInterval,
    CountOf,
    FlowNumber,
    Gaps,
    Port,
    RunTime,
    Sizes,
    TrafficSettings,
    Transfer,
)
from twinnet.units import Duration, Size

__all__ = ["HttpGet", "HttpServer"]


@dataclass(frozen=True)
class HttpServer(TrafficSettings, App):
    """A server in `host` that serves ``/bytes/N``, N bytes, by the named congestion control (default: the
    host's)."""

    host: str
    port: Port = field(default=8080, kw_only=True)
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)
    kind: str = field(init=False, default="http_server", repr=False)
    fields: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep("fields", self.given())


@dataclass(frozen=True)
class HttpGet(TrafficSettings, Flow):
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

    client: str
    server: str
    receiver: App = field(init=False, repr=False)
    sender: App = field(init=False, repr=False)
    bytes: Transfer | None = field(default=None, kw_only=True)
    size: Sizes | Size | None = field(default=None, kw_only=True)
    count: CountOf = field(default=1, kw_only=True)
    connections: Annotated[int, Whole(BadValue, 1, 10_000)] = field(default=1, kw_only=True)
    think: Gaps | Duration | None = field(default=None, kw_only=True)
    duration: RunTime | None = field(default=None, kw_only=True)
    port: Port = field(default=8080, kw_only=True)
    interval: CountingInterval = field(default="1 s", kw_only=True)
    flow: FlowNumber | None = field(default=None, kw_only=True)
    congestion_control: CongestionControl | None = field(default=None, kw_only=True)

    in_words: ClassVar[str] = "HTTP/1.1 GET"
    protocol: ClassVar[str] = "http"
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "tcp"
    application: ClassVar[str | None] = "http"
    asked_for: ClassVar[bool] = True
    needed_in_studies: ClassVar[tuple[str, ...]] = ("port",)
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow", "interval"})
    only_apps: ClassVar[frozenset[str]] = frozenset({"size", "think"})

    def __post_init__(self) -> None:
        if self.size is not None and not isinstance(self.size, (Distribution, Mapping)) and self.bytes is None:
            self._keep("bytes", self.size)
            self._keep("size", None)
        super().__post_init__()
        server = HttpServer(self.server, port=self.port, congestion_control=self.congestion_control)
        found = self.given()
        found.pop("congestion_control", None)
        self._keep("receiver", server)
        self._keep("sender", App(self.client, "http_client", {"to": self.server, "flow": None} | found))

    def check(self) -> None:
        """Refuse both sizes, or none."""
        if (self.bytes is None) == (self.size is None):
            raise BadValue(
                "a fetch asks for 'bytes' or a distribution of them, 'size', one of both", 'give size="1 MB"'
            )
