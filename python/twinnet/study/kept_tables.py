"""The tables of the runs that were looked at last, kept in memory: of thousands of runs they would fill it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import polars as pl

from twinnet.results.series import Cumulative
from twinnet.study.store import StoredRun

__all__ = ["Filters", "KeptTables"]

_KEPT_BYTES = 64 << 20
_COLUMN_BYTES = 2000
"""The memory that a column takes besides its values: most tables have more columns than rows."""

Filters = tuple[tuple[str, str], ...]
Kept = TypeVar("Kept")


class KeptTables:
    """The tables that are kept in memory: those of the runs that were looked at last, and the lines made of them.

    Parameters
    ----------
    most_bytes
        The size of all that is kept, in bytes, above which what was not looked at for the longest time is dropped. The
        last one is kept in any case.
    """

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._tables = _Recent[pl.DataFrame](self)
        self._lines = _Recent[Cumulative](self)

    def table(self, run: StoredRun, name: str) -> pl.DataFrame:
        """The table `name` of `run`, from memory or from its file."""
        return self._tables.get((id(run), name), lambda: run.table(name), _bytes_of)

    def made(self, run: StoredRun, key: object, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """The table that `make` makes of those of `run`, from memory where it was made before under this `key`."""
        return self._tables.get((id(run), key), make, _bytes_of)

    def line(self, run: StoredRun, name: str, filters: Filters, make: Callable[[], Cumulative]) -> Cumulative:
        """The line of the throughput `name` of `run`, from memory or by `make`."""
        key = (id(run), name, filters)
        return self._lines.get(key, make, lambda one: one.times_s.nbytes + one.bytes.nbytes)

    def shrink(self) -> None:
        """Drop what was not looked at for the longest time, until the rest is small enough."""
        while self.bytes > self.most_bytes and (len(self._tables) > 1 or len(self._lines) > 1):
            fuller = max(self._tables, self._lines, key=lambda kept: kept.bytes if len(kept) > 1 else -1)
            fuller.drop()


def _bytes_of(table: pl.DataFrame) -> int:
    return int(table.estimated_size()) + _COLUMN_BYTES * table.width


class _Recent(Generic[Kept]):
    """Values by key, in the order in which they were looked at."""

    def __init__(self, within: KeptTables) -> None:
        self.within = within
        self.bytes = 0
        self._kept: OrderedDict[object, tuple[Kept, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: object, make: Callable[[], Kept], size_of: Callable[[Kept], int]) -> Kept:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        made = make()
        size = size_of(made)
        self._kept[key] = made, size
        self.bytes += size
        self.within.bytes += size
        self.within.shrink()
        return made

    def drop(self) -> None:
        _, (_, size) = self._kept.popitem(last=False)
        self.bytes -= size
        self.within.bytes -= size
