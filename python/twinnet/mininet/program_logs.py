"""Where programs of a script's nodes write: a folder of the run's own, with a name in ``/tmp`` as Mininet has it."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from pathlib import Path

from twinnet.mininet.tool_doors import RUN_VARIABLE

__all__ = ["end_log", "new_log"]

_SHOWN = Path("/tmp")


def new_log(name: str) -> Path:
    """Return the path of a new log. Where ``/tmp/NAME`` is not another's, it leads there until :func:`end_log`: the
    same name may be a file of another user, or of another script that runs at the moment."""
    folder = os.environ.get(RUN_VARIABLE)
    shown = _SHOWN / name
    if folder is None:
        return shown
    log = Path(folder) / name
    with suppress(OSError):
        log.unlink(missing_ok=True)
        if shown.is_symlink() and not shown.exists():
            # A script that was killed has left it.
            shown.unlink()
        shown.symlink_to(log)
        # Scripts may end without stopping their network.
        atexit.register(_end_of, name, os.getpid())
    return log


def _end_of(name: str, process: int) -> None:
    if process == os.getpid():
        end_log(name)


def end_log(name: str) -> None:
    """Take the name in ``/tmp`` away, if it leads to our log."""
    folder, shown = os.environ.get(RUN_VARIABLE), _SHOWN / name
    with suppress(OSError):
        if folder is not None and shown.readlink() == Path(folder) / name:
            shown.unlink()
