"""Traffic: constructors for the apps that a lab runs in its hosts.

Each returns an :class:`App`, or a :class:`Flow` that has a sending and a receiving app. ``lab.start`` starts them;
nothing happens before.
"""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinnet.errors import BadValue
from twinnet.ranges import counting_interval_ps, line_rate_bps, run_time_ps, transfer_bytes
from twinnet.units import size_bytes

__all__ = [
    "App",
    "Flow",
    "http_get",
    "http_server",
    "ping",
    "tcp_bulk",
    "tcp_sink",
    "tcp_source",
    "udp",
    "udp_sink",
    "udp_source",
]

_LEAST_TCP_BYTES = 12
_MOST_COUNT = 10**15
_FASTEST_PACKETS = 1e10
_KINDS_THAT_RECEIVE = ("udp_sink", "tcp_sink", "http_server")


@dataclass(frozen=True)
class App:
    """One app in one host.

    Parameters
    ----------
    host
        The host's name.
    kind
        Its kind in the lab protocol.
    fields
        Its fields in the lab protocol. A ``to`` may be the name of a host: the lab puts the address in its place.
    """

    host: str
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def receives(self) -> bool:
        """Whether it is a sink or server, which several flows can share."""
        return self.kind in _KINDS_THAT_RECEIVE


@dataclass(frozen=True)
class Flow:
    """A sender and the receiver that it needs.

    Parameters
    ----------
    receiver
        A sink or server. A lab that has an equal one already uses that.
    sender
        A source or client.
    """

    receiver: App
    sender: App


def udp_source(
    host: str,
    to: str,
    *,
    rate: str | None = None,
    packets_per_second: float | None = None,
    payload: str = "1472 B",
    process: str = "constant",
    duration: str | None = None,
    packets: int | None = None,
    port: int = 5003,
    flow: int | None = None,
) -> App:
    """Return a source of UDP datagrams.

    Parameters
    ----------
    host, to
        Where it runs; the receiving host's name or address.
    rate
        Of UDP payload, with unit. Or give `packets_per_second`.
    payload
        The UDP payload of each datagram.
    process
        ``constant`` gaps or ``poisson``.
    duration, packets
        When it ends: one of both.
    port
        The destination port.
    flow
        The flow's number in reports; chosen by the lab when nothing is said.
    """
    if (rate is None) == (packets_per_second is None):
        raise BadValue("a UDP source has a rate or packets_per_second, one of both", 'give for example rate="10 Mbit"')
    if (duration is None) == (packets is None):
        raise BadValue("a UDP source has a duration or a number of packets, one of both", 'give duration="10 s"')
    if process not in ("constant", "poisson"):
        raise BadValue(f"the process {process!r} is not known; allowed are 'constant' and 'poisson'")
    size = size_bytes(payload, "payload")
    if not 16 <= size <= 65_507:
        raise BadValue(f"the payload is {payload!r}; allowed are 16 B to 65507 B")
    fields = _target(to, port, flow) | {"payload_bytes": size, "process": process}
    if rate is not None:
        fields["rate_bps"] = line_rate_bps(rate)
    else:
        fields["packets_per_second"] = _positive(packets_per_second, "packets_per_second")
    fields |= {"duration_ps": run_time_ps(duration)} if duration is not None else {"packets": _count(packets)}
    return App(host, "udp_source", fields)


def udp_sink(host: str, *, port: int = 5003, interval: str = "1 s") -> App:
    """Return a receiver of UDP datagrams on `port` that counts per `interval`."""
    return App(host, "udp_sink", {"port": _port(port), "interval_ps": counting_interval_ps(interval)})


def udp(source: str, sink: str, *, interval: str = "1 s", port: int = 5003, **settings: Any) -> Flow:
    """Return a flow of UDP datagrams from host `source` to host `sink`; `settings` as for :func:`udp_source`.

    Examples
    --------
    >>> udp("h1", "h4", rate="512 Mbit", duration="80 s").sender.kind
    'udp_source'
    """
    return Flow(udp_sink(sink, port=port, interval=interval), udp_source(source, sink, port=port, **settings))


