"""Control groups that limit programs of hosts: made outside of the hosts' namespaces, where somebody may.

The groups of a lab or of a script's machine are folders below one that carries the number of the process that it
belongs to. Who made them removes them at the end, and those of processes that are no more. Both versions of the
kernel's interface do (cgroups(7)).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["ControlGroups"]

_FOLDER = Path("/sys/fs/cgroup")
_PREFIX = "twinnet-"
_PERIOD_US = 100_000


class ControlGroups:
    """The groups of one machine or lab; `owner` is the process that it belongs to."""

    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._version_1 = (_FOLDER / "cpu" / "cgroup.procs").exists()

    def processors(self, host: str, quota_us: int, period_us: int = _PERIOD_US) -> Path:
        """Let `host` use `quota_us` of processor time in each `period_us`; a quota below 0 is no limit. Return the file
        that takes its processes; raises `OSError` when that is not permitted."""
        group = self._group("cpu", host)
        if self._version_1:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us if quota_us > 0 else -1))
        else:
            (group / "cpu.max").write_text(f"{quota_us if quota_us > 0 else 'max'} {period_us}")
        return group / "cgroup.procs"

    def memory(self, host: str, most_bytes: int) -> Path:
        """Let `host` have `most_bytes` of memory; as :meth:`processors`."""
        group = self._group("memory", host)
        (group / ("memory.limit_in_bytes" if self._version_1 else "memory.max")).write_text(str(most_bytes))
        return group / "cgroup.procs"

    def limit_processors(self, host: str, process: int, quota_us: int, period_us: int) -> bool:
        """Limit `host`, whose shell is `process`, as :meth:`processors`; return whether that was permitted."""
        with suppress(OSError):
            self.processors(host, quota_us, period_us).write_text(str(process))
            return True
        return False

    def limit_memory(self, host: str, process: int, most_bytes: int) -> bool:
        """Limit `host`, whose shell is `process`, as :meth:`memory`; return whether that was permitted."""
        with suppress(OSError):
            self.memory(host, most_bytes).write_text(str(process))
            return True
        return False

    def join(self, host: str, process: int) -> bool:
        """Put `process` under the limits of `host`; return whether there are any."""
        groups = [group for root in self._roots() if (group := root / _plain(host) / "cgroup.procs").exists()]
        with suppress(OSError):
            for group in groups:
                group.write_text(str(process))
            return bool(groups)
        return False

    def end(self) -> None:
        """Remove the groups; what was in them has ended."""
        for root in self._roots():
            _remove(root)

    def _root(self, kind: str) -> Path:
        return (_FOLDER / kind if self._version_1 else _FOLDER) / f"{_PREFIX}{self._owner}"

    def _roots(self) -> Iterator[Path]:
        for kind in ("cpu", "memory") if self._version_1 else ("",):
            yield self._root(kind)

    def _group(self, kind: str, host: str) -> Path:
        """Return the folder of `host`, made."""
        self._remove_stale()
        root = self._root(kind)
        group = root / _plain(host)
        group.mkdir(parents=True, exist_ok=True)
        if not self._version_1:
            for folder in (root.parent, root):
                (folder / "cgroup.subtree_control").write_text(f"+{kind}")
        return group

    def _remove_stale(self) -> None:
        for root in self._roots():
            for folder in root.parent.glob(_PREFIX + "*"):
                owner = folder.name.removeprefix(_PREFIX)
                if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                    _remove(folder)


def _plain(host: str) -> str:
    return host.replace(os.sep, "_").lstrip(".") or "_"


def _remove(root: Path) -> None:
    if root.is_dir():
        for folder in [*(one for one in root.iterdir() if one.is_dir()), root]:
            # What still runs in it keeps it; who makes the next groups removes it then.
            with suppress(OSError):
                folder.rmdir()
