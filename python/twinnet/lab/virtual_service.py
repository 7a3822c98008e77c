"""A lab on the virtual clock for other terminals: it speaks the lab protocol (docs/reference/lab-protocol.md) at the
lab's name.

Virtual time goes on while a request of a client is answered that waits for something, and stands between them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from twinnet.errors import LabError, TimeLimit, TwinnetError
from twinnet.lab.client_streams import Feeder, SlowReader, is_whole
from twinnet.lab.virtual_connection import LETS_TIME_PASS, no_programs
from twinnet.lab_process.job import PIPE
from twinnet.lab_process.packets import receive_with_descriptors, send

if TYPE_CHECKING:
    from twinnet.lab.virtual_connection import VirtualConnection
    from twinnet.lab.virtual_programs import VirtualJob
    from twinnet.lab_process.pending_reply import JsonObject

__all__ = ["VirtualService"]

_MOST_CLIENTS = 63
_STREAMS = 3
_OF_OWNER = ("start", "stop", "controller.open", "controller.close")
_CREDENTIALS = "3i"
_PICOSECONDS = 1e12
_Streams = dict[int, tuple[Feeder | None, Sequence[SlowReader]]]
"""What moves the streams of programs, by their numbers."""


class VirtualService:
    """Answers the clients of a lab until it is closed.

    Parameters
    ----------
    connection
        The lab.
    name
        Its name, unique among this user's running labs; ``None`` for a free one.

    Attributes
    ----------
    name
        Its name.

    Raises
    ------
    LabError
        When the name is taken, or cannot be one.
    """

    def __init__(self, connection: VirtualConnection, name: str | None) -> None:
        from twinnet import _core

        self._connection = connection
        claimed: tuple[str, int] = connection.guarded(lambda: _core.claim_lab(name))
        self.name: str = claimed[0]
        self._listener = socket.socket(fileno=claimed[1])
        self._clients: set[_Client] = set()
        self._streams: _Streams = {}
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="twinnet-clients", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more, and take leave of those who are there."""
        with self._lock:
            self._closed = True
            clients = list(self._clients)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for client in clients:
            client.end()
        for feeder, readers in self._streams.values():
            for stream in (feeder, *readers):
                if stream is not None:
                    stream.abandon()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                # No descriptor is left: it is tried again when one may be.
                self._connection.wait_closed(0.1)
                continue
            with self._lock:
                crowded = len(self._clients) >= _MOST_CLIENTS
                if self._closed or _user_of(sock) != os.geteuid() or crowded:
                    if crowded:
                        with contextlib.suppress(OSError):
                            send(sock, {"id": None, **_refusal(_too_many())})
                    sock.close()
                    continue
                client = _Client(self._connection, sock, self._streams, self._leave)
                self._clients.add(client)
                client.begin()

    def _leave(self, client: _Client) -> None:
        with self._lock:
            self._clients.discard(client)


