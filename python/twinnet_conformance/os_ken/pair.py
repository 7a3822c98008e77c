"""The two switches of the tests, with three cables between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from twinnet._core import CabledSwitches

from twinnet_conformance.bench import Channel
from twinnet_conformance.target import Target

__all__ = ["Ours", "Pair", "Shuttled", "paired"]

CABLES = 3
TARGET, TESTER = 0, 1
CONNECTION = 1


class Pair(Protocol):
    """A target and a tester, joined port by port."""

    target: Channel
    tester: Channel
    now_s: float
    """The time of the switches' clock."""
    measures: bool
    """Whether frames pass fast enough for tests that measure a rate."""

    def pass_on(self) -> None:
        """Let what is on the cables arrive."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def stop(self) -> None:
        """End what was started."""
        ...


class Ours:
    """Both switches ours, in one fabric."""

    measures = True

    def __init__(self, version: int) -> None:
        self._switches = CabledSwitches(CABLES)
        self._waiting = [b"", b""]
        self.now_s = 0.0
        self.target, self.tester = (self._join(switch, version) for switch in (TARGET, TESTER))

    def _join(self, switch: int, version: int) -> Channel:
        self._switches.open(switch, CONNECTION)
        channel = Channel(_Joined(self, switch), version, 0.0)
        channel.greet()
        return channel

    def say(self, switch: int, data: bytes) -> None:
        """Send bytes to a switch."""
        self._switches.say(switch, CONNECTION, data)

    def take(self, switch: int) -> bytes:
        """Return what a switch has said."""
        for teller, _, data, ending in self._switches.heard():
            self._waiting[teller] += data
            if ending is not None:
                raise OSError(f"the switch ended the connection: {ending}")
        taken, self._waiting[switch] = self._waiting[switch], b""
        return taken

    def pass_on(self) -> None:
        """A cable has no rate and no length: what was sent has arrived."""
        self.advance(1e-6)

    def advance(self, seconds: float) -> None:
        """Turn the clock."""
        self._switches.advance(round(seconds * 1e9))
        self.now_s += seconds

    def stop(self) -> None:
        """Nothing is left behind."""


class _Joined:
    """A controller's connection to one of `Ours`."""

    closed = False

    def __init__(self, pair: Ours, switch: int) -> None:
        self._pair = pair
        self._switch = switch

    def send(self, data: bytes) -> None:
        self._pair.say(self._switch, data)

    def receive(self, patience_s: float) -> bytes:
        return self._pair.take(self._switch)

    def close(self) -> None:
        """The switches go with the pair."""


class Shuttled:
    """Any two switches: frames that come out of one are handed to the other."""

    measures = False

    def __init__(self, target: Target, tester: Target, version: int) -> None:
        self._ends = (target, tester)
        for end in self._ends:
            end.reset()
        self.now_s = 0.0
        self.target, self.tester = (self._join(end, version) for end in self._ends)

    def _join(self, end: Target, version: int) -> Channel:
        channel = Channel(end.connect(version), version, end.patience_s)
        channel.greet()
        return channel

    def pass_on(self) -> None:
        """Hand frames over until none is left."""
        target, tester = self._ends
        quiet = False
        while not quiet:
            quiet = True
            for giver, taker in ((tester, target), (target, tester)):
                giver.settle()
                for port, frame in giver.arrived():
                    if port <= CABLES:
                        taker.send(port, frame)
                        quiet = False

    def advance(self, seconds: float) -> None:
        """Let time pass at both."""
        for end in self._ends:
            end.advance(seconds)
        self.now_s += seconds

    def stop(self) -> None:
        """Close the connections; the switches are the caller's."""
        for channel in (self.target, self.tester):
            channel.connection.close()


def paired(ends: Sequence[Target]) -> Callable[[int], Pair]:
    """Return what makes a pair for a version: of a target and a tester that are given, or both ours."""

    def make(version: int) -> Pair:
        return Shuttled(ends[0], ends[1], version) if ends else Ours(version)

    return make
