"""Quality of a video at the receiver: frames that came whole, damaged or not at all, PSNR and SSIM."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from twinnet.errors import ProgramFailed
from twinnet.programs.clip import run_ffmpeg
from twinnet.results.media_report import Video

__all__ = ["judge_video", "size_of"]

_PSNR = re.compile(r"PSNR .*average:(\S+)")
_SSIM = re.compile(r"SSIM .*All:(\S+)")


@dataclass(frozen=True)
class _Frame:
    time: Fraction
    digest: str


def judge_video(sent: str | os.PathLike[str], received: str | os.PathLike[str]) -> Video:
    """Judge the video in the file `received` against that in `sent`, both as ffmpeg decodes them.

    Decoding is exact, so a frame that came with all it refers to has the digest of the one that was sent; these tell
    how the times of the two files belong together. A frame that is missing is judged by the one that was shown in its
    place; those before the first that came have no PSNR and SSIM.

    Raises
    ------
    ProgramFailed
        The file that was sent holds no video.
    """
    original = _frames(sent)
    seen = _frames(received) if size_of(received) else []
    if not seen:
        return Video(len(original), 0, 0, len(original), None, None)
    shift = _shift(original, seen)
    step = _step(original)
    arrived = {round((frame.time + shift) / step): frame.digest for frame in seen}
    fates = Counter(
        "lost" if digest is None else "intact" if digest == frame.digest else "damaged"
        for frame in original
        for digest in [arrived.get(round(frame.time / step))]
    )
    psnr, ssim = _compare(sent, received, shift - step / 4)
    return Video(len(original), fates["intact"], fates["damaged"], fates["lost"], psnr, ssim)


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes of the file at `path`; 0 when there is none."""
    return Path(path).stat().st_size if Path(path).exists() else 0


def _frames(path: str | os.PathLike[str]) -> list[_Frame]:
    """Time and digest of each decoded frame; none where ffmpeg finds no video that it can decode."""
    arguments = ["-v", "error", "-copyts", "-i", os.fspath(path), "-map", "0:v:0", "-vsync", "0", "-f", "framemd5", "-"]
    try:
        listed = run_ffmpeg(arguments, "decode the video").stdout
    except ProgramFailed:
        return []
    base = Fraction(1, 90_000)
    frames: list[_Frame] = []
    for line in listed.splitlines():
        if line.startswith("#tb 0:"):
            base = Fraction(line.partition(":")[2].strip())
        columns = [column.strip() for column in line.split(",")]
        if len(columns) == 6 and columns[2].lstrip("-").isdigit():
            frames.append(_Frame(int(columns[2]) * base, columns[5]))
    return frames


def _shift(original: list[_Frame], seen: list[_Frame]) -> Fraction:
    """Return the time to add to the received times: the difference that most pairs of equal frames have."""
    by_digest: defaultdict[str, list[Fraction]] = defaultdict(list)
    for frame in original:
        by_digest[frame.digest].append(frame.time)
    # A still picture has many equal frames; each says little then, and a few are enough.
    differences = Counter(time - frame.time for frame in seen for time in by_digest.get(frame.digest, [])[:50])
    if differences:
        return differences.most_common(1)[0][0]
    return (original[0].time if original else Fraction(0)) - seen[0].time


def _step(frames: list[_Frame]) -> Fraction:
    """The distance of frames: the one that most have."""
    times = sorted(frame.time for frame in frames)
    steps = Counter(later - before for before, later in pairwise(times) if later > before)
    return steps.most_common(1)[0][0] if steps else Fraction(1, 60)


def _compare(
    sent: str | os.PathLike[str], received: str | os.PathLike[str], shift: Fraction
) -> tuple[float | None, float | None]:
    """PSNR in dB (infinite for equal videos) and SSIM, over all frames that were sent."""
    graph = (
        f"[1:v]setpts=PTS+({float(shift):.9f})/TB,split[a][b];[0:v]split[c][d];[c][a]psnr[e];[d][b]ssim[f];"
        "[e]nullsink;[f]null[out]"
    )
    inputs = [part for path in (sent, received) for part in ("-copyts", "-i", os.fspath(path))]
    said = run_ffmpeg(
        ["-v", "info", *inputs, "-lavfi", graph, "-map", "[out]", "-vsync", "0", "-f", "null", "-"],
        "compare the videos",
    ).stderr
    psnr, ssim = _PSNR.search(said), _SSIM.search(said)
    return _number(psnr), _number(ssim)


def _number(found: re.Match[str] | None) -> float | None:
    if found is None:
        return None
    value = float(found.group(1))
    return None if math.isnan(value) else value