def tcp_source(
    host: str,
    to: str,
    *,
    duration: str | None = None,
    size: str | None = None,
    port: int = 5002,
    interval: str = "1 s",
    flow: int | None = None,
    congestion_control: str | None = None,
    info_interval: str | None = None,
) -> App:
    """Return a TCP source that sends as fast as it can, for `duration` or until `size` is sent, by its host's
    congestion control or the one that is named (``"cubic"``). With an `info_interval` (1 ms to 1 h) its report has the
    congestion window, threshold, round trip and retransmissions of the connection over time."""
    if (duration is None) == (size is None):
        raise BadValue("a TCP source has a duration or a size, one of both", 'give for example duration="10 s"')
    fields = (
        _target(to, port, flow)
        | {"interval_ps": counting_interval_ps(interval)}
        | _congestion_control(congestion_control)
    )
    if info_interval is not None:
        fields["info_interval_ps"] = counting_interval_ps(info_interval, "info_interval")
    if duration is not None:
        return App(host, "tcp_source", fields | {"duration_ps": run_time_ps(duration)})
    return App(host, "tcp_source", fields | {"bytes": transfer_bytes(size, least=_LEAST_TCP_BYTES)})


def tcp_sink(host: str, *, port: int = 5002, interval: str = "1 s") -> App:
    """Return a TCP sink on `port` that counts per `interval`."""
    return App(host, "tcp_sink", {"port": _port(port), "interval_ps": counting_interval_ps(interval)})


def tcp_bulk(source: str, sink: str, *, interval: str = "1 s", port: int = 5002, **settings: Any) -> Flow:
    """Return a TCP bulk transfer from host `source` to host `sink`; `settings` as for :func:`tcp_source`."""
    sender = tcp_source(source, sink, port=port, interval=interval, **settings)
    return Flow(tcp_sink(sink, port=port, interval=interval), sender)


def http_server(host: str, *, port: int = 8080, congestion_control: str | None = None) -> App:
    """Return an HTTP/1.1 server that serves ``/bytes/N``: N bytes, by the host's congestion control or the one that is
    named."""
    return App(host, "http_server", {"port": _port(port)} | _congestion_control(congestion_control))


def http_get(
    client: str,
    server: str,
    *,
    size: str,
    count: int = 1,
    connections: int = 1,
    port: int = 8080,
    interval: str = "1 s",
    flow: int | None = None,
    congestion_control: str | None = None,
) -> Flow:
    """Return `count` HTTP fetches of `size` from host `server` by host `client`, over `connections` connections at
    once."""
    fields = _target(server, port, flow) | {
        "bytes": transfer_bytes(size),
        "count": _count(count, "count"),
        "connections": _count(connections, "connections"),
        "interval_ps": counting_interval_ps(interval),
    }
    receiver = http_server(server, port=port, congestion_control=congestion_control)
    return Flow(receiver, App(client, "http_client", fields))


def ping(
    host: str,
    to: str,
    *,
    count: int = 1,
    interval: str = "1 s",
    payload: str = "56 B",
    timeout: str = "1 s",
    flow: int | None = None,
) -> App:
    """Return `count` echo requests from `host` to `to`, one each `interval`; an answer later than `timeout` counts
    as lost."""
    size = size_bytes(payload, "payload")
    if size > 65_499:
        raise BadValue(f"the payload is {payload!r}; allowed are 0 B to 65499 B")
    fields = {
        "to": to,
        "flow": _flow(flow),
        "count": _count(count, "count"),
        "interval_ps": counting_interval_ps(interval),
        "payload_bytes": size,
        "timeout_ps": counting_interval_ps(timeout, "timeout"),
    }
    return App(host, "ping", fields)


def _target(to: str, port: int, flow: int | None) -> dict[str, Any]:
    return {"to": to, "port": _port(port), "flow": _flow(flow)}


def _congestion_control(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"congestion_control": name}


def _flow(flow: int | None) -> int | None:
    if flow is not None and (isinstance(flow, bool) or not isinstance(flow, int) or not 0 <= flow < 1 << 32):
        raise BadValue(f"the flow number is {flow!r}; allowed are whole numbers from 0 to 2^32 - 1")
    return flow


def _port(port: int) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65_535:
        raise BadValue(f"the port is {port!r}; allowed are whole numbers from 1 to 65535")
    return port


def _count(value: int | None, what: str = "packets") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_COUNT:
        raise BadValue(f"{what} is {value!r}; allowed are whole numbers from 1 to 10^15")
    return value


def _positive(value: float | None, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _FASTEST_PACKETS:
        raise BadValue(f"{what} is {value!r}; allowed are numbers above zero, at most 10^10")
    return float(value)
