"""Streams a file by VLC: run as ``python -m twinnet.programs.vlc_sender CLIP SOUT`` in a host.

VLC's own front end refuses to run as root, as which all programs of a lab run; another user is not to be had in a lab
without root. VLC's library has no such rule, so this module is a front end to it. It reads nothing but the clip.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

__all__ = ["main"]

_ENDED, _ERROR = 6, 7
"""States of a player (libvlc_state_t)."""
_POLL_S = 0.05
_DRAIN_S = 2.5
"""The multiplexer holds 200 ms and the output 1.5 s when the file has been read to its end."""
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "libvlc_new": (ctypes.c_void_p, [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
    "libvlc_media_new_path": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "libvlc_media_add_option": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "libvlc_media_player_new_from_media": (ctypes.c_void_p, [ctypes.c_void_p]),
    "libvlc_media_player_play": (ctypes.c_int, [ctypes.c_void_p]),
    "libvlc_media_player_get_state": (ctypes.c_int, [ctypes.c_void_p]),
}


def main(clip: str, chain: str) -> int:
    """Stream the file `clip` through the stream output `chain`; return the exit status."""
    try:
        library: Any = ctypes.CDLL("libvlc.so.5")
    except OSError as error:
        print(f"VLC's library cannot be loaded: {error}", file=sys.stderr)
        return 1
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    options = [b"--no-audio", b"--intf=dummy", b"--quiet", b"--sout-keep"]
    instance = library.libvlc_new(len(options), (ctypes.c_char_p * len(options))(*options))
    if not instance:
        print("VLC did not start", file=sys.stderr)
        return 1
    media = library.libvlc_media_new_path(instance, clip.encode())
    library.libvlc_media_add_option(media, f":sout={chain}".encode())
    player = library.libvlc_media_player_new_from_media(media)
    if library.libvlc_media_player_play(player) != 0:
        print(f"VLC cannot play {clip}", file=sys.stderr)
        return 1
    while (state := library.libvlc_media_player_get_state(player)) not in (_ENDED, _ERROR):
        time.sleep(_POLL_S)
    time.sleep(_DRAIN_S)
    return 1 if state == _ERROR else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
