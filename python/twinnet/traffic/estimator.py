"""Estimators of available bandwidth of one's own: Python classes that say which trains are sent, and judge them."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, cast

from twinnet.errors import BadValue
from twinnet.traffic.own_code import OwnCode, handed_once

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float64]

__all__ = ["Estimator", "Heard", "Train", "hand_to_the_core"]

_MOST_PACKETS = 1024
_LEAST_PAYLOAD = 22
"""What the prober writes into each probe, in bytes."""
_NS = 1e9


@dataclass(frozen=True)
class Train:
    """A train of probes that is to be sent.

    Parameters
    ----------
    at_s
        When each packet leaves, in seconds after the first, of 1 to 1024 packets.
    payload
        The UDP payload of each packet in bytes.
    idle_s
        The least silence before it, in seconds.
    """

    at_s: tuple[float, ...]
    payload: int
    idle_s: float = 0.0

    def to_spec(self) -> dict[str, Any]:
        """Return the form of the lab protocol; raises `BadValue` for a train that cannot be sent."""
        if not 1 <= len(self.at_s) <= _MOST_PACKETS:
            raise BadValue(f"a train of {len(self.at_s)} packets", f"1 to {_MOST_PACKETS} are allowed")
        rising = all(one <= other for one, other in zip(self.at_s, self.at_s[1:], strict=False))
        if not rising or self.at_s[0] < 0 or not all(map(math.isfinite, (*self.at_s, self.idle_s))):
            raise BadValue("the times of a train do not rise from 0", "give seconds after the first packet, in order")
        packets = [{"at_ns": round(at_s * _NS), "payload": self.payload} for at_s in self.at_s]
        return {"plan": {"packets": packets}, "idle_ns": self.idle_s * _NS}


@dataclass(frozen=True)
class Heard:
    """What became of a train, an entry for each of its packets.

    Attributes
    ----------
    sent_s
        When each left, in seconds after the first: on real hosts by the kernel's stamps where there are any, and not
        always when it was to leave.
    arrived_s
        When each arrived, in seconds after the first arrival; NaN: lost.
    delays_s
        How much longer each was on its way than the fastest of the train, in seconds; NaN: lost.
    packet_bytes
        The bytes of a packet at the layer of the estimate.
    overflowed
        Packets that the receiving host itself threw away.
    clock_stepped
        True if a clock was set meanwhile: the times are of no use then.
    """

    sent_s: Vector
    arrived_s: Vector
    delays_s: Vector
    packet_bytes: float
    overflowed: int = 0
    clock_stepped: bool = False

    @property
    def lost(self) -> int:
        """The number of packets that did not arrive."""
        return sum(map(math.isnan, self.arrived_s))

    @property
    def sent_bps(self) -> float:
        """The rate at which it was sent, of the packets after the first; infinite when all left at once."""
        return _rate_bps(self.sent_s, self.packet_bytes)

    @property
    def arrived_bps(self) -> float:
        """The rate at which it arrived, of the packets after the first that did; infinite when all came at once."""
        return _rate_bps([one for one in self.arrived_s if not math.isnan(one)], self.packet_bytes)

    @classmethod
    def of(cls, train: Mapping[str, Any], header_bytes: float) -> Heard:
        """Return what a record of stamps says, whose headers count as many bytes for each packet."""
        sent: list[int] = train["sent_ns"]
        arrived: list[int | None] = train["arrived_ns"]
        # Differences of whole nanoseconds: as floats, times of two clocks would lose their last digits.
        came = [one for one in arrived if one is not None]
        first = min(came, default=0)
        delays = [None if there is None else there - left for left, there in zip(sent, arrived, strict=True)]
        least = min((one for one in delays if one is not None), default=0)
        return cls(
            _seconds([one - sent[0] for one in sent]),
            _seconds([None if one is None else one - first for one in arrived]),
            _seconds([None if one is None else one - least for one in delays]),
            train["plan"]["packets"][0]["payload"] + header_bytes,
            train.get("overflowed", 0),
            train.get("clock_stepped", False),
        )


def _seconds(times_ns: Sequence[int | None]) -> Vector:
    import numpy as np

    return np.array([math.nan if one is None else one / _NS for one in times_ns])


def _rate_bps(times_s: Vector | Sequence[float], packet_bytes: float) -> float:
    if len(times_s) < 2:
        return math.nan
    took_s = float(max(times_s) - min(times_s))
    return (len(times_s) - 1) * packet_bytes * 8 / took_s if took_s > 0 else math.inf


class Estimator:
    """An estimator of available bandwidth of your own; write a subclass, with :meth:`probe`.

    One object makes one estimate. A prober sends its trains, asks the listener when they arrived, and reports what the
    attributes say when it is over, also where the time or the budget has ended before.

    Parameters
    ----------
    settings
        Those of the traffic's `settings`, by their names.

    Attributes
    ----------
    estimate_bps
        The estimate; ``None``: none yet.
    low_bps, high_bps
        Its interval or range.
    confidence
        The probability with which the interval is to cover the truth; ``None`` for a range of variation.
    capacity_bps
        The capacity of the tight link, if you find or need it.
    gave_up
        Why there is no answer, or why it came early.
    notes
        What else is to be known of the answer.
    most_rate_bps
        The highest rate that may be sent.
    most_bytes
        The bytes of the longest packet at the layer of the estimate.
    header_bytes
        How many of them stand before the payload.
    random
        Random numbers: the same seed of a run draws the same.
    """

    estimate_bps: float | None = None
    low_bps: float | None = None
    high_bps: float | None = None
    confidence: float | None = None
    capacity_bps: float | None = None
    gave_up: str | None = None
    notes: tuple[str, ...] | list[str] = ()
    most_rate_bps: float = 1e9
    most_bytes: float = 1538.0
    header_bytes: float = 66.0
    random: Random = Random(0)
    _running: Generator[Train, Heard, None] | None = None

    def __init__(self, **settings: Any) -> None:
        if settings:
            raise BadValue(f"{type(self).__name__} takes no settings {', '.join(settings)}", "write its __init__")

    def probe(self) -> Generator[Train, Heard, None]:
        """Yield the trains to send, one after the other; each ``yield`` gives what became of the train.

        Set the attributes of the answer as soon as there is one. The estimate is over when this returns.
        """
        raise NotImplementedError(f"{type(self).__name__} has no probe()")

    def train(
        self, packets: int, rate_bps: float | None = None, *, packet_bytes: float | None = None, idle_s: float = 0.0
    ) -> Train:
        """Return a train of equal gaps.

        Parameters
        ----------
        packets
            How many, 1 to 1024.
        rate_bps
            The rate, at the layer of the estimate; ``None``: all at once.
        packet_bytes
            The bytes of each packet at that layer; default: the longest.
        idle_s
            The least silence before it.
        """
        whole = self.most_bytes if packet_bytes is None else packet_bytes
        gap_s = 0.0 if rate_bps is None else whole * 8 / self._allowed(rate_bps)
        return self.train_at([place * gap_s for place in range(packets)], packet_bytes=whole, idle_s=idle_s)

    def train_at(self, at_s: Sequence[float], *, packet_bytes: float | None = None, idle_s: float = 0.0) -> Train:
        """Return a train whose packets leave at `at_s`, in seconds after the first; the rest as for :meth:`train`."""
        whole = self.most_bytes if packet_bytes is None else packet_bytes
        payload = round(whole - self.header_bytes)
        if not payload >= _LEAST_PAYLOAD or whole > self.most_bytes:
            least = _LEAST_PAYLOAD + self.header_bytes
            raise BadValue(f"a probe of {whole:g} bytes", f"{least:g} to {self.most_bytes:g} bytes are allowed")
        return Train(tuple(at_s), payload, idle_s)

    def _allowed(self, rate_bps: float) -> float:
        if not 0 < rate_bps <= self.most_rate_bps * (1 + 1e-9):
            raise BadValue(
                f"a train of {rate_bps / 1e6:g} Mbit/s", f"at most {self.most_rate_bps / 1e6:g} Mbit/s may be sent"
            )
        return rate_bps

    def _told(self, heard: str | None) -> str:
        """What the core calls: at the beginning, and with each train that was sent; returns the next and the answer."""
        try:
            if heard is None:
                self._running = self.probe()
                if not isinstance(cast(object, self._running), Generator):
                    raise BadValue(f"probe() of {type(self).__name__} yields no trains", "write: heard = yield train")
                train = next(self._running)
            else:
                assert self._running is not None
                train = self._running.send(Heard.of(json.loads(heard), self.header_bytes))
        except StopIteration:
            return json.dumps({"train": None, "finding": self._finding()})
        if not isinstance(cast(object, train), Train):
            raise BadValue(f"probe() yields {train!r:.100}", "yield self.train(...)")
        return json.dumps({"train": train.to_spec(), "finding": self._finding()})

    def _finding(self) -> dict[str, Any]:
        names = ("estimate_bps", "low_bps", "high_bps", "confidence", "capacity_bps")
        found: dict[str, Any] = {}
        for name in names:
            value = getattr(self, name)
            found[name] = None if value is None else float(value)
            if found[name] is not None and not math.isfinite(found[name]):
                raise BadValue(f"{name} is {value}", "give a number, or None where nothing is known")
        gave_up = self.gave_up
        if found["estimate_bps"] is None and gave_up is None:
            gave_up = "it has found no estimate"
        return {**found, "gave_up": gave_up, "notes": [str(note) for note in self.notes]}


@handed_once
def hand_to_the_core(name: str, own: OwnCode) -> None:
    """Let the probers of this process ask the estimator `name` that was brought along."""
    from twinnet import _core

    def start(settings: str, known: str) -> Estimator:
        estimator = own.load_class(Estimator, "estimator", "tn.Estimator")(**json.loads(settings))
        setup = json.loads(known)
        estimator.most_rate_bps = setup["most_rate_bps"]
        estimator.header_bytes = setup["header_bytes"]
        estimator.most_bytes = setup["most_payload"] + setup["header_bytes"]
        estimator.random = Random(setup["seed"])
        return estimator

    # numpy is loaded now, and not while packets are on their way.
    _seconds([0])
    _core.register_estimator(name, own.name, start)
