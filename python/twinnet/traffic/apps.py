"""Traffic: constructors for the apps that a lab runs in its hosts.

Each returns an :class:`App`, or a :class:`Flow` that has a sending and a receiving app. ``lab.start`` starts them;
nothing happens before.
"""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false, reportUnnecessaryComparison=false

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Unpack

from twinnet.errors import BadValue, did_you_mean
from twinnet.ranges import counting_interval_ps, line_rate_bps, run_time_ps, transfer_bytes
from twinnet.traffic.distributions import Distribution, OnOff
from twinnet.traffic.files import read_frame_sizes, read_trace
from twinnet.traffic.presets import preset_settings, voice_settings
from twinnet.traffic.settings import FlowSettings, PresetSettings, RtpSettings, TcpSettings, UdpSettings
from twinnet.units import duration_ps, size_bytes

__all__ = [
    "VIDEO_LADDER",
    "App",
    "Flow",
    "http_get",
    "http_server",
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

_LEAST_TCP_BYTES = 12
_MOST_COUNT = 10**15
_FASTEST_PACKETS = 1e10
_KINDS_THAT_RECEIVE = ("udp_sink", "rtp_sink", "tcp_sink", "http_server", "bandwidth_listener")


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
    gap: Distribution | Mapping[str, object] | None = None,
    payload: str | None = None,
    size: Distribution | Mapping[str, object] | None = None,
    process: Literal["constant", "poisson"] | None = None,
    on_off: OnOff | Mapping[str, Mapping[str, object]] | None = None,
    trace: Sequence[tuple[str, str]] | str | os.PathLike[str] | None = None,
    repeat: bool = False,
    unpaced: bool = False,
    exact: bool = False,
    fragment: bool = True,
    dscp: int | None = None,
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
    rate, packets_per_second, gap
        How often: a rate of UDP payload, with unit; datagrams a second; or a distribution of gaps.
    payload, size
        The UDP payload of each datagram (1472 B when nothing is said), or a distribution of payloads.
    process
        With a rate: ``constant`` gaps or ``poisson``.
    on_off
        Periods of talk and of silence; each period of talk begins with a datagram.
    trace, repeat
        Instead of all of these: a gap and a payload for each datagram, or the path of a file with lines such as
        ``2 ms, 1000 B``; and whether to begin anew after the last.
    unpaced
        Instead of any schedule: as many as the host takes.
    exact
        Whether each datagram leaves at its own moment on real sockets, too. Without it, those of a source that is
        faster than 5000 a second may gather for up to 200 us and leave together, which costs far less.
    fragment
        Whether datagrams above the MTU may be fragmented; without it they are refused.
    dscp
        Differentiated services code point, 0 to 63.
    duration, packets
        When it ends: one of both; a trace that is not repeated ends by itself.
    port
        The destination port.
    flow
        The flow's number in reports; chosen by the lab when nothing is said.
    """
    if process not in (None, "constant", "poisson"):
        raise BadValue(f"the process {process!r} is not known; allowed are 'constant' and 'poisson'")
    fields = _target(to, port, flow) | _dscp(dscp)
    if not fragment:
        fields["fragment"] = False
    if exact:
        fields["exact"] = True
    if unpaced:
        fields |= _unpaced(rate, packets_per_second, gap, process, on_off, trace, exact or None)
    elif trace is not None:
        others = (rate, packets_per_second, gap, payload, size, process, on_off)
        if any(other is not None for other in others):
            raise BadValue(
                "a trace tells gaps and payloads itself", "leave rate, gap, payload, size, process, on_off out"
            )
        told = read_trace(Path(trace)) if isinstance(trace, (str, os.PathLike)) else trace
        entries = [[duration_ps(wait, "gap"), size_bytes(length, "payload")] for wait, length in told]
        fields |= {"trace": entries} | ({"repeat": True} if repeat else {})
        if duration is None and packets is None and not repeat:
            return App(host, "udp_source", fields)
    elif [rate, packets_per_second, gap].count(None) != 2:
        raise BadValue(
            "a UDP source has a rate, packets_per_second or gap, one of them", 'give for example rate="10 Mbit"'
        )
    if (duration is None) == (packets is None):
        raise BadValue("a UDP source has a duration or a number of packets, one of both", 'give duration="10 s"')
    if trace is None:
        fields |= _sizes(payload, size)
        if rate is not None:
            if size is not None:
                raise BadValue("a rate needs one payload", "give packets_per_second or gap for sizes that vary")
            fields["rate_bps"] = line_rate_bps(rate)
        elif unpaced:
            pass
        elif gap is not None:
            if process is not None:
                raise BadValue("a gap is a process itself", "leave process out")
            fields["gap_ps"] = Distribution.of(gap, "gap").gap_spec()
        else:
            fields["packets_per_second"] = _positive(packets_per_second, "packets_per_second")
        if gap is None and not unpaced:
            fields["process"] = process or "constant"
        if on_off is not None:
            fields["on_off"] = OnOff.of(on_off).to_spec()
    fields |= {"duration_ps": run_time_ps(duration)} if duration is not None else {"packets": _count(packets)}
    return App(host, "udp_source", fields)


def udp_sink(
    host: str,
    *,
    port: int = 5003,
    interval: str = "1 s",
    record_packets: int | None = None,
    path_mtu: int | None = None,
) -> App:
    """Return a receiver of UDP datagrams on `port` that counts per `interval`, and keeps the first `record_packets` of
    each flow (at most 1,000,000). With `path_mtu`, in bytes, it counts packet by packet what carried them, too: frames,
    network bytes and wire bytes."""
    fields = {"port": _port(port), "interval_ps": counting_interval_ps(interval)}
    return App(host, "udp_sink", fields | _record(record_packets) | _path_mtu(path_mtu))


def udp(
    source: str,
    sink: str,
    *,
    interval: str = "1 s",
    port: int = 5003,
    record_packets: int | None = None,
    path_mtu: int | None = None,
    **settings: Unpack[UdpSettings],
) -> Flow:
    """Return a flow of UDP datagrams from host `source` to host `sink`; `settings` as for :func:`udp_source`.

    Examples
    --------
    >>> udp("h1", "h4", rate="512 Mbit", duration="80 s").sender.kind
    'udp_source'
    """
    receiver = udp_sink(sink, port=port, interval=interval, record_packets=record_packets, path_mtu=path_mtu)
    return Flow(receiver, udp_source(source, sink, port=port, **settings))


def voice(
    source: str,
    sink: str,
    codec: str = "G.711",
    *,
    silence_suppression: bool = False,
    port: int = 5006,
    **settings: Unpack[FlowSettings],
) -> Flow:
    """Return one direction of a call: packets of `codec` (``G.711``, ``G.723.1``, ``G.729``) with RTP's header.

    They are sent all the time or, with `silence_suppression`, in talkspurts (ITU-T P.59), marked with DSCP 46
    (RFC 3246). `settings` such as `duration` are those of :func:`udp`.
    """
    given: dict[str, Any] = voice_settings(codec, silence_suppression) | {"dscp": 46, "port": port} | settings
    return udp(source, sink, **given)


def preset(source: str, sink: str, name: str, **settings: Unpack[PresetSettings]) -> Flow:
    """Return what a known application sends: ``dns``, ``telnet``, ``game-client`` or ``game-server``; `settings` as for
    :func:`udp`. Sources are named in ``twinnet.traffic.presets``."""
    given: dict[str, Any] = {**preset_settings(name), **settings}
    return udp(source, sink, **given)


def rtp_source(
    host: str,
    to: str,
    *,
    rate: str = "1026 kbit",
    frames_per_second: float = 60,
    group_frames: int = 60,
    b_frames: int = 2,
    variation: float = 0.3,
    frame_sizes: Sequence[str] | str | os.PathLike[str] | None = None,
    paced: bool = False,
    shaping: str | None = None,
    dscp: int | None = None,
    duration: str | None = None,
    frames: int | None = None,
    port: int = 5004,
    flow: int | None = None,
) -> App:
    """Return a source of video over RTP: a transport stream (payload type 33) in payloads of 1316 bytes.

    Without more said it is the stream of the multimedia studies: 50 s, 1026 kbit/s, 60 frames a second.

    Parameters
    ----------
    rate
        Mean rate of the coded video, before the transport stream.
    frames_per_second
        The frame rate.
    group_frames, b_frames, variation
        The coder's model: frames from one I frame to the next, B frames between two others, and the deviation of a
        frame's size over the mean of its type.
    frame_sizes
        Instead of the model: the size of each frame, or the path of a file with one on each line; over and over.
    paced
        Whether the packets of a frame are spread over its interval; back to back otherwise.
    shaping
        Instead of that: windows, such as ``"200 ms"``, over which the stream is spread evenly, as VLC's multiplexer
        does.
    dscp, port, flow
        As for :func:`udp_source`.
    duration, frames
        When it ends: one of both; 50 s when nothing is said.
    """
    if duration is not None and frames is not None:
        raise BadValue("an RTP source has a duration or a number of frames, not both", 'give duration="50 s"')
    rating = _positive(frames_per_second, "frames_per_second")
    fields = _target(to, port, flow) | _dscp(dscp) | {"frames_per_second": rating, "paced": bool(paced)}
    if shaping is not None:
        if paced:
            raise BadValue("a stream is paced or shaped, not both", "leave paced or shaping out")
        fields["shaping_ps"] = counting_interval_ps(shaping, "shaping")
    if frame_sizes is not None:
        told = read_frame_sizes(Path(frame_sizes)) if isinstance(frame_sizes, (str, os.PathLike)) else frame_sizes
        fields["frame_bytes"] = [size_bytes(size, "frame size") for size in told]
    else:
        model = {"rate_bps": line_rate_bps(rate), "group_frames": _count(group_frames, "group_frames")}
        fields["model"] = model | {"b_frames": b_frames, "variation": float(variation)}
    ends = (
        {"frames": _count(frames, "frames")} if frames is not None else {"duration_ps": run_time_ps(duration or "50 s")}
    )
    return App(host, "rtp_source", fields | ends)


def rtp_sink(
    host: str,
    *,
    port: int = 5004,
    interval: str = "1 s",
    clock_hz: int | None = None,
    record_packets: int | None = None,
    path_mtu: int | None = None,
) -> App:
    """Return a receiver of RTP on `port`, of our sources and of others; `clock_hz` is that of the payload (90 kHz when
    nothing is said), the rest as for :func:`udp_sink`."""
    fields: dict[str, Any] = {"port": _port(port), "interval_ps": counting_interval_ps(interval)}
    if clock_hz is not None:
        fields["clock_hz"] = _count(clock_hz, "clock_hz")
    return App(host, "rtp_sink", fields | _record(record_packets) | _path_mtu(path_mtu))


def rtp(
    source: str,
    sink: str,
    *,
    interval: str = "1 s",
    port: int = 5004,
    record_packets: int | None = None,
    path_mtu: int | None = None,
    **settings: Unpack[RtpSettings],
) -> Flow:
    """Return a stream of video over RTP from host `source` to host `sink`; `settings` as for :func:`rtp_source`."""
    receiver = rtp_sink(sink, port=port, interval=interval, record_packets=record_packets, path_mtu=path_mtu)
    return Flow(receiver, rtp_source(source, sink, port=port, **settings))


def tcp_source(
    host: str,
    to: str,
    *,
    duration: str | None = None,
    size: str | Distribution | Mapping[str, object] | None = None,
    writes: int | None = None,
    rate: str | None = None,
    packets_per_second: float | None = None,
    gap: Distribution | Mapping[str, object] | None = None,
    payload: str | None = None,
    process: Literal["constant", "poisson"] | None = None,
    on_off: OnOff | Mapping[str, Mapping[str, object]] | None = None,
    dscp: int | None = None,
    port: int = 5002,
    interval: str = "1 s",
    flow: int | None = None,
    congestion_control: str | None = None,
    info_interval: str | None = None,
) -> App:
    """Return a TCP source that sends as fast as it can or, by a schedule, so much at each deadline.

    Parameters
    ----------
    host, to
        Where it runs; the receiving host's name or address.
    duration, size, writes
        When it ends: after a time; when a `size` such as ``"1 GB"`` is sent; by a schedule also after so many writes.
    rate, packets_per_second, gap
        How often: a rate of payload, with unit; writes a second; or a distribution of gaps. Without one of them the
        source sends as fast as it can. Deadlines are fixed by the moment of the connection. What the connection does
        not take waits; that the source could not keep up is in its report.
    payload, size
        The bytes of each write (1448 B when nothing is said), 16 B to 1 GiB, or a distribution of them.
    process
        With a rate: ``constant`` gaps or ``poisson``.
    on_off
        Periods of talk and of silence; each period of talk begins with a write.
    dscp
        Differentiated services code point of the source's segments, 0 to 63.
    port, flow
        The destination port; the flow's number in reports, chosen by the lab when nothing is said.
    interval
        How finely bytes are counted.
    congestion_control
        Its name, such as ``"cubic"``; the host's own when nothing is said.
    info_interval
        With it (1 ms to 1 h) the report has the congestion window, threshold, round trip and retransmissions of the
        connection over time.
    """
    whole, drawn = (size, None) if isinstance(size, str) else (None, size)
    fields = (
        _target(to, port, flow)
        | {"interval_ps": counting_interval_ps(interval)}
        | _congestion_control(congestion_control)
        | _dscp(dscp)
    )
    if info_interval is not None:
        fields["info_interval_ps"] = counting_interval_ps(info_interval, "info_interval")
    if rate is None and packets_per_second is None and gap is None:
        beside: dict[str, object] = {"writes": writes, "payload": payload, "process": process, "on_off": on_off}
        beside["size (a distribution)"] = drawn
        for name, value in beside.items():
            if value is not None:
                raise BadValue(
                    f"{name} belongs to a schedule", "give a rate, packets_per_second or gap too, or leave it out"
                )
        if (duration is None) == (whole is None):
            raise BadValue("a TCP source has a duration or a size, one of both", 'give for example duration="10 s"')
    else:
        if [duration, whole, writes].count(None) != 2:
            raise BadValue(
                "a TCP source with a schedule has a duration, a size or a number of writes, one of them",
                'give for example duration="10 s"',
            )
        fields |= _schedule(rate, packets_per_second, gap, process, on_off)
        fields |= _write_sizes(payload, drawn, rate)
    if duration is not None:
        fields["duration_ps"] = run_time_ps(duration)
    elif whole is not None:
        fields["bytes"] = transfer_bytes(whole, least=_LEAST_TCP_BYTES)
    else:
        fields["writes"] = _count(writes, "writes")
    return App(host, "tcp_source", fields)


def tcp(source: str, sink: str, *, interval: str = "1 s", port: int = 5002, **settings: Unpack[TcpSettings]) -> Flow:
    """Return a flow of TCP from host `source` to host `sink` by a schedule of writes; `settings` as for
    :func:`tcp_source`.

    Examples
    --------
    >>> tcp("h1", "h2", rate="2 Mbit", duration="10 s").sender.fields["payload_bytes"]
    1448
    """
    if all(settings.get(name) is None for name in ("rate", "packets_per_second", "gap")):
        raise BadValue(
            "a flow of TCP has a rate, packets_per_second or gap, one of them", "for one without a schedule: tcp_bulk"
        )
    return tcp_bulk(source, sink, interval=interval, port=port, **settings)


def tcp_sink(host: str, *, port: int = 5002, interval: str = "1 s") -> App:
    """Return a TCP sink on `port` that counts per `interval`."""
    return App(host, "tcp_sink", {"port": _port(port), "interval_ps": counting_interval_ps(interval)})


def tcp_bulk(
    source: str, sink: str, *, interval: str = "1 s", port: int = 5002, **settings: Unpack[TcpSettings]
) -> Flow:
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
    size: str | Distribution | Mapping[str, object],
    count: int = 1,
    connections: int = 1,
    think: str | Distribution | Mapping[str, object] | None = None,
    duration: str | None = None,
    port: int = 8080,
    interval: str = "1 s",
    flow: int | None = None,
    congestion_control: str | None = None,
) -> Flow:
    """Return `count` HTTP fetches from host `server` by host `client`, over `connections` connections at once, which
    are kept.

    Parameters
    ----------
    client, server
        Names of hosts.
    size
        What is asked for, with unit, or a distribution of that.
    count
        How many requests.
    connections
        How many at once.
    think
        How long a connection waits after an answer, before its next request: a time or a distribution; not at all when
        nothing is said.
    duration
        When it ends, whatever it has done by then.
    port
        The server's.
    interval
        How finely bytes are counted.
    flow
        The flow's number in reports; chosen by the lab when nothing is said.
    congestion_control
        Of the server's connections; the host's own when nothing is said.
    """
    fields = _target(server, port, flow) | {
        "count": _count(count, "count"),
        "connections": _count(connections, "connections"),
        "interval_ps": counting_interval_ps(interval),
    }
    if isinstance(size, str):
        fields["bytes"] = transfer_bytes(size)
    else:
        fields["size_bytes"] = Distribution.of(size, "size").size_spec()
    if think is not None:
        pause = {"distribution": "constant", "value": think} if isinstance(think, str) else think
        fields["think_ps"] = Distribution.of(pause, "gap").gap_spec()
    if duration is not None:
        fields["duration_ps"] = run_time_ps(duration)
    receiver = http_server(server, port=port, congestion_control=congestion_control)
    return Flow(receiver, App(client, "http_client", fields))


VIDEO_LADDER: Mapping[str, str] = {
    "240p": "235 kbit",
    "360p": "560 kbit",
    "480p": "1050 kbit",
    "720p": "2350 kbit",
    "1080p": "4300 kbit",
}
"""Rates of resolutions: those of Netflix' fixed ladder (A. Aaron and others, Per-Title Encode Optimization, 2015), the
lower one where it has two; 240p is its 320x240, 360p its 512x384, 480p its 640x480."""


def video(
    client: str,
    server: str,
    *,
    resolutions: Sequence[str] = ("360p", "480p", "720p"),
    rates: Sequence[str] | None = None,
    duration: str,
    segment: str = "2 s",
    buffer: str = "30 s",
    needed: str = "2 s",
    port: int = 8081,
    interval: str = "1 s",
    flow: int | None = None,
    congestion_control: str | None = None,
) -> Flow:
    """Return a session of video in segments that host `client` watches from host `server`, over HTTP as DASH and HLS
    do.

    Parameters
    ----------
    client, server
        Names of hosts.
    resolutions
        What there is of the video: names of :data:`VIDEO_LADDER`. The viewer takes the best that it expects to get in
        time; of one alone, always that.
    rates
        Instead of them: the rates of the ladder, with unit, each above the one before.
    duration
        How long the session lasts.
    segment
        The length of a segment, 0.1 s to 60 s.
    buffer
        How much media waits at most: two segments or more.
    needed
        How much must be there before playing begins, or goes on after a stall.
    port, interval, flow, congestion_control
        As for :func:`http_get`.
    """
    unknown = next((one for one in resolutions if one not in VIDEO_LADDER), None)
    if unknown is not None:
        raise BadValue(f"the resolution {unknown!r} is not known", did_you_mean(str(unknown), VIDEO_LADDER))
    told = [line_rate_bps(one) for one in (rates if rates is not None else [VIDEO_LADDER[one] for one in resolutions])]
    if not told or any(low >= high for low, high in itertools.pairwise(told)):
        raise BadValue("the rates of a video's ladder do not rise", "give at least one, each above the one before")
    fields = _target(server, port, flow) | {
        "ladder_bps": told,
        "segment_ps": run_time_ps(segment, "segment"),
        "buffer_ps": run_time_ps(buffer, "buffer"),
        "needed_ps": run_time_ps(needed, "needed"),
        "duration_ps": run_time_ps(duration),
        "interval_ps": counting_interval_ps(interval),
    }
    receiver = http_server(server, port=port, congestion_control=congestion_control)
    return Flow(receiver, App(client, "video_client", fields))


def ping(
    host: str,
    to: str,
    *,
    count: int = 1,
    interval: str | None = None,
    gap: Distribution | Mapping[str, object] | None = None,
    payload: str | None = None,
    size: Distribution | Mapping[str, object] | None = None,
    dscp: int | None = None,
    timeout: str = "1 s",
    count_interval: str = "1 s",
    flow: int | None = None,
) -> App:
    """Return `count` echo requests from `host` to `to`; an answer later than `timeout` counts as lost.

    Parameters
    ----------
    host, to
        Where it runs; the host that is asked, its name or address.
    count
        How many requests; the first leaves at once.
    interval, gap
        From one request to the next (1 s when nothing is said), or a distribution of that.
    payload, size
        What each request carries, 0 B to 65499 B (56 B when nothing is said), or a distribution of that.
    dscp
        Differentiated services code point of the requests, 0 to 63; hosts answer with the same.
    timeout
        How long to wait for a reply; at most 30,000 intervals.
    count_interval
        The interval in which round trips are counted.
    flow
        The flow's number in reports; chosen by the lab when nothing is said.
    """
    fields: dict[str, Any] = {"to": to, "flow": _flow(flow), "count": _count(count, "count")} | _dscp(dscp)
    if gap is None:
        fields["interval_ps"] = counting_interval_ps("1 s" if interval is None else interval)
    elif interval is not None:
        raise BadValue("a ping has an interval or a distribution of gaps, not both", "leave one out")
    else:
        fields["gap_ps"] = Distribution.of(gap, "gap").gap_spec()
    if size is not None:
        if payload is not None:
            raise BadValue("a ping has a payload or a distribution of sizes, not both", "leave one out")
        fields["size_bytes"] = Distribution.of(size, "size").size_spec()
    else:
        payload = "56 B" if payload is None else payload
        fields["payload_bytes"] = size_bytes(payload, "payload")
        if fields["payload_bytes"] > 65_499:
            raise BadValue(f"the payload is {payload!r}; allowed are 0 B to 65499 B")
    fields["timeout_ps"] = counting_interval_ps(timeout, "timeout")
    fields["count_interval_ps"] = counting_interval_ps(count_interval, "count_interval")
    return App(host, "ping", fields)


def _schedule(
    rate: str | None,
    packets_per_second: float | None,
    gap: Distribution | Mapping[str, object] | None,
    process: str | None,
    on_off: OnOff | Mapping[str, Mapping[str, object]] | None,
) -> dict[str, Any]:
    if process not in (None, "constant", "poisson"):
        raise BadValue(f"the process {process!r} is not known; allowed are 'constant' and 'poisson'")
    if [rate, packets_per_second, gap].count(None) != 2:
        raise BadValue("a schedule has a rate, packets_per_second or gap, one of them", "leave the others out")
    found: dict[str, Any] = {} if on_off is None else {"on_off": OnOff.of(on_off).to_spec()}
    if gap is not None:
        if process is not None:
            raise BadValue("a gap is a process itself", "leave process out")
        return found | {"gap_ps": Distribution.of(gap, "gap").gap_spec()}
    found["process"] = process or "constant"
    if rate is not None:
        return found | {"rate_bps": line_rate_bps(rate)}
    return found | {"packets_per_second": _positive(packets_per_second, "packets_per_second")}


def _write_sizes(
    payload: str | None, size: Distribution | Mapping[str, object] | None, rate: str | None
) -> dict[str, Any]:
    if size is None:
        payload = "1448 B" if payload is None else payload
        found = size_bytes(payload, "payload")
        if not 16 <= found <= 1 << 30:
            raise BadValue(f"the payload is {payload!r}; allowed are 16 B to 1 GiB for each write")
        return {"payload_bytes": found}
    if payload is not None:
        raise BadValue("a TCP source has a payload or a distribution of sizes, not both", "leave one out")
    if rate is not None:
        raise BadValue("a rate needs one payload", "give packets_per_second or gap for sizes that vary")
    return {"size_bytes": Distribution.of(size, "size").size_spec()}


def _unpaced(*schedule: object) -> dict[str, Any]:
    if any(part is not None for part in schedule):
        raise BadValue(
            "an unpaced source has no schedule",
            "leave rate, packets_per_second, gap, process, on_off, trace and exact out, or leave unpaced out",
        )
    return {"unpaced": True}


def _target(to: str, port: int, flow: int | None) -> dict[str, Any]:
    return {"to": to, "port": _port(port), "flow": _flow(flow)}


def _dscp(dscp: int | None) -> dict[str, Any]:
    if dscp is None:
        return {}
    if isinstance(dscp, bool) or not isinstance(dscp, int) or not 0 <= dscp <= 63:
        raise BadValue(f"the DSCP is {dscp!r}; allowed are whole numbers from 0 to 63")
    return {"dscp": dscp}


def _sizes(payload: str | None, size: Distribution | Mapping[str, object] | None) -> dict[str, Any]:
    if size is not None:
        if payload is not None:
            raise BadValue("a UDP source has a payload or a distribution of sizes, not both", "leave one out")
        return {"size_bytes": Distribution.of(size, "size").size_spec()}
    payload = "1472 B" if payload is None else payload
    found = size_bytes(payload, "payload")
    if not 16 <= found <= 65_507:
        raise BadValue(f"the payload is {payload!r}; allowed are 16 B to 65507 B")
    return {"payload_bytes": found}


def _record(packets: int | None) -> dict[str, Any]:
    if packets is None:
        return {}
    if isinstance(packets, bool) or not isinstance(packets, int) or not 1 <= packets <= 1_000_000:
        raise BadValue(f"record_packets is {packets!r}; allowed are whole numbers from 1 to 1000000")
    return {"record_packets": packets}


def _path_mtu(mtu: int | None) -> dict[str, Any]:
    if mtu is None:
        return {}
    if isinstance(mtu, bool) or not isinstance(mtu, int) or not 68 <= mtu <= 65_535:
        raise BadValue(f"path_mtu is {mtu!r}; allowed are 68 to 65535 bytes")
    return {"mtu_bytes": mtu}


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
