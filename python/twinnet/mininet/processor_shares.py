"""Control groups of the CPU controller for hosts of a script: made outside of its machine, where somebody may.

The groups of a machine are folders below one that carries the number of the process that made it. Its owner removes
them at the end, and those of owners that are no more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["ProcessorShares"]

_VERSION_1 = Path("/sys/fs/cgroup/cpu")
_VERSION_2 = Path("/sys/fs/cgroup")
_PREFIX = "twinnet-"


class ProcessorShares:
    """The groups of one machine; `owner` is the process that made it."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._version_1 = (_VERSION_1 / "cpu.cfs_quota_us").exists() or (_VERSION_1 / "cgroup.procs").exists()
        self._root: Path = (_VERSION_1 if self._version_1 else _VERSION_2) / f"{_PREFIX}{owner}"

    def limit(self, host: str, process: int, quota_us: int, period_us: int) -> bool:
        """Let `host`, whose shell is `process`, use `quota_us` of processor time in each `period_us`; a quota below 0
        is no limit. Return whether that was permitted."""
        group = self._root / _plain(host)
        try:
            self._remove_stale()
            group.mkdir(parents=True, exist_ok=True)
            if self._version_1:
                (group / "cpu.cfs_period_us").write_text(str(period_us))
                (group / "cpu.cfs_quota_us").write_text(str(quota_us if quota_us > 0 else -1))
            else:
                for folder in (self._root.parent, self._root):
                    (folder / "cgroup.subtree_control").write_text("+cpu")
                (group / "cpu.max").write_text(f"{quota_us if quota_us > 0 else 'max'} {period_us}")
            (group / "cgroup.procs").write_text(str(process))
        except OSError:
            return False
        return True

    def join(self, host: str, process: int) -> bool:
        """Put `process` under the limit of `host`; return whether there is one."""
        try:
            (self._root / _plain(host) / "cgroup.procs").write_text(str(process))
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Remove the groups; the machine has ended."""
        _remove(self._root)

    def _remove_stale(self) -> None:
        for folder in self._root.parent.glob(_PREFIX + "*"):
            owner = folder.name.removeprefix(_PREFIX)
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                _remove(folder)


def _plain(host: str) -> str:
    return host.replace(os.sep, "_").lstrip(".") or "_"


def _remove(root: Path) -> None:
    if root.is_dir():
        for folder in [*(one for one in root.iterdir() if one.is_dir()), root]:
            # What still runs in it keeps it; the next machine removes it then.
            with suppress(OSError):
                folder.rmdir()
