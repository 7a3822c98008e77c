"""Streams a file by VLC: run as ``python -m twinnet.programs.vlc_sender CLIP SOUT`` in a host.

VLC's own front end refuses to run as root, as which all programs of a lab run; another user is not to be had in a lab
without root. VLC's library has no such rule, so this module is a front end to it. It reads nothing but the clip.
"""

from __future__ import annotations

import sys
import time

from twinnet.programs.vlc_library import ENDED, FAILED, start_vlc

__all__ = ["main"]

_POLL_S = 0.05
_DRAIN_S = 2.5
"""The multiplexer holds 200 ms and the output 1.5 s when the file has been read to its end."""


def main(clip: str, chain: str) -> int:
    """Stream the file `clip` through the stream output `chain`; return the exit status."""
    try:
        library, instance = start_vlc("--sout-keep")
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    media = library.libvlc_media_new_path(instance, clip.encode())
    library.libvlc_media_add_option(media, f":sout={chain}".encode())
    player = library.libvlc_media_player_new_from_media(media)
    if library.libvlc_media_player_play(player) != 0:
        print(f"VLC cannot play {clip}", file=sys.stderr)
        return 1
    while (state := library.libvlc_media_player_get_state(player)) not in (ENDED, FAILED):
        time.sleep(_POLL_S)
    time.sleep(_DRAIN_S)
    return 1 if state == FAILED else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
