"""A viewer of video by ffmpeg or VLC: it fetches a clip by HTTP from Python's server, as fast as it plays, or has VLC's
server send it over RTSP."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from twinnet.errors import BadValue, ProgramFailed, ReportUnreadable
from twinnet.interpreter import PYTHON
from twinnet.programs.clip import Clip, make_clip
from twinnet.programs.file_server import python_server, served_folder
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.flow_report import FlowReport
from twinnet.results.media_report import Viewing
from twinnet.units import BitsPerSecond, Picoseconds

__all__ = ["VIEWERS", "WATCHED_OVER", "clip_to_watch", "viewing_of", "watch"]

VIEWERS = ("ffmpeg", "vlc")
"""The programs that watch."""
WATCHED_OVER = ("http", "rtsp")
"""The protocols over which they watch."""

_LEAST_STALL_S = 0.5
"""Shorter stops are no stalls: they come of reading by the clock, and of progress reported four times a second."""
_SIZE = "640x360"
_FRAMES_PER_SECOND = 25
_PROGRAMS = {
    # By its path it imports nothing of the package: that would take each host seconds of a guest's processor.
    "ffmpeg": (str(Path(__file__).with_name("video_viewer.py")),),
    "vlc": ("-m", "twinnet.programs.vlc_viewer"),
}
"""What a viewer's host has Python run, by program."""
_VLC_SERVER = (*PYTHON, str(Path(__file__).with_name("vlc_server.py")))


def clip_to_watch(duration: Picoseconds, rate: BitsPerSecond, source: str | os.PathLike[str] | None = None) -> Clip:
    """Return a served clip of that length and mean rate; it is made once in the life of this process.

    Parameters
    ----------
    source
        A video whose pictures it has, as for :func:`make_clip`.

    Raises
    ------
    ProgramMissing
        ffmpeg is not installed.
    """
    film = "" if source is None else f"-{_digest(source)}"
    path = served_folder() / f"{int(duration)}-{int(rate)}{film}.ts"
    if path.exists():
        return Clip(path, "", round(duration / 10**12 * _FRAMES_PER_SECOND))
    made = make_clip(
        path.with_suffix(".part.ts"),
        duration=duration,
        size=_SIZE,
        frames_per_second=_FRAMES_PER_SECOND,
        rate=rate,
        source=source,
    )
    made.path.replace(path)
    return Clip(path, made.encoder, made.frames)


def _digest(path: str | os.PathLike[str]) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def watch(
    client: str,
    server: str,
    clip: Clip | str | os.PathLike[str],
    *,
    duration: Picoseconds,
    rate: BitsPerSecond,
    port: int = 8081,
    flow: int = 0,
    congestion_control: str | None = None,
    by: Literal["ffmpeg", "vlc"] = "ffmpeg",
    over: Literal["http", "rtsp"] = "http",
) -> Transfer:
    """Return a session in which a program in host `client` watches `clip` for `duration` at most, from host `server`.

    Over ``http`` Python's ``http.server`` gives it. Over ``rtsp`` VLC's does, as video on demand: a stream over RTP and
    UDP for each viewer, as fast as the film plays. The clip must be there before the server starts.

    ffmpeg reads the clip as its pictures are due, and faster when it is behind; it decodes nothing. VLC keeps a second
    of media before it shows the first picture, reads as fast as it can while less than that is kept, and decodes. The
    `viewing` has the media that was played and its rate, and how often and how long the picture stood still (half a
    second and more). There is one quality, so none is changed. VLC's rate counts what it had read and not yet shown
    when the session was cut short: a second of media at most.

    Raises
    ------
    BadValue
        `by` names another program, or `over` another protocol; or a `congestion_control` is given for ``rtsp``.
    """
    if by not in VIEWERS:
        raise BadValue(f"the viewer {by!r} is not known; allowed are {', '.join(VIEWERS)}")
    if over not in WATCHED_OVER:
        raise BadValue(f"video is not watched over {over!r} here; allowed are {', '.join(WATCHED_OVER)}")
    if over == "rtsp" and congestion_control is not None:
        raise BadValue("video over rtsp comes by UDP, which has no congestion control", "leave congestion_control out")
    path = Path(os.fspath(clip.path if isinstance(clip, Clip) else clip))
    served = served_folder() / path.name
    if not served.exists():
        shutil.copyfile(path, served)

    if over == "http":
        name, serving = path.name, python_server(port, congestion_control)
    else:
        name, serving = path.stem, (*_VLC_SERVER, str(port), str(served_folder()))
    return Transfer(
        by,
        client,
        server,
        (*PYTHON, *_PROGRAMS[by], f"{over}://{{to}}:{port}/{name}", f"{duration / 10**12:g}"),
        partial(_reports, int(rate), "http" if over == "http" else "rtp"),
        server_argv=serving,
        port=port,
        flow=flow,
        may_fail=True,
        needs=("vlc",) if over == "rtsp" else (),
    )


def _reports(rate_bps: int, protocol: str, transfer: Transfer, output: Output) -> list[FlowReport]:
    lines = output.client.strip().splitlines()
    if output.client_end.returncode != 0 or not lines:
        said = output.errors.strip().splitlines()[-1:] or ["it said nothing"]
        raise ProgramFailed(f"{transfer.program} in {transfer.client} failed: {said[0]}")
    try:
        watched = json.loads(lines[-1])
        received = int(watched["bytes"])
        viewing = viewing_of(watched["samples"], watched["ended_s"], received, rate_bps)
    except (ValueError, KeyError, TypeError) as error:
        raise ReportUnreadable(f"the viewer's report cannot be read: {error}") from None
    return [
        FlowReport(
            flow=transfer.flow,
            protocol=protocol,
            role="client",
            start_ps=output.start_ps,
            end_ps=output.start_ps + round(watched["ended_s"] * 1e12),
            bytes=received,
            viewing=viewing,
        )
    ]


def viewing_of(samples: Sequence[tuple[float, float]], ended_s: float, received_bytes: int, rate_bps: int) -> Viewing:
    """Return what a viewer had: `samples` are pairs of seconds since the start and seconds of media played by then.

    Its rate is that of the bytes that it played; `rate_bps` is the rate that the clip was to have.

    Examples
    --------
    >>> seen = viewing_of([(0.5, 0.2), (1.5, 1.2), (4.0, 1.7)], ended_s=4.0, received_bytes=119_000, rate_bps=560_000)
    >>> seen.played_s, seen.stalls, seen.stalled_s, seen.startup_s, seen.rate_bps
    (1.7, 1, 2.0, 0.5, 560000.0)
    """
    shown = [(at, played) for at, played in samples if played > 0]
    if not shown:
        return Viewing(0.0, None, 0, 0.0, 0, None, {})
    stalls, stalled_s = 0, 0.0
    for (before, had), (at, has) in zip(shown, [*shown[1:], (ended_s, shown[-1][1])], strict=True):
        still_s = at - before - (has - had)
        if still_s >= _LEAST_STALL_S:
            stalls += 1
            stalled_s += still_s
    played_s = shown[-1][1]
    seen_bps = received_bytes * 8 / played_s
    return Viewing(played_s, shown[0][0], stalls, stalled_s, 0, seen_bps, {rate_bps: played_s})
