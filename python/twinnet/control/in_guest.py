"""A controller that runs in a host of the network on the virtual clock: its timers are virtual as its switches are.

Each switch has a relay in that host, a program that connects to the controller and passes bytes on. So what a switch
says reaches the controller by TCP over the host's loopback, and the answer takes the virtual time that the system calls
on the way take.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol

from twinnet.control.program import end_of
from twinnet.control.targets import parse_target
from twinnet.interpreter import PYTHON
from twinnet.lab_process.job import DEVNULL, PIPE, Ending

__all__ = ["GuestController", "GuestJob", "GuestPrograms"]

_RELAY = """\
import os, select, socket, sys, time
while True:
    try:
        line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
        break
    except OSError:
        time.sleep(0.02)
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    ready = select.select([0, line], [], [])[0]
    if 0 in ready:
        said = os.read(0, 65536)
        if not said:
            break
        line.sendall(said)
    if line in ready:
        said = line.recv(65536)
        if not said:
            break
        while said:
            said = said[os.write(1, said):]
"""


class GuestJob(Protocol):
    """A program in a guest."""

    ending: Ending | None

    @property
    def over(self) -> bool:
        """Whether it has ended, or its host has."""
        ...

    def taken(self) -> bytes:
        """Return what it has written to its standard output since this was last called. No time passes."""
        ...


class GuestPrograms(Protocol):
    """The programs of a lab on the virtual clock."""

    def start(
        self, host: str, argv: Sequence[str], given: int, outputs: Sequence[int | IO[Any]], fields: Mapping[str, Any]
    ) -> GuestJob:
        """Start `argv` in `host`."""
        ...

    def feed_to(self, job: GuestJob, data: bytes | None) -> None:
        """Have `job` read `data`; ``None``: there will be no more."""
        ...


class GuestController:
    """The controller `run` in `host`; of switches that connect to `target` there.

    Parameters
    ----------
    programs
        The lab's programs.
    host, run, target
        Where and what it is.
    note
        Told switch, target and reason when a connection ends.

    Raises
    ------
    LabError
        It cannot be started.
    """

    def __init__(
        self,
        programs: GuestPrograms,
        host: str,
        run: str | Sequence[str],
        target: str,
        note: Callable[[str, str, str], None],
    ) -> None:
        self.argv: list[str] = shlex.split(run) if isinstance(run, str) else list(run)
        self._programs = programs
        self._host = host
        self._target = target
        self._note = note
        self._prepared: dict[str, GuestJob] = {}
        self._relays: dict[int, tuple[str, GuestJob]] = {}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._job = self._start(self.argv, DEVNULL, [self._output, self._output])

    def _start(self, argv: Sequence[str], given: int, outputs: Sequence[int | IO[Any]]) -> GuestJob:
        return self._programs.start(self._host, argv, given, outputs, {"env": None, "cwd": None, "limit_ps": None})

    def prepare(self, switch: str) -> None:
        """Start the relay of `switch`. This takes time, which does not go on while a switch has something to say: it
        is called for all switches before the first connects."""
        place = parse_target(self._target)
        relay = [*PYTHON, "-IS", "-c", _RELAY, place.address, str(place.port)]
        self._prepared[switch] = self._start(relay, PIPE, [PIPE, self._output])

    def connect(self, switch: str, connection: int) -> None:
        """Let the relay of `switch` serve its `connection`."""
        self._relays[connection] = (switch, self._prepared.pop(switch))

    def deliver(self, connection: int, data: bytes) -> None:
        """Give `data` to the relay: the controller reads it when time goes on."""
        if connection in self._relays:
            self._programs.feed_to(self._relays[connection][1], data)

    def closed(self, connection: int, why: str, last: bytes) -> None:
        """The switch ended the connection."""
        known = self._relays.pop(connection, None)
        if known is not None:
            self._programs.feed_to(known[1], last or None)
            if last:
                self._programs.feed_to(known[1], None)

    def heard(self) -> Sequence[tuple[int, bytes]]:
        """Return what the controller has said since, by connection."""
        said = [(connection, relay.taken()) for connection, (_, relay) in self._relays.items()]
        return [one for one in said if one[1]]

    def lost(self) -> Sequence[int]:
        """Return the connections that the controller has ended since."""
        ended = [connection for connection, (_, relay) in self._relays.items() if relay.over]
        for connection in ended:
            switch, _ = self._relays.pop(connection)
            words = self.last_words().splitlines()
            self._note(switch, self._target, f"it has closed the connection{f': {words[-1]}' if words else ''}")
        return ended

    @property
    def running(self) -> bool:
        """True if it has not ended."""
        return not self._job.over

    @property
    def status(self) -> int | None:
        """Its exit status; ``None`` while it runs."""
        return None if self._job.ending is None else self._job.ending.returncode

    def ends_within(self, _: float) -> bool:
        """Return whether it has ended: it does so in virtual time only."""
        return self._job.over

    def last_words(self) -> str:
        """Return the end of what it and its relays wrote."""
        return end_of(self._output)

    def end(self) -> None:
        """The lab has ended, and the guest with it."""
        self._relays.clear()

    def stop(self) -> None:
        """It ends with the guest."""
