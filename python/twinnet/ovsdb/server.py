"""The server: requests of its clients on one database, from one thread (RFC 7047, 4.1).

Clients that send what is no message are left. Those that do not read what they asked for are left too.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, cast

from twinnet.ovsdb.database import Database, Row, Tables
from twinnet.ovsdb.messages import Messages
from twinnet.ovsdb.schema import TableSchema
from twinnet.ovsdb.values import BadValue

__all__ = ["RequestRefused", "Server"]

_AT_ONCE_BYTES = 1 << 16
_MOST_UNREAD_BYTES = 1 << 24
_MOST_CLIENTS = 256
_BACKLOG = 64


class Server:
    """Serves `database` at the sockets that it is given.

    Parameters
    ----------
    database
        The rows.
    before
        Called before a request reads or changes rows. It may raise `RequestRefused`.
    after
        Called after a transaction that may have changed rows.
    renewal_s
        While a client wants to hear of changes, `before` is called at least this often, in seconds, and whatever it
        changed is told; ``None``: whoever changes rows tells of it.

    Attributes
    ----------
    lock
        Held while a request is done; whoever else changes rows holds it too.
    """

    def __init__(
        self,
        database: Database,
        before: Callable[[], None],
        after: Callable[[], None],
        renewal_s: float | None = None,
    ) -> None:
        self._renewal_s = renewal_s
        self._renewed_s = time.monotonic()
        self.database = database
        self.lock: AbstractContextManager[bool] = threading.RLock()
        self._before = before
        self._after = after
        self._seen: Tables = database.tables
        self._identifier = str(uuid.uuid4())
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._clients: dict[socket.socket, _Client] = {}
        self._listeners: dict[str, socket.socket] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name="twinnet-ovsdb", daemon=True)
        self._thread.start()

    def listen(self, listeners: Mapping[str, Callable[[], socket.socket]]) -> None:
        """Listen at the sockets that `listeners` open, by their targets (``ptcp:6640``); leave those that are no longer
        there. Raises `OSError` when one cannot be opened."""
        with self.lock:
            for target in set(self._listeners) - set(listeners):
                self._selector.unregister(self._listeners[target])
                self._listeners.pop(target).close()
            for target, opens in listeners.items():
                if target not in self._listeners:
                    listener = opens()
                    listener.listen(_BACKLOG)
                    listener.setblocking(False)
                    self._listeners[target] = listener
                    self._selector.register(listener, selectors.EVENT_READ)
            self._rouse()

    def tell_changes(self) -> None:
        """Send the clients that asked for it what changed since they heard last."""
        with self.lock:
            old, self._seen = self._seen, self.database.tables
            if old is not self._seen:
                for client in list(self._clients.values()):
                    for identifier, wanted in client.monitors.values():
                        changed = _changes(self.database, old, self._seen, wanted)
                        if changed:
                            client.send({"method": "update", "params": [identifier, changed], "id": None})
                self._rouse()

    def end(self) -> None:
        """Close all sockets and end the thread."""
        self._ended = True
        self._rouse()
        self._thread.join()

    def _rouse(self) -> None:
        if threading.current_thread() is not self._thread:
            with suppress(OSError):
                self._wake.send(b"x")

    def _serve(self) -> None:
        while not self._ended:
            for key, events in self._selector.select(self._renew()):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._woken:
                    sock.recv(_AT_ONCE_BYTES)
                elif sock in self._clients:
                    self._attend(self._clients[sock], events)
                else:
                    self._accept(sock)
            for client in list(self._clients.values()):
                self._settle(client)
        for sock in [*self._clients, *self._listeners.values(), self._wake, self._woken]:
            sock.close()
        self._selector.close()

    def _renew(self) -> float | None:
        """Tell clients that want to hear of changes what has changed by itself, when it is time. Return the time until
        then, in seconds; ``None``: there is none."""
        if self._renewal_s is None or not any(client.monitors for client in self._clients.values()):
            return None
        left_s = self._renewed_s + self._renewal_s - time.monotonic()
        if left_s > 0:
            return left_s
        # What cannot be read now is read when somebody asks for it, and is told why it cannot.
        with self.lock, suppress(RequestRefused):
            self._before()
            self.tell_changes()
        for client in list(self._clients.values()):
            self._settle(client)
        self._renewed_s = time.monotonic()
        return self._renewal_s

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            sock, _ = listener.accept()
            if len(self._clients) >= _MOST_CLIENTS:
                sock.close()
                return
            sock.setblocking(False)
            self._clients[sock] = _Client(sock)
            self._selector.register(sock, selectors.EVENT_READ)

    def _attend(self, client: _Client, events: int) -> None:
        if not events & selectors.EVENT_READ:
            return
        try:
            piece = client.sock.recv(_AT_ONCE_BYTES)
            if not piece:
                client.over = True
            for message in client.messages.take(piece):
                with self.lock:
                    self._answer(client, message)
        except (OSError, BadValue):
            client.over = True

    def _settle(self, client: _Client) -> None:
        """Send what waits for the client, and leave it when it is over."""
        client.flush()
        if client.over or len(client.unsent) > _MOST_UNREAD_BYTES:
            self._selector.unregister(client.sock)
            del self._clients[client.sock]
            client.sock.close()
            return
        writes = selectors.EVENT_WRITE if client.unsent else 0
        self._selector.modify(client.sock, selectors.EVENT_READ | writes)

    def _answer(self, client: _Client, message: Mapping[str, Any]) -> None:
        method, parameters, number = message.get("method"), message.get("params"), message.get("id")
        if not isinstance(method, str):
            # An answer to an echo of ours: we send none.
            return
        if not isinstance(parameters, list):
            raise BadValue("a request without parameters")
        try:
            result, error = self._do(client, method, cast("list[Any]", parameters)), None
        except RequestRefused as refused:
            result, error = None, str(refused)
        except (BadValue, KeyError, IndexError, TypeError, ValueError, AttributeError) as wrong:
            result, error = None, f"syntax error: {wrong}"
        if number is not None:
            client.send({"id": number, "result": result, "error": error})

    def _do(self, client: _Client, method: str, parameters: Sequence[Any]) -> Any:
        match method:
            case "echo":
                return parameters
            case "list_dbs":
                return [self.database.schema.name]
            case "get_server_id":
                return self._identifier
            case "set_db_change_aware":
                return {}
            case "get_schema":
                self._known(parameters[0])
                return self.database.schema.text
            case "transact":
                self._known(parameters[0])
                self._before()
                before = self.database.tables
                results = self.database.transact(list(parameters[1:]))
                if self.database.tables is not before:
                    self._after()
                # Whoever sent it hears of its changes before it hears that they are done.
                self.tell_changes()
                return results
            case "monitor":
                return self._monitor(client, parameters)
            case "monitor_cancel":
                if client.monitors.pop(json.dumps(parameters[0]), None) is None:
                    raise RequestRefused("unknown monitor")
                return {}
            case "lock" | "steal":
                return {"locked": True}
            case "unlock":
                return {}
            case _:
                raise RequestRefused("unknown method")

    def _known(self, database: object) -> None:
        if database != self.database.schema.name:
            raise RequestRefused(f"unknown database {str(database)[:60]}")

    def _monitor(self, client: _Client, parameters: Sequence[Any]) -> dict[str, Any]:
        self._known(parameters[0])
        name = json.dumps(parameters[1])
        if name in client.monitors:
            raise RequestRefused("duplicate monitor ID")
        wanted: dict[str, list[_Monitored]] = {}
        for table, requests in parameters[2].items():
            schema = self.database.schema.tables.get(table)
            if schema is None:
                raise RequestRefused(f"no table named {str(table)[:60]}")
            every = cast("list[Any]", requests) if isinstance(requests, list) else [requests]
            wanted[table] = [_Monitored(schema, one) for one in every]
        self._before()
        self.tell_changes()
        client.monitors[name] = (parameters[1], wanted)
        empty: Tables = {table: {} for table in self.database.tables}
        return _changes(self.database, empty, self.database.tables, wanted, initial=True)


class RequestRefused(Exception):
    """A request that is answered with an error."""


class _Monitored:
    """What a client wants to hear of a table."""

    def __init__(self, schema: TableSchema, given: Mapping[str, Any]) -> None:
        self.columns: list[str] = list(given.get("columns", schema.columns))
        unknown = [one for one in self.columns if one not in schema.columns and not one.startswith("_")]
        if unknown:
            raise RequestRefused(f"no column named {unknown[0][:60]}")
        self.columns = [one for one in self.columns if one in schema.columns]
        self._select: Mapping[str, Any] = given.get("select", {})

    def wants(self, event: str) -> bool:
        """Whether the client wants to hear of ``initial``, ``insert``, ``delete`` or ``modify``."""
        return bool(self._select.get(event, True))


class _Client:
    """A connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.messages = Messages()
        self.monitors: dict[str, tuple[Any, dict[str, list[_Monitored]]]] = {}
        self.unsent = bytearray()
        self.over = False

    def send(self, message: Mapping[str, Any]) -> None:
        """Have `message` sent when the client reads."""
        self.unsent += json.dumps(message).encode()

    def flush(self) -> None:
        """Send what the client takes now."""
        try:
            while self.unsent:
                del self.unsent[: self.sock.send(self.unsent[:_AT_ONCE_BYTES])]
        except BlockingIOError:
            pass
        except OSError:
            self.over = True


