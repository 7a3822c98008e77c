"""Video streamed by ffmpeg or VLC and received by either: over RTP, over RTSP or over HTTP."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.errors import BadValue
from twinnet.interpreter import PYTHON
from twinnet.programs.clip import Clip
from twinnet.programs.transfer import Output, Transfer
from twinnet.programs.video_quality import judge_video, size_of
from twinnet.results.captures import analyze_capture
from twinnet.results.distributions import Spread, Summary
from twinnet.results.flow_report import FlowReport
from twinnet.results.flow_series import Samples
from twinnet.results.media_report import Rtp

__all__ = ["PROTOCOLS", "STREAMERS", "stream"]

STREAMERS = ("ffmpeg", "vlc")
"""The programs that can send, and receive."""
PROTOCOLS = {"rtp": 5004, "rtsp": 8554, "http": 8080}
"""The protocols that they can send over, and the port of each unless another is given."""
Vector = npt.NDArray[np.float64]
_MPEG_TRANSPORT_STREAM = 33
_DYNAMIC = 96
_RTP_HEADER = 12
_PACKET = 1316 + _RTP_HEADER
_LINGER_S = 1.0
_PS_PER_MS = 1e9
_QUIET = ("ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", "-y")
_PROBE = ("-analyzeduration", "500000")
"""Half a second of a stream says what it is; by default ffmpeg takes five seconds, more than short clips have."""
_VLC = (*PYTHON, "-m", "twinnet.programs.vlc_sender")
_VLC_RECEIVER = (*PYTHON, "-m", "twinnet.programs.vlc_receiver")
_COPY = ("-map", "0:v:0", "-c", "copy", "-muxdelay", "0", "-muxpreload", "0", "-flush_packets", "1", "-f", "mpegts")


def stream(
    source: str,
    sink: str,
    clip: Clip | str | os.PathLike[str],
    *,
    by: str = "ffmpeg",
    received_by: str = "ffmpeg",
    over: str = "rtp",
    port: int | None = None,
    flow: int = 0,
    judge: bool = True,
) -> Transfer:
    """Return a stream of `clip` from host `source` to host `sink`, in real time.

    Parameters
    ----------
    clip
        A transport stream; :func:`twinnet.programs.make_clip` makes one.
    by
        ``ffmpeg`` or ``vlc``. ffmpeg sends each frame when it is due; VLC spreads the stream over windows of 200 ms.
    received_by
        ``ffmpeg``, or over ``rtp`` also ``vlc``.
    over
        ``rtp``: the transport stream in payloads of 1316 bytes. ``rtsp``: announced by the sender (ffmpeg) or asked for
        by the receiver (VLC), then RTP by UDP. ``http``: fetched by the receiver, over TCP. VLC begins to stream over
        ``rtsp`` and ``http`` when it listens: the receiver is started at once then.
    port
        Where it is received (``http``: served); default: 5004, 8554 or 8080.
    judge
        Whether the received video is compared with the clip (see :func:`twinnet.programs.judge_video`), for which both
        are decoded twice.

    The report has what a capture at the sink's interface says of RTP (packets, loss, distances, jitter) and, in its
    `video`, what was seen.
    """
    _check_programs(by, received_by, over)
    path = os.fspath(clip.path if isinstance(clip, Clip) else clip)
    if not Path(path).is_file():
        raise BadValue(f"there is no clip {path!r}", "make one: twinnet.programs.make_clip")
    number = port if port is not None else PROTOCOLS[over]
    folder = tempfile.TemporaryDirectory(prefix="twinnet-stream-")
    place = Path(folder.name)
    received = str(place / "received.ts")
    argv, server = _commands(by, over, path, number, place)
    if received_by == "vlc":
        server = (*_VLC_RECEIVER, str(number), received)
    # Over HTTP the receiver asks, and over RTSP that of VLC; over the others the sender does.
    asked_for = over == "http" or (by == "vlc" and over == "rtsp")
    client, target = (sink, source) if asked_for else (source, sink)

    def reports(transfer: Transfer, output: Output) -> list[FlowReport]:
        with folder:
            report = _seen(transfer, output, number, over, received)
            return [replace(report, video=judge_video(path, received)) if judge else report]

    return Transfer(
        "vlc" if "vlc" in (by, received_by) else "ffmpeg",
        client,
        target,
        argv,
        reports,
        server_argv=server,
        protocol="udp" if over == "rtp" else "tcp",
        port=number,
        flow=flow,
        needs=("ffmpeg",),
        linger_s=0.0 if asked_for else _LINGER_S,
        capture=(sink, str(place / "received.pcapng")),
        # A receiver that is ended says so; what it got counts.
        may_fail=asked_for,
        server_begins=asked_for and by == "vlc",
    )


def _check_programs(by: str, received_by: str, over: str) -> None:
    if by not in STREAMERS:
        raise BadValue(f"the streamer {by!r} is not known; allowed are {', '.join(STREAMERS)}")
    if over not in PROTOCOLS:
        raise BadValue(f"video is not streamed over {over!r} here; allowed are {', '.join(PROTOCOLS)}")
    if received_by not in STREAMERS:
        raise BadValue(f"the receiver {received_by!r} is not known; allowed are {', '.join(STREAMERS)}")
    if received_by == "vlc" and over != "rtp":
        raise BadValue(f"VLC receives over rtp here, not over {over}", 'leave received_by out, or give over="rtp"')


def _commands(by: str, over: str, path: str, port: int, place: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The client's words and the server's; `{to}` stands for the server's address."""
    received = str(place / "received.ts")
    play = (*_QUIET, "-re", "-i", path)
    if by == "vlc" and over != "rtp":
        chain, url = {
            "rtsp": (f"#rtp{{sdp=rtsp://:{port}/live,mux=ts}}", f"rtsp://{{to}}:{port}/live"),
            "http": (f"#standard{{access=http,mux=ts,dst=:{port}/}}", f"http://{{to}}:{port}/"),
        }[over]
        return (*_QUIET, *_PROBE, "-i", url, *_COPY, received), (*_VLC, path, chain)
    if over == "rtsp":
        url = f"rtsp://{{to}}:{port}/live"
        listen = ("-fflags", "+genpts", "-rtsp_flags", "listen")
        send = (*play, "-map", "0:v:0", "-c", "copy", "-f", "rtsp", url)
        return send, (*_QUIET, *_PROBE, *listen, "-i", url, *_COPY, received)
    if over == "http":
        fetch = (*_QUIET, *_PROBE, "-i", f"http://{{to}}:{port}/", *_COPY, received)
        return fetch, (*play, *_COPY, "-listen", "1", f"http://0.0.0.0:{port}/")
    description = place / "stream.sdp"
    description.write_text(
        f"v=0\no=- 0 0 IN IP4 0.0.0.0\ns=video\nc=IN IP4 0.0.0.0\nt=0 0\nm=video {port} RTP/AVP 33\n"
    )
    # Told by a description, ffmpeg need not spend the first packet on finding out what it is.
    allowed = ("-protocol_whitelist", "file,udp,rtp")
    receive = (*_QUIET, *allowed, *_PROBE, "-i", str(description), *_COPY, received)
    if by == "vlc":
        chain = f"#rtp{{dst={{to}},port={port},mux=ts}}"
        return (*_VLC, path, chain), receive
    form = ("-map", "0:v:0", "-c", "copy", "-f", "rtp_mpegts")
    return (*play, *form, f"rtp://{{to}}:{port}?pkt_size={_PACKET}"), receive


