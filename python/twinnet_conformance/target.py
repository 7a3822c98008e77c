"""What a switch under test is to the cases: controllers' connections, frames at its ports, and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Connection", "NotPossible", "Target"]


class NotPossible(Exception):
    """This switch cannot be brought into the situation that the case needs; the case counts as not run."""


class Connection(Protocol):
    """A controller's end of a connection, as bytes."""

    def send(self, data: bytes) -> None:
        """Send bytes to the switch."""
        ...

    def receive(self, patience_s: float) -> bytes:
        """Return what has come since the last call; wait up to `patience_s` for something. Empty: nothing came."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the switch has ended it."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Target(Protocol):
    """A switch under test, with four ports."""

    name: str
    patience_s: float
    """How long an answer may take. Zero: what is to come has come when a call returns."""

    takes_ports_down: bool
    """Whether its devices stop when the switch takes them down."""

    @property
    def ports(self) -> Sequence[int]:
        """Numbers of four ports."""
        ...

    def connect(self, version: int) -> Connection:
        """Return a new connection, over which the controller has sent nothing yet; it will speak `version`."""
        ...

    def settle(self) -> None:
        """Wait until frames meet what barriers have answered, for a switch that answers them too early.

        Only the cases about barriers themselves go without it.
        """
        ...

    def send(self, port: int, frame: bytes) -> None:
        """Let the host at `port` send a frame, and wait until the switch has dealt with it."""
        ...

    def arrived(self) -> list[tuple[int, bytes]]:
        """Return the frames that have come to hosts since the last call, by port in the order of their arrival."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def set_link(self, port: int, up: bool) -> None:
        """Take the line at `port` up or down."""
        ...

    def set_queues(self, port: int, rates: Sequence[tuple[int, int]]) -> None:
        """Give `port` queues 0, 1, ... with these minimum and maximum rates in bits per second."""
        ...

    def reset(self) -> None:
        """Bring the switch into the state of one that has just been started, for the next case."""
        ...

    def stop(self) -> None:
        """End what was started for it."""
        ...
