"""Programs in a lab on the virtual clock that another process owns."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any, cast

from twinnet.lab_process.job import Ending, Job

__all__ = ["AttachedJob"]


class AttachedJob(Job):
    """A program whose time another process lets pass: from the first call that waits for it, or reads what it writes,
    until it ends. See :class:`Job`."""

    def _begin(self) -> None:
        # Time stands until somebody wants to know.
        pass

    def poll(self) -> Ending | None:
        """Return how it ended, ``None`` while it runs. No time passes."""
        if self._asked is None:
            running = {row["job"] for row in self._connection.jobs() if row["state"] == "running"}
            if self.number in running:
                return None
        elif not self._asked.done():
            return None
        return self.wait()

    def communicate(self, given: bytes | None = None) -> tuple[bytes, bytes]:
        """Have the program read `given`, let time pass until it ends, and return stdout and stderr."""
        if given is None or self.stdin is None:
            return super().communicate(given)
        # All of it is there before time goes on.
        with self.stdin as stdin:
            stdin.write(given)
        self._fed()
        return super().communicate()

    def reader(self, pipe: int) -> IO[bytes]:
        """Return what reads `pipe`, which the program writes while time passes."""
        return cast("IO[bytes]", _Reader(pipe, self.ask))


class _Reader(io.FileIO):
    """The end of a program's pipe; `begin` is called before it is read."""

    def __init__(self, pipe: int, begin: Callable[[], object]) -> None:
        super().__init__(pipe, "rb")
        self._begin = begin

    def read(self, size: int | None = -1, /) -> bytes:
        self._begin()
        return super().read(-1 if size is None else size)

    def readinto(self, buffer: Any, /) -> int:
        self._begin()
        return super().readinto(buffer)