def _seen(transfer: Transfer, output: Output, port: int, over: str, received: str) -> FlowReport:
    """Return the report that follows from the frames captured at the sink's interface, and over HTTP from what was
    received."""
    bare = FlowReport(
        flow=transfer.flow,
        protocol="http" if over == "http" else "rtp",
        role="client" if over == "http" else "sink",
        start_ps=output.start_ps,
        end_ps=output.end_ps,
    )
    if over == "http":
        return replace(bare, bytes=size_of(received))
    if output.capture is None:
        return bare
    found = analyze_capture(
        output.capture,
        rtp_ports=[port] if over == "rtp" else [],
        clock_rates={96: 90_000, 97: 90_000},
        every_packet=True,
    )
    rows = found.rtp_streams.with_row_index("place").sort("packets", descending=True).head(1).to_dicts()
    if not rows:
        return replace(bare, packets=0, bytes=0, lost=0, errors=("no RTP arrived",))
    (row,) = rows
    packets = found.rtp_packets.filter(pl.col("stream") == row["place"])
    return _of_stream(bare, row, _payload_bytes(found.conversations, row), packets)


def _payload_bytes(conversations: pl.DataFrame, row: dict[str, Any]) -> int:
    """Payload of UDP from the stream's source to its destination."""
    ends = (row["source_address"], row["source_port"], row["destination_address"], row["destination_port"])
    for one in conversations.to_dicts():
        a, b = (one["a_address"], one["a_port"]), (one["b_address"], one["b_port"])
        if (*a, *b) == ends:
            return int(one["payload_bytes_a_to_b"])
        if (*b, *a) == ends:
            return int(one["payload_bytes_b_to_a"])
    return 0


def _of_stream(bare: FlowReport, row: dict[str, Any], payload_bytes: int, packets: pl.DataFrame) -> FlowReport:
    times = packets["time_ns"].to_numpy().astype(np.int64)
    start_ps = bare.start_ps or 0
    # The first packet stands for the beginning: the capture's clock is not that of the client.
    arrived = tuple(start_ps + int(time - times[0]) * 1000 for time in times)
    gaps = packets["delta_ms"].to_numpy()[1:] * _PS_PER_MS
    jitters = packets["jitter_ms"].to_numpy()[1:] * _PS_PER_MS
    bandwidths = packets["bandwidth_kbps"].to_numpy() * 1000.0
    rtp = Rtp(
        int(str(row["ssrc"]), 0),
        _MPEG_TRANSPORT_STREAM if "MP2T" in str(row["payload"]) else _DYNAMIC,
        int(row["expected"]),
        _spread(jitters),
        _spread(bandwidths),
    )
    return replace(
        bare,
        source=f"{row['source_address']}:{row['source_port']}",
        target=f"{row['destination_address']}:{row['destination_port']}",
        end_ps=arrived[-1] if arrived else start_ps,
        packets=int(row["packets"]),
        bytes=payload_bytes,
        lost=int(row["lost"]),
        duplicates=int(row["duplicates"]),
        gap=_summary(gaps),
        rtp=rtp,
        samples=Samples(
            tuple(range(len(arrived))),
            arrived,
            (None,) * len(arrived),
            (),
            0,
            (None, *(float(value) for value in jitters)),
            tuple(float(value) for value in bandwidths),
        ),
    )


def _spread(values: Vector) -> Spread | None:
    if values.size == 0:
        return None
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return Spread(values.size, float(values.mean()), float(values.min()), float(values.max()), deviation)


def _summary(values: Vector) -> Summary | None:
    if values.size == 0:
        return None
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    quantiles = (float(np.quantile(values, share)) for share in (0.5, 0.9, 0.99))
    return Summary(values.size, float(values.mean()), float(values.min()), float(values.max()), deviation, *quantiles)
