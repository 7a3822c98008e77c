"""Changes that somebody makes by hand in a running lab: the record of them, which the lab's owner keeps.

The owner judges the run, so it has the record, for as long as the lab runs. Other processes that change its lab (the
live page, ``twinnet do``, a program that attached) tell it at an abstract address beside the lab's own: a packet with
the change, and one as the answer. What the owner's program does by itself is its plan, and no change by hand.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from twinnet.errors import TwinnetError
from twinnet.lab_process.pending_reply import JsonObject
from twinnet.open_vswitch.programs import HOST as OPEN_VSWITCH
from twinnet.results.changes_by_hand import ChangeByHand

__all__ = ["CHANGES", "ByHand", "Telling"]

CHANGES = frozenset(
    {
        "app.start",
        "app.stop",
        "controller.close",
        "controller.open",
        "flows.add",
        "flows.delete",
        "learnt.forget",
        "link.set",
        "queues.set",
        "schedule",
        "spawn",
    }
)
"""Requests of the lab protocol that change what the network or its hosts do."""

_TRAFFIC = frozenset({"app.start", "app.stop", "spawn"})
"""Those that leave the network as it is."""
_MOST_KEPT = 50
_LONGEST = 200
_PATIENCE_S = 2.0
_MOST_BYTES = 256 * 1024
_CREDENTIALS = "3i"
_ATTACHED = "another program"


@dataclass
class Telling:
    """A change that is being made.

    Attributes
    ----------
    door
        By what it is made.
    what
        It in one line; empty: the requests that make it.
    is_told
        Whether it is one although no request has changed anything.
    known
        It in one line where that is known before; it is noted then.
    is_kept
        False if the owner did not take it into the record.
    at_s, requests
        The lab's time after the last of the requests that made it, and their names.
    """

    door: str
    what: str = ""
    is_told: bool = False
    known: str = ""
    is_kept: bool = True
    at_s: float = 0.0
    requests: list[str] = field(default_factory=list[str])


class ByHand:
    """The record of the changes by hand of one lab. Any thread may use it.

    Parameters
    ----------
    is_owner
        Whether this process has the lab, and so keeps the record.
    """

    def __init__(self, is_owner: bool) -> None:
        self._is_owner = is_owner
        self._address: str | None = None
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()
        self._kept: list[ChangeByHand] = []
        self._counts = {"changes": 0, "traffic": 0}
        self._of_thread = threading.local()
        self._thread: threading.Thread | None = None

    def open(self, lab_name: str) -> None:
        """Hear of changes of the lab `lab_name` at its address, or know where to tell of them."""
        self._address = f"\0twinnet-by-hand/{os.geteuid()}/{lab_name}"
        if not self._is_owner:
            return
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind(self._address)
            listener.listen()
        except OSError:
            # A stranger sits there: whoever changes the lab is told that nobody notes it.
            listener.close()
            return
        self._listener = listener
        self._thread = threading.Thread(target=self._hear, name="twinnet-by-hand", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear nothing any more; what is kept can still be read."""
        if self._listener is not None and self._thread is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._listener.close()
            self._listener = None

    @contextlib.contextmanager
    def through(self, door: str, what: str = "") -> Generator[Telling]:
        """Take the changes that this thread makes inside as one that was made by hand through `door`: `what`, which is
        noted with the first request that changes something, or what it is told to be until the end, also when a request
        fails."""
        if getattr(self._of_thread, "telling", None) is not None:
            yield self._of_thread.telling
            return
        telling = self._of_thread.telling = Telling(door)
        telling.known = what
        try:
            yield telling
        finally:
            del self._of_thread.telling
            if not what and (telling.requests or telling.is_told):
                is_traffic = _TRAFFIC.issuperset(telling.requests)
                told = telling.what or ", ".join(telling.requests)
                telling.is_kept = self.note(ChangeByHand(telling.at_s, telling.door, told, is_traffic))

    def changed(self, do: str, fields: Mapping[str, Any], now: Callable[[], float]) -> None:
        """Hear that the request `do` with `fields` has changed the lab, whose time in seconds `now` tells."""
        telling: Telling | None = getattr(self._of_thread, "telling", None)
        if (do == "spawn" and fields.get("host") == OPEN_VSWITCH) or (telling is None and self._is_owner):
            return
        at_s = math.nan
        # It is changed, whether or not the lab goes on to say when.
        with contextlib.suppress(TwinnetError, TimeoutError):
            at_s = now()
        if telling is None:
            self.note(ChangeByHand(at_s, _ATTACHED, f"{do} {json.dumps(_short(fields))}", do in _TRAFFIC))
            return
        telling.requests.append(do)
        telling.at_s = at_s
        if telling.known and len(telling.requests) == 1:
            telling.is_kept = self.note(ChangeByHand(at_s, telling.door, telling.known, do in _TRAFFIC))

    def note(self, change: ChangeByHand) -> bool:
        """Put `change` into the record; return whether it is there."""
        change = replace(change, door=_clipped(change.door), what=_clipped(change.what))
        if not self._is_owner:
            return self._asked({"note": asdict(change)}) is not None
        with self._lock:
            kind = "traffic" if change.is_traffic else "changes"
            self._counts[kind] += 1
            if self._counts[kind] <= _MOST_KEPT:
                self._kept.append(change)
        return True

    def record(self) -> JsonObject | None:
        """Return the record with the fields of :class:`~twinnet.results.changes_by_hand.ChangesByHand`; ``None`` where
        the owner keeps none."""
        if not self._is_owner:
            return self._asked({})
        with self._lock:
            return {**self._counts, "first": [asdict(change) for change in self._kept]}

    def _asked(self, packet: JsonObject) -> JsonObject | None:
        """What the owner answers to `packet`; ``None`` if nobody does."""
        if self._address is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(_PATIENCE_S)
            try:
                sock.connect(self._address)
                if _user_of(sock) != os.geteuid():
                    return None
                sock.send(_packed(packet))
                return cast("JsonObject", json.loads(sock.recv(_MOST_BYTES)))
            except (OSError, ValueError):
                return None

    def _hear(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock, contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
                # Whoever is silent is not waited for.
                sock.settimeout(_PATIENCE_S)
                if _user_of(sock) != os.geteuid():
                    continue
                asked = json.loads(sock.recv(_MOST_BYTES))
                if "note" in asked:
                    given = asked["note"]
                    texts = str(given["door"]), str(given["what"])
                    self.note(ChangeByHand(float(given["at_s"]), *texts, bool(given["is_traffic"])))
                    sock.send(b"{}")
                else:
                    sock.send(_packed(self.record()))


def _user_of(sock: socket.socket) -> int:
    size = struct.calcsize(_CREDENTIALS)
    return int(struct.unpack(_CREDENTIALS, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def _packed(value: JsonObject | None) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _short(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a request; the environment of a program is long, and may hold secrets."""
    return {name: value for name, value in fields.items() if name not in ("env", "cwd")}


def _clipped(text: str) -> str:
    """The text in one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
