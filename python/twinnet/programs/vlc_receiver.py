"""Receives RTP by VLC: run as ``python -m twinnet.programs.vlc_receiver PORT FILE`` in a host.

VLC's own front end refuses to run as root (see `vlc_sender`). What it takes out of the stream is written to FILE as a
transport stream until this program gets a signal to end.
"""

from __future__ import annotations

import signal
import sys
import time

from twinnet.programs.vlc_library import FAILED, start_vlc

__all__ = ["main"]

_CACHE_MS = 300
"""VLC gives each packet this long to arrive; it is written when that is over."""
_POLL_S = 0.05


def main(port: str, file: str) -> int:
    """Write what arrives at `port` to `file`; return the exit status."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        library, instance = start_vlc()
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    media = library.libvlc_media_new_location(instance, f"rtp://@:{port}".encode())
    for option in (f":network-caching={_CACHE_MS}", f":sout=#standard{{access=file,mux=ts,dst={file}}}"):
        library.libvlc_media_add_option(media, option.encode())
    player = library.libvlc_media_player_new_from_media(media)
    if library.libvlc_media_player_play(player) != 0:
        print(f"VLC cannot receive at port {port}", file=sys.stderr)
        return 1
    while not ended and library.libvlc_media_player_get_state(player) != FAILED:
        time.sleep(_POLL_S)
    time.sleep(2 * _CACHE_MS / 1000)
    # What the multiplexer holds is written when the player stops.
    library.libvlc_media_player_stop(player)
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
