"""The switches of a running lab as Open vSwitch's database, for clients of OVSDB (RFC 7047) such as ``ovs-vsctl``.

Before a client reads, rows become what the switches are. What it writes is done before it hears that it is done, or
refused as a whole.
"""

from __future__ import annotations

import re
import socket
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from twinnet.control.owner_sockets import Listeners
from twinnet.control.targets import parse_listen
from twinnet.errors import BadValue, ControllerWarning, NotAvailable, TwinnetError
from twinnet.lab.database_limits import changed_controllers, check_changes
from twinnet.lab.database_rows import RowsOfLab, switches_of
from twinnet.lab.port_queues import DOOR, PortQueues, notes_on_queues
from twinnet.lab_process.connection import LabConnection
from twinnet.open_vswitch import is_open_vswitch
from twinnet.ovsdb.database import Database, Tables, TransactionRefused
from twinnet.ovsdb.draft import Draft
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.server import RequestRefused, Server

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["LabDatabase", "check_place"]

_PORT = 6640
"""The port of OVSDB (IANA)."""
_RENEWAL_S = 1.0


def check_place(place: str) -> None:
    """Raise `BadValue` unless OVSDB can be served at `place`."""
    if place.startswith("pssl:"):
        raise BadValue(f"{place!r}: OVSDB is not served over TLS", "write ptcp:6640, and use an SSH tunnel")
    if not re.match(r"ptcp:|punix:.", place):
        raise BadValue(f"{place!r} is no place to serve OVSDB", 'write "ptcp:6640" or "punix:/tmp/lab.db.sock"')
    parse_listen(place, _PORT)


class LabDatabase:
    """The database of a lab, served until it is stopped or the lab is; started by :meth:`twinnet.Lab.serve_ovsdb`.

    Parameters
    ----------
    lab
        The lab, which runs.
    places
        Where it is served, such as ``ptcp:6640``.
    tell
        Called with each note on what a client has written and has no effect, once; default: a `ControllerWarning`.

    Attributes
    ----------
    is_served
        False after its end.

    Raises
    ------
    BadValue
        A place is none.
    NotAvailable
        A place is not to be had, or the lab cannot be served so.
    """

    def __init__(self, lab: Lab, places: Sequence[str], tell: Callable[[str], None] | None = None) -> None:
        for place in places:
            check_place(place)
        _check_lab(lab)
        self._lab = lab
        self._tell = tell or _warn
        self._told: set[str] = set()
        self._queues = PortQueues(lab)
        self._database = Database(open_vswitch(), self._agree)
        self._sockets = Listeners()
        self.is_served: bool = True
        self._server = Server(self._database, self._renew, self._confirm, _RENEWAL_S)
        try:
            # All that may be refused is so before a client is let in.
            opened = {place: self._sockets.listen("OVSDB", place, _PORT) for place in places}
            self._server.listen({place: partial(_given, listener) for place, listener in opened.items()})
        except BaseException:
            self.stop()
            raise

    def __repr__(self) -> str:
        return f"<LabDatabase of {self._lab!r}>"

    def stop(self) -> None:
        """Serve it no more: clients are left, ports free and paths of sockets gone."""
        if not self.is_served:
            return
        self.is_served = False
        self._server.end()
        self._sockets.close()

    def __enter__(self) -> LabDatabase:
        """Return the database."""
        return self

    def __exit__(self, *_: object) -> None:
        """Serve it no more."""
        self.stop()

    def _renew(self) -> None:
        """Have the rows tell what the switches are."""
        draft = Draft(self._database)
        try:
            qos = self._queues.write(draft)
            RowsOfLab(self._lab, draft, qos).write()
        except (TwinnetError, OSError) as error:
            raise RequestRefused(f"the lab does not answer: {error}") from None
        try:
            self._database.put(draft.tables)
        except TransactionRefused as refused:
            # Two ports of one name, for example, which a lab may have and this database may not.
            raise RequestRefused(f"the lab is no database of Open vSwitch: {refused.details}") from None

    def _agree(self, wanted: Tables) -> None:
        """Do what a transaction asks for; raises `TransactionRefused`."""
        held = self._database.tables
        notes = check_changes(held, wanted)
        queues = self._queues.wanted(held, wanted)
        controllers = changed_controllers(held, wanted)
        done: dict[str, Sequence[str]] = {}
        with self._lab.by_hand.through(DOOR) as telling:
            told = [f"queue {port}: {queue.discipline}" for port, (_, queue) in queues.items()]
            told += [f"controllers of {one}: {' '.join(targets) or 'none'}" for one, targets in controllers.items()]
            telling.what = "; ".join(told)
            try:
                for switch, targets in controllers.items():
                    before: Sequence[str] = self._lab.layout.node(switch).get("controllers") or ()
                    self._lab.switch(switch).set_controllers(targets)
                    done[switch] = before
                self._queues.give(queues)
            except (TwinnetError, OSError, TransactionRefused) as refused:
                for switch, targets in done.items():
                    # Where the lab has ended there is nothing to undo.
                    with suppress(TwinnetError, OSError):
                        self._lab.switch(switch).set_controllers(targets)
                if isinstance(refused, TransactionRefused):
                    raise
                raise TransactionRefused("not supported", str(refused)) from None
        for note in dict.fromkeys(notes + notes_on_queues(held, wanted)):
            if note not in self._told:
                self._told.add(note)
                try:
                    self._tell(note)
                except Exception:
                    # Whoever is told has failed, and not the client, whose changes are made.
                    traceback.print_exc()

    def _confirm(self) -> None:
        """Tell clients that wait for it that what they wrote is done."""
        self._renew()
        rows = self._database.tables["Open_vSwitch"]
        done = {identifier: row | {"cur_cfg": row["next_cfg"]} for identifier, row in rows.items()}
        self._database.tables = {**self._database.tables, "Open_vSwitch": done}


def _given(listener: socket.socket) -> socket.socket:
    return listener


def _warn(note: str) -> None:
    # Where warnings are errors there is nobody in the server's thread to raise one to.
    with suppress(ControllerWarning):
        warnings.warn(f"OVSDB: {note}", ControllerWarning, stacklevel=2)


def _check_lab(lab: Lab) -> None:
    """Raise `NotAvailable` for a lab whose switches are no rows of one database here."""
    if lab.clock == "real":
        raise NotAvailable("a lab of physical machines has no switches of its own", "use net.emulate()")
    if lab.clock == "virtual":
        raise NotAvailable(
            "a lab on the virtual clock serves no OVSDB: its clients live in real time",
            "use net.emulate() (--clock wall); queues change by lab.switch(...).set_queue(...)",
        )
    if not isinstance(lab.connection, LabConnection):
        raise NotAvailable("a network on several machines serves no OVSDB", "leave its place away")
    other = next((node["name"] for node in switches_of(lab) if is_open_vswitch(node)), None)
    if other is not None:
        raise NotAvailable(
            f"{other} is Open vSwitch, with a database of its own in the lab",
            f'ask that one: lab.switch("{other}").open_vswitch.vsctl("show")',
        )
