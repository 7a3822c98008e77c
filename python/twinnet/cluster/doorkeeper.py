"""The limits of those who have shown no certificate yet: how long, and how many of them at once.

A connection that was made and says nothing costs a descriptor. The oldest ones go first: who has a certificate shows it
within milliseconds.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import Any

__all__ = ["PATIENCE_S", "Doorkeeper", "guard"]

PATIENCE_S = 10.0
"""A handshake may take so long, in seconds."""
_MOST = 256
_MOST_OF_ONE = 64
_SHARE = 4
"""Of the files that the process may open, handshakes take one in this many at most."""


class Doorkeeper:
    """Ends handshakes that take too long, and the oldest ones where there are too many.

    Parameters
    ----------
    most, most_of_one
        How many there may be at once, and from one address.
    patience_s
        How long each may take, in seconds.
    """

    def __init__(self, most: int, most_of_one: int, patience_s: float = PATIENCE_S) -> None:
        self.most: int = most
        self.most_of_one: int = most_of_one
        self.patience_s: float = patience_s
        self._at_door: OrderedDict[int, tuple[str, Any]] = OrderedDict()
        self._count = 0

    def watch(self, listener: Any) -> None:
        """Stand at `listener`, one of the engine's."""
        prepare = listener._prepare_stream

        async def guarded(stream: Any, address: str) -> Any:
            number = self._enter(address.rpartition(":")[0], stream)
            prepared = None
            try:
                prepared = await asyncio.wait_for(prepare(stream, address), self.patience_s)
            except TimeoutError:
                # It is closed below.
                pass
            finally:
                self._at_door.pop(number, None)
                if prepared is None:
                    stream.close()
            return prepared

        listener._prepare_stream = guarded

    def _enter(self, address: str, stream: Any) -> int:
        from_there = [number for number, (other, _) in self._at_door.items() if other == address]
        if len(from_there) >= self.most_of_one:
            self._send_away(from_there[0])
        elif len(self._at_door) >= self.most:
            self._send_away(next(iter(self._at_door)))
        self._count += 1
        self._at_door[self._count] = (address, stream)
        return self._count

    def _send_away(self, number: int) -> None:
        self._at_door.pop(number)[1].close()


def guard(server: Any) -> None:
    """Put a doorkeeper at every door of `server`, a scheduler or a worker of the engine that listens."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = _MOST if limit == resource.RLIM_INFINITY else max(2, min(_MOST, limit // _SHARE))
    keeper = Doorkeeper(most, max(1, min(_MOST_OF_ONE, most // 2)))
    for listener in server.listeners:
        keeper.watch(listener)
