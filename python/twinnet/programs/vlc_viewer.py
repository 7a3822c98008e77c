"""The program that a host of a viewer by VLC runs: ``python -m twinnet.programs.vlc_viewer URL SECONDS``.

VLC's own front end refuses to run as root, as which all programs of a lab run; its library does not. Pictures are
decoded, and shown nowhere.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Sequence

from twinnet.programs.vlc_library import ENDED, FAILED, Statistics, start_vlc

__all__ = ["main", "played_at_the_end"]

_POLL_S = 0.25
_STEP_S = 0.6
"""VLC gives the time of what it shows each 0.3 s; a busy machine misses one in between."""


def main(url: str, seconds: float) -> int:
    """Watch `url` for `seconds` at most, print what was seen as one line of JSON, and return the exit status."""
    try:
        library, instance = start_vlc("--vout=vdummy")
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    medium = library.libvlc_media_new_location(instance, url.encode())
    player = library.libvlc_media_player_new_from_media(medium)
    began = time.monotonic()
    if library.libvlc_media_player_play(player) != 0:
        print(f"VLC cannot play {url}", file=sys.stderr)
        return 1
    samples: list[tuple[float, float]] = []
    statistics = Statistics()
    received = 0
    while True:
        state = library.libvlc_media_player_get_state(player)
        at_s = time.monotonic() - began
        played_s = max(0, library.libvlc_media_player_get_time(player)) / 1000
        library.libvlc_media_get_stats(medium, ctypes.byref(statistics))
        received = max(received, statistics.demultiplexed_bytes)
        if state == ENDED:
            samples.append((at_s, played_at_the_end(samples, at_s)))
        if state in (ENDED, FAILED):
            break
        samples.append((at_s, max([played_s, *(before for _, before in samples[-1:])])))
        if at_s >= seconds:
            break
        time.sleep(min(_POLL_S, seconds - at_s))
    if state == FAILED and not received:
        print(f"VLC cannot open {url}", file=sys.stderr)
        return 1
    print(json.dumps({"samples": samples, "ended_s": min(time.monotonic() - began, seconds), "bytes": received}))
    sys.stdout.flush()
    return 0


def played_at_the_end(samples: Sequence[tuple[float, float]], at_s: float) -> float:
    """Return the seconds of media played when VLC has shown all of it, at `at_s`: what it said last, and what it has
    shown since."""
    played_s = max((played for _, played in samples), default=0.0)
    told_s = min((at for at, played in samples if played == played_s), default=at_s)
    return played_s + min(at_s - told_s, _STEP_S) if played_s else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
