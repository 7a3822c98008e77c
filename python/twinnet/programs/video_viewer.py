"""The program that a viewer's host runs: ffmpeg, watched by the clock.

``video_viewer.py URL SECONDS``. ffmpeg says how much it has played, but not when; and while it
waits for the network it says nothing.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

__all__ = ["main"]

_FFMPEG = ("ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", "-y")
_PROGRESS = ("-stats_period", "0.25", "-progress", "pipe:1")
_PROBE = ("-analyzeduration", "500000")
_COPY = ("-map", "0:v:0", "-c", "copy", "-f", "mpegts", "/dev/null")
_AT_ITS_RATE = {"http": ("-re",), "rtsp": ("-fflags", "+genpts")}
"""A server over HTTP sends as fast as it can, one over RTSP as fast as the film plays."""
_GRACE_S = 5.0


def main(url: str, seconds: float) -> int:
    """Watch `url` for `seconds` at most, print what was seen as one line of JSON, and return the exit status."""
    began = time.monotonic()
    words = [*_FFMPEG, *_PROGRESS, *_PROBE, *_AT_ITS_RATE[url.partition(":")[0]], "-i", url, *_COPY]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    timers = [
        threading.Timer(seconds, running.send_signal, [signal.SIGINT]),
        threading.Timer(seconds + _GRACE_S, running.kill),
    ]
    for timer in timers:
        timer.daemon = True
        timer.start()
    samples: list[tuple[float, float]] = []
    received, ended = 0, False
    assert running.stdout is not None
    for line in running.stdout:
        key, _, value = line.strip().partition("=")
        if key == "total_size" and value.isdigit():
            received = int(value)
        elif key == "out_time_us" and value.lstrip("-").isdigit():
            samples.append((time.monotonic() - began, max(0, int(value)) / 1e6))
        elif (key, value) == ("progress", "end"):
            ended = True
    status = running.wait()
    for timer in timers:
        timer.cancel()
    ended_s = time.monotonic() - began
    if not ended and ended_s < seconds:
        # It failed before its time; its own message is on standard error.
        return status or 1
    # Told at the end, the last sample has what was received and not yet shown.
    print(json.dumps({"samples": samples, "ended_s": min(ended_s, seconds), "bytes": received}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
