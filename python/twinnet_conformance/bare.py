"""Our switch as a target: on a virtual clock, in this process, no sockets between."""

from __future__ import annotations

import json
from collections.abc import Sequence

from twinnet._core import BareSwitch

__all__ = ["Bare"]

PORTS = 4
LINE_BPS = 1_000_000_000


class Bare:
    """A switch of the fabric."""

    name = "twinnet"
    patience_s = 0.0
    takes_ports_down = True

    def __init__(self) -> None:
        self.reset()

    @property
    def ports(self) -> Sequence[int]:
        """Numbers of the ports."""
        return range(1, PORTS + 1)

    def reset(self) -> None:
        """Make another switch."""
        self._switch = BareSwitch(PORTS, rate_bps=LINE_BPS)
        self._connections: dict[int, BareConnection] = {}

    def connect(self, version: int) -> BareConnection:
        """Open a connection."""
        number = len(self._connections) + 1
        self._switch.open(number)
        self._connections[number] = BareConnection(self, number)
        return self._connections[number]

    def say(self, number: int, data: bytes) -> None:
        """Hand bytes of a controller to the switch."""
        self._switch.say(number, data)

    def end(self, number: int) -> None:
        """End a connection."""
        self._switch.close(number)

    def distribute(self) -> None:
        """Hand what the switch has said to its connections."""
        for number, data, ending in self._switch.heard():
            connection = self._connections[number]
            connection.waiting += data
            connection.closed = connection.closed or ending is not None

    def settle(self) -> None:
        """A barrier's answer is true."""

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame; a microsecond later it has passed every line."""
        self._switch.send(port, frame)
        self._switch.advance(100_000)

    def arrived(self) -> list[tuple[int, bytes]]:
        """Return what has come out."""
        self._switch.advance(100_000)
        return self._switch.arrived()

    def advance(self, seconds: float) -> None:
        """Turn the clock."""
        self._switch.advance(round(seconds * 1e9))

    def set_link(self, port: int, up: bool) -> None:
        """Take a line up or down."""
        self._switch.set_link(port, up)

    def set_queues(self, port: int, rates: Sequence[tuple[int, int]]) -> None:
        """Give `port` a hierarchical token bucket with these classes."""
        queues = {
            str(number): {"min_rate_bps": least, "max_rate_bps": most} for number, (least, most) in enumerate(rates)
        }
        self._switch.set_queue(port, json.dumps({"kind": "htb", "rate_bps": LINE_BPS, "queues": queues}))

    def stop(self) -> None:
        """Nothing is left behind."""


class BareConnection:
    """A connection of `Bare`."""

    def __init__(self, target: Bare, number: int) -> None:
        self._target = target
        self._number = number
        self.waiting = b""
        self.closed = False

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._target.say(self._number, data)

    def receive(self, patience_s: float) -> bytes:
        """Return what has come."""
        self._target.distribute()
        data, self.waiting = self.waiting, b""
        return data

    def close(self) -> None:
        """End it."""
        self.closed = True
        self._target.end(self._number)
