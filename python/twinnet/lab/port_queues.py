"""The queues at the ports of a running lab's switches, and their rows of QoS and Queue for clients of OVSDB."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinnet.errors import TwinnetError
from twinnet.lab.database_rows import switches_of
from twinnet.ovsdb.database import Row, Tables, TransactionRefused
from twinnet.ovsdb.draft import Draft
from twinnet.ovsdb.qos_rows import Refused, ineffective, qos_columns, queue_of
from twinnet.ovsdb.row_texts import first, map_of, strings_of
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.values import Reference
from twinnet.qos.fifo import Fifo
from twinnet.qos.queue import Queue
from twinnet.qos.queue_text import queue_from_spec

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["DOOR", "PortQueues", "notes_on_queues"]

DOOR = "OVSDB"
"""What tells of changes by clients of OVSDB."""
_SHAPES_NOTHING = ("", "linux-noop")
"""Types of QoS with which Open vSwitch leaves a port to send what it can."""


@dataclass(frozen=True)
class _Given:
    """A port with a row of QoS: the row, the queue that the port has since then, and the one that it had before."""

    identifier: str
    spec: Mapping[str, Any]
    before: Queue


class PortQueues:
    """Keeps rows and queues together. Queues that another process has given while the lab ran are unknown here.

    Parameters
    ----------
    lab
        The running lab.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._given: dict[str, _Given] = {}
        self._inner: dict[str, Mapping[str, Any]] = {}
        self._ports: dict[str, tuple[str, Mapping[str, Any]]] = {
            port["name"]: (node["name"], port) for node in switches_of(lab) for port in node["ports"]
        }

    def write(self, draft: Draft) -> dict[str, str]:
        """Write the rows of queues that did not come by OVSDB into `draft`, and return the row of QoS of each port that
        has one."""
        for port in self._ports:
            spec = self._spec(port)
            given = self._given.get(port)
            if given is not None and (given.spec != spec or given.identifier not in draft.tables["QoS"]):
                self._forget(draft, port)
            if port not in self._given and spec["kind"] == "htb":
                identifier = _write_rows(draft, spec)
                self._given[port] = _Given(identifier, spec, Fifo())
                # What rows do not tell stays with the row.
                queues = spec["queues"].items()
                self._inner[identifier] = {number: one["queue"] for number, one in queues if one.get("queue")}
        return {port: given.identifier for port, given in self._given.items()}

    def _forget(self, draft: Draft, port: str) -> None:
        """Leave the row of a port that has another queue; one that was written here goes, unless others have it."""
        identifier, qos = self._given.pop(port).identifier, draft.tables["QoS"]
        if identifier not in self._inner or any(given.identifier == identifier for given in self._given.values()):
            return
        del self._inner[identifier]
        gone = qos.pop(identifier, None)
        used = {one for row in qos.values() for one in _queues_of(row)}
        for queue in _queues_of(gone) - used if gone is not None else ():
            draft.tables["Queue"].pop(queue, None)

    def _spec(self, port: str) -> Mapping[str, Any]:
        """What waits at `port` in the form of the lab protocol, as far as this process knows."""
        if port in self._lab.queues_given:
            return self._lab.queues_given[port].to_spec()
        return self._ports[port][1].get("queue") or Fifo().to_spec()

    def _queue(self, port: str) -> Queue:
        """The same as a queue that can be given."""
        return self._lab.queues_given.get(port) or queue_from_spec(self._spec(port))

    def wanted(self, old: Tables, new: Tables) -> dict[str, tuple[str | None, Queue]]:
        """Return the ports for which the rows `new` ask for another queue than `old`, each with its row of QoS and that
        queue.

        Raises
        ------
        TransactionRefused
            The lab does not have such a queue.
        """
        rows_before = {str(first(row["name"])): row for row in old["Port"].values()}
        found: dict[str, tuple[str | None, Queue]] = {}
        for row in new["Port"].values():
            port = str(first(row["name"]))
            qos, held = first(row["qos"]), first(rows_before[port]["qos"])
            asked = _asked(new, port, qos)
            if qos != held or asked != _asked(old, port, held):
                found[port] = (None if qos is None else str(qos), self._wanted(port, str(qos), asked))
        return found

    def give(self, wanted: Mapping[str, tuple[str | None, Queue]]) -> None:
        """Give ports the queues that :meth:`wanted` has returned, all or none; raises `TransactionRefused`."""
        done: list[tuple[str, Queue, _Given | None]] = []
        for port, (qos, queue) in wanted.items():
            done.append((port, self._queue(port), self._given.get(port)))
            try:
                self._give(port, qos, queue)
            except (TwinnetError, OSError) as refused:
                self._undo(done)
                raise TransactionRefused("not supported", f"{port}: {refused}") from None

    def _wanted(self, port: str, qos: str, asked: dict[str, Any] | None) -> Queue:
        """The queue that `port` is to have; raises `TransactionRefused` where it can have none like that."""
        if port not in self._ports:
            raise TransactionRefused(
                "not supported", f"{port} is the switch's own port, leads nowhere and has no queue"
            )
        given = self._given.get(port)
        if asked is None:
            return self._queue(port) if given is None else given.before
        from pydantic import ValidationError

        try:
            return queue_from_spec(_with_inner(asked, self._inner.get(qos, {})))
        except ValidationError as error:
            said = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise TransactionRefused("constraint violation", f"{port}: {said}") from None

    def _give(self, port: str, qos: str | None, queue: Queue) -> None:
        given = self._given.get(port)
        before = self._queue(port) if given is None else given.before
        self._lab.switch(self._ports[port][0]).set_queue(port, queue)
        if qos is None:
            self._given.pop(port, None)
        else:
            self._given[port] = _Given(qos, queue.to_spec(), before)

    def _undo(self, done: list[tuple[str, Queue, _Given | None]]) -> None:
        for port, queue, given in reversed(done):
            # Where the lab has ended there is nothing to undo.
            with contextlib.suppress(TwinnetError, OSError):
                self._lab.switch(self._ports[port][0]).set_queue(port, queue)
            if given is None:
                self._given.pop(port, None)
            else:
                self._given[port] = given


