"""VLC's library, as the front ends use it that run in hosts of a lab."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["ENDED", "FAILED", "Statistics", "start_vlc"]

ENDED, FAILED = 6, 7
"""States of a player that has come to its end (libvlc_state_t)."""


class Statistics(ctypes.Structure):
    """The counts of one medium (libvlc_media_stats_t)."""

    _fields_ = (
        ("read_bytes", ctypes.c_int),
        ("input_bitrate", ctypes.c_float),
        ("demultiplexed_bytes", ctypes.c_int),
        ("demultiplexed_bitrate", ctypes.c_float),
        ("corrupted", ctypes.c_int),
        ("discontinuities", ctypes.c_int),
        ("decoded_video", ctypes.c_int),
        ("decoded_audio", ctypes.c_int),
        ("displayed_pictures", ctypes.c_int),
        ("lost_pictures", ctypes.c_int),
        ("played_buffers", ctypes.c_int),
        ("lost_buffers", ctypes.c_int),
        ("sent_packets", ctypes.c_int),
        ("sent_bytes", ctypes.c_int),
        ("sent_bitrate", ctypes.c_float),
    )


_TEXT, _TEXTS = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "libvlc_new": (ctypes.c_void_p, [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
    "libvlc_media_new_path": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "libvlc_media_new_location": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "libvlc_media_add_option": (None, [ctypes.c_void_p, ctypes.c_char_p]),
    "libvlc_media_get_stats": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Statistics)]),
    "libvlc_media_player_new_from_media": (ctypes.c_void_p, [ctypes.c_void_p]),
    "libvlc_media_player_play": (ctypes.c_int, [ctypes.c_void_p]),
    "libvlc_media_player_stop": (None, [ctypes.c_void_p]),
    "libvlc_media_player_get_state": (ctypes.c_int, [ctypes.c_void_p]),
    "libvlc_media_player_get_time": (ctypes.c_int64, [ctypes.c_void_p]),
    "libvlc_vlm_add_vod": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT, ctypes.c_int, _TEXTS, ctypes.c_int, _TEXT]),
}


def start_vlc(*options: str) -> tuple[Any, Any]:
    """Return the library, its functions with their signatures, and an instance of VLC with `options` and without an
    interface; raise `OSError` where there is none."""
    try:
        library: Any = ctypes.CDLL("libvlc.so.5")
    except OSError as error:
        raise OSError(f"VLC's library cannot be loaded: {error}") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    words = [option.encode() for option in ("--no-audio", "--intf=dummy", "--quiet", *options)]
    instance = library.libvlc_new(len(words), (ctypes.c_char_p * len(words))(*words))
    if not instance:
        raise OSError("VLC did not start")
    return library, instance
