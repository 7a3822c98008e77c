"""Controllers on the virtual clock. Time stands still while a controller has been given something and owes an answer.

At each moment: (1) all events of the network happen; (2) what the switches have to say goes to their controllers, one
connection after the other in the order of the switches in the description, and each controller is done before the next
is told; (3) what the controllers said goes to the switches in the same order. That is repeated until nobody has
anything to say; then time goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from twinnet.control.in_process import InProcess
from twinnet.errors import LabError

__all__ = ["ControlledLab", "Endpoint", "InProcessEndpoint", "Lockstep"]

_MOST_ROUNDS = 10_000


class ControlledLab(Protocol):
    """The interface of a lab on the virtual clock for the code that drives its controllers."""

    def take_control(self) -> Sequence[tuple[int, bytes, str | None]]:
        """Return what controllers are to get now: connection, messages, and why it is over then, if it is."""
        ...

    def give_control(self, connection: int, data: bytes) -> None:
        """A controller says `data`."""
        ...

    def open_control(self, switch: str, target: str) -> int:
        """Begin a connection of `switch` and return its number."""
        ...

    def close_control(self, connection: int) -> None:
        """The controller ended the connection."""
        ...


class Endpoint(Protocol):
    """The controllers' end of connections."""

    def deliver(self, connection: int, data: bytes) -> None:
        """Give `data` to the controller, and return when it is done."""
        ...

    def closed(self, connection: int, why: str, last: bytes) -> None:
        """The switch ended the connection; before that it said `last`."""
        ...

    def heard(self) -> Sequence[tuple[int, bytes]]:
        """Return what controllers have said since, by connection."""
        ...

    def lost(self) -> Sequence[int]:
        """Return the connections that controllers have ended since."""
        ...

    def end(self) -> None:
        """The lab has ended."""
        ...


class Lockstep:
    """Drives the controllers of a lab on the virtual clock."""

    def __init__(self, lab: ControlledLab) -> None:
        self._lab = lab
        self._endpoints: dict[int, Endpoint] = {}

    def add(self, connection: int, endpoint: Endpoint) -> None:
        """Let `endpoint` be the controllers' end of `connection`."""
        self._endpoints[connection] = endpoint

    def settle(self) -> None:
        """Let controllers and switches speak until nobody has anything to say at this moment.

        Raises
        ------
        LabError
            When they go on without an end.
        """
        for _ in range(_MOST_ROUNDS):
            self._hear()
            messages = self._lab.take_control()
            if not messages:
                return
            for connection, data, ending in messages:
                endpoint = self._endpoints.get(connection)
                if endpoint is None:
                    continue
                if ending is not None:
                    del self._endpoints[connection]
                    endpoint.closed(connection, ending, data)
                elif data:
                    endpoint.deliver(connection, data)
        raise LabError(
            f"switches and controllers have spoken {_MOST_ROUNDS} times at one moment of virtual time",
            "give links or the control channel a delay, or see why the controller repeats itself",
            "ControllerLoop",
        )

    def _hear(self) -> None:
        endpoints = {id(endpoint): endpoint for endpoint in self._endpoints.values()}.values()
        heard = [one for endpoint in endpoints for one in endpoint.heard()]
        lost = [one for endpoint in endpoints for one in endpoint.lost()]
        for connection, data in sorted(heard, key=lambda one: one[0]):
            if connection in self._endpoints:
                self._lab.give_control(connection, data)
        for connection in sorted(lost):
            if self._endpoints.pop(connection, None) is not None:
                self._lab.close_control(connection)

    def end(self) -> None:
        """The lab has ended."""
        for endpoint in {id(one): one for one in self._endpoints.values()}.values():
            endpoint.end()
        self._endpoints.clear()


class InProcessEndpoint:
    """An in-process controller as an :class:`Endpoint`."""

    def __init__(self, runtime: InProcess) -> None:
        self.runtime = runtime

    def deliver(self, connection: int, data: bytes) -> None:
        """Call the controller."""
        session = self.runtime.sessions.get(connection)
        if session is not None:
            session.receive(data)

    def closed(self, connection: int, why: str, last: bytes) -> None:
        """Tell the controller."""
        if last:
            self.deliver(connection, last)
        self.runtime.close(connection)

    def heard(self) -> Sequence[tuple[int, bytes]]:
        """Take what it has to say."""
        said: Mapping[int, bytes] = {number: session.take() for number, session in self.runtime.sessions.items()}
        return [(number, data) for number, data in said.items() if data]

    def lost(self) -> Sequence[int]:
        """It ends no connection by itself."""
        return ()

    def end(self) -> None:
        """The lab has ended."""
        self.runtime.end()
