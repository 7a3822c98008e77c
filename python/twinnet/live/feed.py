"""The newest state of the lab for all readers: who is slow misses some, and nothing is kept for anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["MOST_READERS", "Feed"]

MOST_READERS = 8


class Feed:
    """One place for the newest message, and the readers that wait for another one.

    `publish` puts a message there in the place of the one before. Each reader takes what is newest when it is ready for
    more. All of it runs in one event loop.

    Attributes
    ----------
    readers
        How many follow, at most `MOST_READERS`.
    """

    def __init__(self) -> None:
        self.readers: int = 0
        self._newest = b""
        self._number = 0
        self._ended = False
        self._changed = asyncio.Condition()

    @property
    def is_full(self) -> bool:
        """True if no further reader is let in."""
        return self.readers >= MOST_READERS

    @contextmanager
    def reader(self) -> Generator[None]:
        """Count as a reader meanwhile."""
        self.readers += 1
        try:
            yield
        finally:
            self.readers -= 1

    async def publish(self, message: bytes, last: bool = False) -> None:
        """Let all readers have `message`; after the last one their streams end."""
        async with self._changed:
            self._newest, self._ended = message, last
            self._number += 1
            self._changed.notify_all()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield messages from now on, always the newest, until the last one."""
        seen = self._number
        while True:
            async with self._changed:
                while self._number == seen and not self._ended:
                    await self._changed.wait()
                message, seen, ended = self._newest, self._number, self._ended
            yield message
            if ended:
                return