def _changes(
    database: Database, old: Tables, new: Tables, wanted: Mapping[str, Sequence[_Monitored]], initial: bool = False
) -> dict[str, Any]:
    """Return what changed of the tables that are `wanted` (``<table-updates>``)."""
    found: dict[str, Any] = {}
    for table, requests in wanted.items():
        for identifier in {**old[table], **new[table]}:
            before, after = old[table].get(identifier), new[table].get(identifier)
            if before is after:
                continue
            event = "initial" if initial else "insert" if before is None else "delete" if after is None else "modify"
            update: dict[str, Any] = {}
            for one in (one for one in requests if one.wants(event)):
                _add_row(database.schema.tables[table], one.columns, before, after, update)
            if update:
                found.setdefault(table, {})[identifier] = update
    return found


def _add_row(
    schema: TableSchema, columns: Sequence[str], before: Row | None, after: Row | None, update: dict[str, Any]
) -> None:
    """Add to `update` (``<row-update>``) what `columns` say of a row."""
    changed = [one for one in columns if before is None or after is None or before[one] != after[one]]
    if not changed and before is not None:
        return
    if before is not None:
        update.setdefault("old", {}).update({one: schema.columns[one].encode(before[one]) for one in changed})
    if after is not None:
        update.setdefault("new", {}).update({one: schema.columns[one].encode(after[one]) for one in columns})
