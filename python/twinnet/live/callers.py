"""Who is connected to the page: those who have shown its token, and strangers, who must not keep them out.

Any user of the machine can connect to loopback. A stranger's connection lasts ten seconds at most, whatever is said on
it and however slowly. There are 32 of them at a time, and a further one takes the place of the oldest. They never count
against those whom the gate has let in.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["Callers", "PageServer"]

PATIENCE_S = 10.0
"""Seconds that a stranger's connection lasts."""
MOST_STRANGERS = 32
MOST_GUESTS = 64
_PAUSE_S = 0.05
"""Seconds until the next connection is taken where this process may open no more files."""

Address = tuple[str, int]


@dataclass
class _Caller:
    """A connection, from the moment when it is accepted."""

    since_s: float
    opening: asyncio.Task[None] | None = None
    transport: asyncio.Transport | None = None
    is_guest: bool = False

    @property
    def is_gone(self) -> bool:
        """True if it is closed, or its handshake has failed."""
        if self.transport is not None:
            return self.transport.is_closing()
        return self.opening is not None and self.opening.done()

    def end(self) -> None:
        """Close it at once, with what is not sent yet."""
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class Callers:
    """The connections to one page.

    The server tells of each connection (`accepted`), before anything is read from it; the gate tells who is let in.
    """

    def __init__(self) -> None:
        self._callers: dict[Address, _Caller] = {}

    def accepted(self, address: Address) -> _Caller:
        """Keep a new connection from `address`, a stranger's, and end the oldest one of strangers if there are too
        many."""
        caller = _Caller(asyncio.get_running_loop().time())
        self._prune()
        if len(self._strangers()) >= MOST_STRANGERS:
            self.end_oldest()
        self._callers[address] = caller
        return caller

    def let_in(self, scope: Scope) -> bool:
        """Count the connection of this request as one of those who have shown the token; false if there are too many.
        A connection that no server has told of is let in."""
        client = scope.get("client")
        caller = self._callers.get((client[0], client[1])) if client else None
        if caller is None or caller.is_guest:
            return True
        self._prune()
        caller.is_guest = sum(one.is_guest for one in self._callers.values()) < MOST_GUESTS
        return caller.is_guest

    def end_oldest(self) -> None:
        """End the connection that a stranger has had for longest."""
        if strangers := self._strangers():
            address = min(strangers, key=lambda one: self._callers[one].since_s)
            self._callers.pop(address).end()

    def end_late(self) -> None:
        """End the connections of strangers whose time is over."""
        before_s = asyncio.get_running_loop().time() - PATIENCE_S
        for address in self._strangers():
            if self._callers[address].since_s <= before_s:
                self._callers.pop(address).end()

    def end_strangers(self) -> None:
        """End the connections of all strangers."""
        for address in self._strangers():
            self._callers.pop(address).end()

    def _strangers(self) -> list[Address]:
        return [address for address, caller in self._callers.items() if not caller.is_guest]

    def _prune(self) -> None:
        self._callers = {address: caller for address, caller in self._callers.items() if not caller.is_gone}


class PageServer(uvicorn.Server):
    """A server that accepts connections at `listener` itself, so that those of strangers end, also in the midst of the
    handshake of TLS."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, callers: Callers) -> None:
        super().__init__(config)
        self._listener = listener
        self._callers = callers
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets=[])
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def on_tick(self, counter: int) -> bool:
        """Look ten times a second whose time is over."""
        self._callers.end_late()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept none any more, end those of strangers at once, and wait for the others."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._callers.end_strangers()
        await super().shutdown(sockets=[])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._callers.end_oldest()
                await asyncio.sleep(_PAUSE_S)
                continue
            caller = self._callers.accepted((str(address[0]), int(address[1])))
            caller.opening = asyncio.create_task(self._open(accepted, caller))
            # It may be cancelled before it begins.
            caller.opening.add_done_callback(partial(_close_unless_open, accepted, caller))

    async def _open(self, accepted: socket.socket, caller: _Caller) -> None:
        """Give the connection to the protocol, after the handshake where there is TLS."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(self._protocol, accepted, ssl=self.config.ssl)
        except (OSError, asyncio.CancelledError):
            # No handshake came of it, or its time was over.
            return
        caller.transport = transport

    def _protocol(self) -> asyncio.Protocol:
        # Its declared type has none of the arguments that the server gives it.
        made: Any = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _close_unless_open(accepted: socket.socket, caller: _Caller, _: asyncio.Task[None]) -> None:
    if caller.transport is None:
        accepted.close()