def _queues_of(row: Row) -> set[str]:
    """The rows of Queue that a row of QoS names."""
    queues = row["queues"]
    return {str(one) for one in queues.values()} if isinstance(queues, Mapping) else set()


def _texts(tables: Tables, table: str, identifier: str) -> dict[str, str]:
    return strings_of(open_vswitch().tables[table], tables[table][identifier], {})


def _asked(tables: Tables, port: str, qos: object) -> dict[str, Any] | None:
    """The queue that a port's row of QoS asks for, in the form of the lab protocol; ``None``: none in particular."""
    if qos is None or first(tables["QoS"][str(qos)]["type"]) in _SHAPES_NOTHING:
        return None
    try:
        return queue_of(_texts(tables, "QoS", str(qos)), lambda one: _texts(tables, "Queue", one))
    except Refused as refused:
        raise TransactionRefused("not supported", f"{port}: {refused}") from None


def _with_inner(asked: dict[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """The queue `asked` with the queues `inner` in its classes of these numbers."""
    if asked["kind"] != "htb" or not inner:
        return asked
    queues = asked["queues"].items()
    return asked | {"queues": {number: one | {"queue": inner.get(number)} for number, one in queues}}


def _write_rows(draft: Draft, spec: Mapping[str, Any]) -> str:
    """Write rows that ask for the queue `spec`, and return that of QoS. They are always new: clients may have those of
    an earlier queue named elsewhere."""
    kind, settings, queues = qos_columns(spec)
    rows = {
        number: Reference(draft.put("Queue", str(uuid.uuid4()), {"other_config": map_of(columns)}))
        for number, columns in queues.items()
    }
    row: Row = {"type": (kind,), "other_config": map_of(settings), "queues": map_of(rows)}
    return draft.put("QoS", str(uuid.uuid4()), row)


def notes_on_queues(old: Tables, new: Tables) -> list[str]:
    """Return what is to be said of what was written to rows of QoS and Queue and has no effect."""
    notes: list[str] = []
    for table in ("QoS", "Queue"):
        for identifier, row in new[table].items():
            if row is old[table].get(identifier):
                continue
            notes += [f"{table}: {one}" for one in ineffective(_texts(new, table, identifier))]
            if table == "Queue" and row["dscp"]:
                notes.append(f"Queue: dscp={first(row['dscp'])} has no effect in a lab")
            if table == "QoS" and first(row["type"]) in _SHAPES_NOTHING:
                notes.append("QoS: without a type, or as linux-noop, it shapes nothing, as in Open vSwitch")
    return notes
