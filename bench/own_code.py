"""Python of one's own beside what is built in: the same traffic on the virtual clock, by turns, in one process.

An event is what the code is called for: a datagram that is sent, a write that TCP took, a frame at a port, an
acknowledgement, a train of probes. The time is the processor time of this process, all of the simulation included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import twinnet as tn
from twinnet import bandwidth
from twinnet.traffic.connection import Connection
from twinnet.traffic.estimator import Train

from bench.figure import Figure
from bench.quiet import Quiet

TITLE = "Python of one's own beside what is built in, on the virtual clock"
MEASURES = (
    "bench/own_code.py",
    "crates/python/src",
    "crates/apps/src/own",
    "python/twinnet/traffic",
    "python/twinnet/qos/own.py",
)

_GAP_S = 1e-4
_WRITE = 20_000


class Sends(tn.Application):
    """A datagram of 1000 bytes each 100 us."""

    def started(self) -> None:
        """Begin."""
        self.next_s = self.now_s
        if self.sends:
            self.woken()

    def woken(self) -> None:
        """Send the next."""
        self.send(b"", 1000)
        self.next_s += _GAP_S
        self.wake_at(self.next_s)


class Writes(tn.Application):
    """Writes of 20 kB, as fast as TCP takes them."""

    def started(self) -> None:
        """Connect."""
        if self.sends:
            self.connect().write(length=_WRITE)

    def drained(self, connection: Connection) -> None:
        """Write the next."""
        connection.write(length=_WRITE)


class First(tn.qos.Discipline):
    """A FIFO of 50 frames."""

    def arrived(self, frame: tn.qos.own.Frame) -> None:
        """Drop what is too much."""
        if len(self.waiting) > 50:
            self.drop(frame)

    def next(self) -> tn.qos.own.Frame | None:
        """The oldest."""
        return next(iter(self.waiting), None)


class Halves(tn.CongestionControl):
    """Grows by a segment each round trip, and halves after a loss."""

    def acknowledged(self, told: Any) -> None:
        """Grow."""
        self.window += told.acknowledged / self.window

    def congested(self, why: str, in_flight: int, now_s: float) -> None:
        """Halve."""
        self.window = max(2.0, self.window / 2)


class HalvesEachRound(Halves):
    """The same, asked once a round trip."""

    once_a_round_trip = True

    def acknowledged(self, told: Any) -> None:
        """Grow."""
        self.window += 1


class Trains(tn.Estimator):
    """300 trains of 40 packets at half of the highest rate."""

    def probe(self) -> Generator[Train, Any, None]:
        """Send them."""
        for _ in range(300):
            heard = yield self.train(40, self.most_rate_bps / 2, idle_s=0.01)
            self.estimate_bps = heard.arrived_bps


@dataclass(frozen=True)
class _Way:
    """Traffic, the queue on its way, and how many events are in it from the report of its receiver."""

    start: Callable[[], Any]
    events: Callable[[Any], float]
    queue: Any = None


def _took(way: _Way) -> float:
    """Events a second of processor time."""
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1"), s1, rate="1 Gbit")
    net.link(s1, net.host("h2"), rate="100 Mbit", delay="5 ms", queue=way.queue)
    with net.simulate(seed=1) as lab:
        flow = lab.start(way.start())
        begun_s = time.process_time()
        lab.wait([flow])
        taken_s = time.process_time() - begun_s
        return way.events(flow.report()) / taken_s


def _packets(told: Any) -> float:
    return told.packets


def _writes(told: Any) -> float:
    return told.bytes / _WRITE


def _acknowledgements(told: Any) -> float:
    # One for each second full segment.
    return told.bytes / 1448 / 2


def _trains(told: Any) -> float:
    return told.bandwidth.trains


def _kinds(seconds: int) -> dict[str, tuple[_Way, _Way]]:
    """Own and built in, by what the events are."""
    apps, lasts = tn.apps, f"{seconds} s"

    def datagrams() -> Any:
        return apps.udp("h1", "h2", packets_per_second=1 / _GAP_S, payload="1000 B", duration=lasts)

    def bulk(control: Any) -> Callable[[], Any]:
        return lambda: apps.tcp_bulk("h1", "h2", duration=lasts, congestion_control=control)

    def estimate(method: Any) -> Callable[[], Any]:
        return lambda: bandwidth.bandwidth("h1", "h2", method, most_rate="50 Mbit")

    return {
        "application: datagrams": (
            _Way(lambda: apps.own("h1", "h2", of=Sends, duration=lasts), _packets),
            _Way(datagrams, _packets),
        ),
        "application: writes of 20 kB to TCP": (
            _Way(lambda: apps.own_tcp("h1", "h2", of=Writes, duration=lasts), _writes),
            _Way(bulk(None), _writes),
        ),
        "queue discipline: frames": (
            _Way(datagrams, _packets, tn.qos.Own(First)),
            _Way(datagrams, _packets, tn.qos.Fifo(limit_frames=50)),
        ),
        "congestion control: acknowledgements": (
            _Way(bulk(Halves), _acknowledgements),
            _Way(bulk("reno"), _acknowledgements),
        ),
        "congestion control, once a round trip: acknowledgements": (
            _Way(bulk(HalvesEachRound), _acknowledgements),
            _Way(bulk("reno"), _acknowledgements),
        ),
        "estimator: trains": (
            _Way(estimate(Trains), _trains),
            _Way(estimate("pathload"), _trains),
        ),
    }


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    seconds, repetitions = (1, 2) if quick else (2, 8)
    for name, (own, built_in) in _kinds(seconds).items():
        quiet.wait()
        found = [(_took(own), _took(built_in)) for _ in range(repetitions)]
        yield Figure(
            name,
            "events/s",
            [one for one, _ in found],
            {"built-in": [other for _, other in found]},
            note="events in a second of processor time, all of the simulation included",
        )