class _Client:
    """One client: a thread reads its requests, and each that takes time has a thread of its own."""

    def __init__(
        self,
        connection: VirtualConnection,
        sock: socket.socket,
        streams: _Streams,
        leave: Callable[[_Client], None],
    ) -> None:
        self._connection = connection
        self._socket = sock
        self._leave = leave
        self._gone = False
        self._sending = threading.Lock()
        self._streams = streams
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve, name="twinnet-client", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Take leave of it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        try:
            while True:
                request, descriptors = receive_with_descriptors(self._socket)
                if request is None:
                    break
                self._take(request, descriptors)
        except (OSError, ValueError, KeyError):
            # It talks nonsense, or broke off.
            pass
        # Its programs go on when time does, and keep its streams.
        self._gone = True
        for thread in self._threads:
            thread.join()
        self._socket.close()
        self._leave(self)

    def _take(self, request: dict[str, Any], descriptors: list[int]) -> None:
        number, do = request.pop("id"), request.pop("do")
        if do not in ("spawn", "wait", *LETS_TIME_PASS):
            self._answer(number, lambda: self._at_once(do, request), descriptors)
            return
        works = {"spawn": lambda: self._spawn(request, descriptors), "wait": lambda: self._wait(request)}
        work = works.get(do, lambda: self._connection.let_time_pass({"do": do, **request}, self._has_gone))
        thread = threading.Thread(target=self._answer, args=(number, work, descriptors), daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _answer(self, number: object, work: Callable[[], Any], descriptors: list[int]) -> None:
        try:
            answer = {"ok": work()}
        except TwinnetError as error:
            answer = _refusal(error)
        except (TypeError, ValueError) as error:
            answer = _refusal(LabError(f"{error}", "see docs/reference/lab-protocol.md", "BadRequest"))
        finally:
            # Those that are still needed were duplicated.
            for descriptor in descriptors:
                os.close(descriptor)
        with self._sending, contextlib.suppress(OSError):
            send(self._socket, {"id": number, **answer})

    def _at_once(self, do: str, fields: dict[str, Any]) -> Any:
        if do in _OF_OWNER:
            raise LabError(f"{do!r} is for the lab's owner", "do it there", "BadRequest")
        if do == "jobs":
            return self._connection.jobs()
        answer = self._connection.answer(do, fields)
        return {**cast("JsonObject", answer), "clock": "virtual"} if do == "describe" else answer

    def _spawn(self, fields: dict[str, Any], descriptors: list[int]) -> Any:
        host, argv = str(fields.pop("host", "")), fields.pop("argv", [])
        programs = self._connection.programs
        if programs is None:
            raise _is_model(host)
        on_terminal = bool(fields.pop("terminal", False))
        wanted = 1 if on_terminal else _STREAMS
        if len(descriptors) != wanted:
            said = f"{len(descriptors)} descriptors came with the program; {wanted} are needed"
            remedy = 'send stdin, stdout and stderr, or with "terminal" the terminal alone'
            raise LabError(said, remedy, "BadDescriptors")
        if on_terminal:
            if not os.isatty(descriptors[0]):
                raise LabError("what came is no terminal", "send the end of a pseudo-terminal", "BadDescriptors")
            job = programs.start_on_terminal(host, argv, descriptors[0], fields)
            return {"job": job.number, "pid": job.pid}
        given, *outputs = descriptors
        readers = _readers(outputs)
        fed = not is_whole(given)
        try:
            job = programs.start(host, argv, PIPE if fed else given, readers, fields)
        except BaseException:
            for reader in readers:
                reader.abandon()
            raise
        feeder = Feeder(os.dup(given), lambda data: self._feed(job, data)) if fed else None
        self._streams[job.number] = (feeder, readers)
        return {"job": job.number, "pid": job.pid}

    def _has_gone(self) -> bool:
        return self._gone

    def _feed(self, job: VirtualJob, data: bytes | None) -> None:
        programs = self._connection.programs
        with contextlib.suppress(LabError):
            if programs is not None and not job.over:
                programs.feed(job.number, data)

    def _wait(self, fields: dict[str, Any]) -> Any:
        programs = self._connection.programs
        if programs is None:
            raise _is_model(None)
        job = programs.job(int(fields.get("job", 0)))
        feeder, readers = self._streams.get(job.number, (None, ()))
        if feeder is not None:
            feeder.settle()
        while not (job.over or self._gone):
            for reader in readers:
                reader.wait_for_room(self._has_gone)
            if not job.stand_until(lambda: job.over or self._gone or any(one.full for one in readers)):
                raise TimeLimit(f"{job.argv[0]} in {job.host} still runs at the end of the clock")
        for reader in readers:
            reader.wait_written(self._has_gone)
        ended = job.wait() if job.over else None
        if ended is None:
            raise LabError("the client has gone", name="LabClosed")
        code = ended.returncode
        return {
            "status": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "limit": ended.timed_out,
            "elapsed_ps": round(ended.elapsed_s * _PICOSECONDS),
        }


def _readers(descriptors: Sequence[int]) -> list[SlowReader]:
    """What writes to `descriptors`: one for those that lead to the same place, so that the order stays."""
    places: dict[tuple[int, int], SlowReader] = {}
    readers: list[SlowReader] = []
    for descriptor in descriptors:
        status = os.fstat(descriptor)
        place = (status.st_dev, status.st_ino)
        if (known := places.get(place)) is not None:
            known.join_in()
            readers.append(known)
        else:
            places[place] = SlowReader(os.dup(descriptor))
            readers.append(places[place])
    return readers


def _user_of(sock: socket.socket) -> int:
    size = struct.calcsize(_CREDENTIALS)
    return int(struct.unpack(_CREDENTIALS, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def _is_model(host: str | None) -> LabError:
    refusal = no_programs(host)
    return LabError(refusal.message, refusal.remedy, "ModelHost")


def _refusal(error: TwinnetError) -> dict[str, Any]:
    return {"error": {"name": error.name, "message": error.message, "remedy": error.remedy}}


def _too_many() -> LabError:
    message = f"the lab serves {_MOST_CLIENTS} clients already"
    return LabError(message, "end one of them", "TooManyClients")
