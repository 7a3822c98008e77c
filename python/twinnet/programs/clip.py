"""A video clip that ffmpeg makes: nothing is downloaded, and every machine can make it anew."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinnet.errors import BadValue, ProgramFailed, ProgramMissing
from twinnet.programs.transfer import require
from twinnet.units import Duration, Rate, duration_ps, rate_bps

__all__ = ["PICTURES", "Clip", "make_clip"]

PICTURES = ("testsrc2", "mandelbrot", "life", "cellauto")
"""The pictures that ffmpeg draws by itself."""
_ENCODER_THREADS = "2"
_ENCODERS = ("libx264", "mpeg4", "mpeg2video")
"""In the order in which they are taken: H.264 where ffmpeg was built with it."""
_SIZE = re.compile(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})")
_LONGEST_PS = 3600 * 10**12


@dataclass(frozen=True)
class Clip:
    """A clip in a transport stream.

    Parameters
    ----------
    path
        The file.
    encoder
        Which of ffmpeg's made it.
    frames
        How many frames it was to have.
    """

    path: Path
    encoder: str
    frames: int


def make_clip(
    path: str | os.PathLike[str],
    *,
    duration: Duration = "50 s",
    size: str = "800x600",
    frames_per_second: int = 60,
    rate: Rate = "1026 kbit",
    picture: str = "testsrc2",
    source: str | os.PathLike[str] | None = None,
) -> Clip:
    """Make a clip at `path` by ffmpeg; an existing file is replaced.

    Parameters
    ----------
    duration, size, frames_per_second
        What it shows; the preset is that of the multimedia study.
    rate
        Mean rate of the coded video.
    picture
        One of ``twinnet.programs.clip.PICTURES``.
    source
        A video whose pictures it has, in their own size, instead of drawn ones; it begins anew where it is too short.

    Raises
    ------
    ProgramMissing
        ffmpeg is not installed, or has no encoder that is known here.
    ProgramFailed
        ffmpeg failed.
    """
    require("ffmpeg")
    found = _SIZE.fullmatch(size)
    if found is None or any(int(side) % 2 for side in found.groups()):
        raise BadValue(f"the size {size!r} is not two even numbers of pixels", 'give for example size="800x600"')
    if picture not in PICTURES:
        raise BadValue(f"the picture {picture!r} is not known; allowed are {', '.join(PICTURES)}")
    if not 1 <= frames_per_second <= 240:
        raise BadValue(f"{frames_per_second} frames a second are out of range: 1 to 240")
    length_ps = duration_ps(duration, "duration")
    if not 0 < length_ps <= _LONGEST_PS:
        raise BadValue(f"the duration {duration!r} is out of range: above 0 s to 1 h")
    encoder = _encoder()
    drawn = ["-f", "lavfi", "-i", f"{picture}=size={size}:rate={frames_per_second}"]
    # Encoders take even numbers of pixels.
    fitted = ["-vf", f"fps={frames_per_second},scale=trunc(iw/2)*2:trunc(ih/2)*2", "-map", "0:v:0"]
    speed = ("-preset", "veryfast") if encoder == "libx264" else ()
    taken = drawn if source is None else ["-stream_loop", "-1", "-i", os.fspath(source), *fitted]
    length = ["-t", f"{length_ps / 1e12:.6f}", "-pix_fmt", "yuv420p"]
    coding = ["-c:v", encoder, *speed, "-b:v", str(rate_bps(rate, "rate")), "-g", str(frames_per_second)]
    # An encoder divides its work, and so its bytes, by the threads that it has: by itself, as many as processors.
    coding += ["-threads", _ENCODER_THREADS]
    # Without B frames, so that the times of frames survive protocols that carry one time for each.
    coding += ["-bf", "0"]
    form = ["-muxdelay", "0", "-muxpreload", "0", "-f", "mpegts", os.fspath(path)]
    run_ffmpeg([*taken, *length, *coding, *form], "make the clip")
    return Clip(Path(path), encoder, round(length_ps / 1e12 * frames_per_second))


def _encoder() -> str:
    listed = run_ffmpeg(["-encoders"], "list its encoders").stdout
    for encoder in _ENCODERS:
        if re.search(rf"^ V\S+ {encoder} ", listed, re.MULTILINE):
            return encoder
    raise ProgramMissing(
        f"this ffmpeg has none of the encoders {', '.join(_ENCODERS)}", "install your distribution's ffmpeg"
    )


def run_ffmpeg(arguments: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
    """Run ffmpeg here, outside of all hosts; raises `ProgramFailed` with what it said."""
    ended = subprocess.run(
        ["ffmpeg", "-hide_banner", "-nostdin", "-y", *arguments], capture_output=True, text=True, errors="replace"
    )
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines()[-1:] or [f"status {ended.returncode}"]
        raise ProgramFailed(f"ffmpeg could not {what}: {said[0]}")
    return ended
