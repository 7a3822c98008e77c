"""Serves clips by VLC over RTSP: ``vlc_server.py PORT FOLDER``, run in a host.

VLC's own front end refuses to run as root (see `vlc_sender`). Each transport stream of FOLDER is video on demand under
the name of its file: every viewer has a stream of its own, which begins when it is asked for.
"""

from __future__ import annotations

import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["main"]

_LIBRARY = str(Path(__file__).with_name("vlc_library.py"))
# By its path this program imports nothing of the package: that would take each host seconds of a guest's processor.
_start_vlc: Callable[..., tuple[Any, Any]] = runpy.run_path(_LIBRARY)["start_vlc"]


def main(port: str, folder: str) -> int:
    """Serve the clips of `folder` at `port` until this program is told to end; return the exit status."""
    # The threads of VLC leave it to this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        library, instance = _start_vlc(f"--rtsp-port={port}")
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    for clip in sorted(Path(folder).glob("*.ts")):
        if library.libvlc_vlm_add_vod(instance, clip.stem.encode(), clip.as_uri().encode(), 0, None, 1, None) != 0:
            print(f"VLC cannot serve {clip}", file=sys.stderr)
            return 1
    signal.sigwait({signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
