"""A limit of processor time for one program: a control group (cgroup, version 1 or 2) with a quota, as containers have.

The program enters the group itself, by the open file :attr:`ProcessorLimit.entrance`: hosts of a lab see no control
groups. The group goes when the program and its owner have gone, however they end.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twinnet.errors import NotAvailable

__all__ = ["ProcessorLimit", "why_no_limit"]

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
"""The kernel's own, and that of container runtimes."""
_REMOVE_WHEN_LEFT = 'cat >/dev/null; while [ -d "$0" ] && ! rmdir "$0" 2>/dev/null; do sleep 0.1; done'
"""It ends with its standard input, which its owner holds; a group that has members cannot be removed."""


def _parent() -> Path | None:
    """Return the folder in which groups with a quota can be made, `None` where there is none."""
    first = _ROOT / "cpu"
    if (first / "cpu.cfs_quota_us").exists() or (first / "cgroup.procs").exists():
        return first if os.access(first, os.W_OK) else None
    subtree = _ROOT / "cgroup.subtree_control"
    if subtree.exists() and "cpu" in subtree.read_text().split():
        return _ROOT if os.access(_ROOT, os.W_OK) else None
    return None


def why_no_limit() -> str | None:
    """Return why processor time cannot be limited here, `None` where it can."""
    if _parent() is not None:
        return None
    return f"no control group with a processor quota can be made under {_ROOT}; this needs root and the controller cpu"


class ProcessorLimit:
    """A control group that may take a share of the processors' time.

    Parameters
    ----------
    processors
        The time that its programs may take together, in processors: 0.5 is half of one.

    Raises
    ------
    NotAvailable
        This machine does not permit it.
    """

    def __init__(self, processors: float) -> None:
        parent = _parent()
        if parent is None:
            raise NotAvailable(why_no_limit() or "", "run as root, or leave 'processors' out")
        self.folder: Path = parent / f"twinnet-{os.getpid()}-{id(self):x}"
        try:
            self.folder.mkdir()
            quota_us = max(1000, round(processors * _PERIOD_US))
            if (self.folder / "cpu.cfs_quota_us").exists():
                (self.folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (self.folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (self.folder / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
            self.entrance: int = os.open(self.folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            if self.folder.exists():
                self.folder.rmdir()
            raise NotAvailable(f"the control group could not be made: {error}", "leave 'processors' out") from None
        self._keeper = subprocess.Popen(
            ["sh", "-c", _REMOVE_WHEN_LEFT, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )

    def end(self) -> None:
        """Remove the group as soon as its programs have ended; a second call does nothing."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            os.close(self.entrance)
            self._keeper.stdin.close()
            self._keeper.wait()
