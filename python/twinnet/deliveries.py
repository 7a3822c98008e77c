"""Links whose capacity follows a trace of deliveries, as of mobile access: Mahimahi's format, and a model of fading."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, cast

from twinnet.errors import BadFile, BadValue, did_you_mean, reason
from twinnet.given_files import read_given
from twinnet.ranges import is_whole
from twinnet.schema_texts import docstring_texts
from twinnet.settings import Setting
from twinnet.units import Duration, Rate, duration_ps, rate_bps

__all__ = [
    "Capacity",
    "DeliveryTrace",
    "DeliveryTraceValue",
    "TracedCapacity",
    "capacity_of",
    "delivery_trace_spec",
    "named_traces",
]

Place = tuple[str | int, ...]

_MOST_MOMENTS = 1_000_000
_MOST_FILE_BYTES = 16 << 20
_LATEST_MS = (1 << 32) - 1
_PS_PER_MS = 10**9
_PACKET_WITH_HEADER_BYTES = 1514
_MOMENT_BYTES = {"ethernet": _PACKET_WITH_HEADER_BYTES + 24, "hdlc": 1507, "none": _PACKET_WITH_HEADER_BYTES}
"""The bytes on the wire of a packet of 1500 bytes, by framing: what passes at each moment."""


@dataclass(frozen=True)
class DeliveryTrace:
    """The moments at which one packet of full size (1500 bytes) each can leave a link.

    The list begins anew at its last moment, and with the lab. Several moments may be equal. A moment at which nothing
    waits passes unused. Smaller packets share a moment, and a longer one takes several. The format is that of Mahimahi
    (Netravali and others, USENIX ATC 2015).

    Parameters
    ----------
    times_ms
        The moments in milliseconds: 1 to 1,000,000 whole numbers that do not fall, the last above zero.

    Raises
    ------
    BadValue
        For other moments.

    Examples
    --------
    >>> DeliveryTrace([1, 2, 2, 5]).mean_bps()
    9843200.0
    """

    times_ms: Sequence[int]

    def __post_init__(self) -> None:
        given: Any = self.times_ms
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise BadValue(
                f"a delivery trace is {given!r:.60}; allowed is a list of moments in milliseconds",
                "write for example DeliveryTrace([1, 2, 2, 5]), or read a file with DeliveryTrace.read",
            )
        times = tuple(cast("Sequence[object]", given))
        if not 1 <= len(times) <= _MOST_MOMENTS:
            raise BadValue(f"a delivery trace has {len(times)} moments; allowed are 1 to {_MOST_MOMENTS}")
        kept = cast("tuple[int, ...]", times)
        if {*map(type, times)} != {int} or list(kept) != sorted(kept) or kept[0] < 0 or kept[-1] > _LATEST_MS:
            _refuse_moments(times)
        if kept[-1] == 0:
            raise BadValue("the last moment of a delivery trace is 0 ms", "it is how long the trace lasts: at least 1")
        object.__setattr__(self, "times_ms", kept)

    @classmethod
    def read(cls, path: Path | str) -> DeliveryTrace:
        """Return the trace of a file of Mahimahi: one moment on each line, in milliseconds.

        Raises
        ------
        BadFile
            It cannot be read, is larger than 16 MB, or holds no trace; the message names the line.
        """
        file = Path(path)
        try:
            content = read_given(file, _MOST_FILE_BYTES)
        except OSError as error:
            raise BadFile(f"{file} cannot be read: {reason(error)}") from None
        return cls._parse(content, str(file))

    @classmethod
    def parse(cls, text: str, name: str = "<text>") -> DeliveryTrace:
        """Return the trace of the text of such a file, which messages call `name`; raises as :meth:`read`."""
        return cls._parse(text.encode(errors="replace"), name)

    @classmethod
    def _parse(cls, content: bytes, name: str) -> DeliveryTrace:
        times: list[int] = []
        for number, line in enumerate(content.split(b"\n"), 1):
            word = line.strip()
            if not word:
                continue
            if not word.isdigit() or len(word) > 10:
                raise BadFile(
                    f"{name}, line {number}: {word[:40].decode(errors='replace')!r} is no moment; write one whole "
                    "number of milliseconds on each line"
                )
            times.append(int(word))
            if len(times) > _MOST_MOMENTS:
                raise BadFile(f"{name} has more than {_MOST_MOMENTS} moments")
        try:
            return cls(times)
        except BadValue as error:
            raise BadFile(f"{name}: {error}") from None

    @classmethod
    def fading(
        cls,
        mean: Rate,
        *,
        duration: Duration = "60 s",
        doppler_hz: float = 5.0,
        snr_db: float = 12.0,
        users: int = 4,
        seed: int = 1,
    ) -> DeliveryTrace:
        """Return a trace of a modelled cell: fading channels, and one scheduler that serves a user in each millisecond.

        Each user's channel is Rayleigh fading, as the sum of 16 waves from even angles with random phases (Clarke
        1968, Jakes 1974). Its rate is 0.6 of Shannon's bound for the signal-to-noise ratio, at most 4.4 bit/s/Hz, and
        none below -10 dB (3GPP TR 36.942, annex A). The scheduler is proportionally fair: it serves the user whose
        rate is highest beside what it got on average over the last second (Jalali and others, VTC 2000). All users
        always have data to fetch. The trace is what the first of them gets, scaled to the mean.

        Parameters
        ----------
        mean
            Mean rate with unit, on an Ethernet wire.
        duration
            How long the trace lasts until it begins anew, at most 10 minutes.
        doppler_hz
            How fast the channel changes, 0.1 to 500 Hz: speed times frequency over the speed of light (5 Hz: on foot
            at 1.8 GHz).
        snr_db
            The mean signal-to-noise ratio, -10 to 40 dB.
        users
            How many share the cell, 1 to 100.
        seed
            Of the random phases.

        Raises
        ------
        BadValue
            A parameter is out of its range.
        """
        mean_bps, slots = rate_bps(mean, "mean"), duration_ps(duration, "duration") // _PS_PER_MS
        for name, value, least, most in (
            ("the mean rate in bit/s", mean_bps, 10_000, 10**10),
            ("the duration in milliseconds", slots, 100, 600_000),
            ("doppler_hz", doppler_hz, 0.1, 500),
            ("snr_db", snr_db, -10, 40),
            ("users", users, 1, 100),
        ):
            if not least <= value <= most:
                raise BadValue(f"{name} is {value}; allowed are {least} to {most}")
        return cls(_fading_times(mean_bps, slots, doppler_hz, snr_db, users, seed))

    def to_spec(self) -> list[int]:
        """Return the form of the lab protocol."""
        return list(self.times_ms)

    def moments_until(self, time_ps: float) -> int:
        """Return how many moments there are from the lab's start to `time_ps`, that one included."""
        rounds, rest = divmod(math.floor(time_ps / _PS_PER_MS), self.times_ms[-1])
        return rounds * len(self.times_ms) + bisect_right(self.times_ms, rest)

    def mean_bps(self, framing: str = "ethernet") -> float:
        """Return the mean rate of the whole trace in bit/s on a wire with this framing."""
        return len(self.times_ms) * _MOMENT_BYTES[framing] * 8000 / self.times_ms[-1]


def _refuse_moments(times: Sequence[object]) -> None:
    """Raise `BadValue` for the first moment that is no whole millisecond in the range, or comes before another."""
    before = 0
    for place, moment in enumerate(times, 1):
        if not is_whole(moment, 0, _LATEST_MS):
            raise BadValue(
                f"moment {place} of a delivery trace is {moment!r}; allowed are whole milliseconds from 0 to "
                f"{_LATEST_MS}"
            )
        if moment < before:
            raise BadValue(
                f"moment {place} of a delivery trace, {moment} ms, is before {before} ms", "sort the moments"
            )
        before = moment


@lru_cache(maxsize=16)
def _fading_times(
    mean_bps: int, slots: int, doppler_hz: float, snr_db: float, users: int, seed: int
) -> tuple[int, ...]:
    """The moments of a fading trace. A study asks for the same one under each combination of its levels."""
    served = _served(slots, doppler_hz, snr_db, users, seed)
    wanted_bytes, total = mean_bps / 8 * slots / 1000, sum(served)
    times: list[int] = []
    carried = 0.0
    for slot, share in enumerate(served):
        carried += share / total * wanted_bytes / _MOMENT_BYTES["ethernet"]
        times += [slot] * (int(carried + 1e-9) - len(times))
    if not times:
        raise BadValue(f"a mean of {mean_bps} bit/s over {slots} ms is less than one packet", "give a longer duration")
    # The trace lasts as long as was asked for, though its last slot may serve others.
    times[-1] = slots
    return tuple(times)


@dataclass(frozen=True)
class TracedCapacity:
    """The capacity of a link that follows a trace.

    Parameters
    ----------
    trace
        Its trace.
    framing
        Its framing.
    """

    trace: DeliveryTrace
    framing: str = "ethernet"

    def over_bps(self, start_ps: float, end_ps: float) -> float:
        """Return the capacity from `start_ps` to `end_ps` of the lab's clock, in bit/s on the wire."""
        moments = self.trace.moments_until(end_ps) - self.trace.moments_until(start_ps)
        return moments * _MOMENT_BYTES[self.framing] * 8e12 / (end_ps - start_ps)

    def mean_bps(self) -> float:
        """Return the mean over the whole trace, in bit/s on the wire."""
        return self.trace.mean_bps(self.framing)

    def packets_bps(self, count: int, seconds: float) -> float:
        """Return the rate of `count` packets of full size in `seconds`, in bit/s on the wire."""
        return count * _MOMENT_BYTES[self.framing] * 8 / seconds


Capacity = float | TracedCapacity
"""The capacity of a link: bit/s, or what follows a trace."""


def capacity_of(way: Mapping[str, Any], queue: Mapping[str, Any] | None = None) -> Capacity | None:
    """Return the capacity of one direction of a link whose sending port has `queue`, both in the form of the lab
    protocol; ``None`` without one.

    A token bucket lets no more than its rate pass. It counts a frame from the header on, so that full frames take more
    than that on the wire.
    """
    framing = way.get("framing", "ethernet")
    if not way.get("rate_bps") and way.get("delivery_trace"):
        return TracedCapacity(DeliveryTrace(way["delivery_trace"]), framing)
    rates = [float(way["rate_bps"])] if way.get("rate_bps") else []
    if queue is not None and queue["kind"] == "tbf":
        rates.append(queue["rate_bps"] * _MOMENT_BYTES[framing] / _PACKET_WITH_HEADER_BYTES)
    return min(rates, default=None)


@lru_cache(maxsize=8)
def _served(slots: int, doppler_hz: float, snr_db: float, users: int, seed: int) -> tuple[float, ...]:
    """Return what the first user gets in each slot of 1 ms. A description is read several times: the last are kept."""
    source = random.Random(seed)
    channels = [_channel(slots, doppler_hz, snr_db, source) for _ in range(users)]
    averages = [1e-6] * users
    served: list[float] = []
    for slot in range(slots):
        chosen = max(range(users), key=lambda user: channels[user][slot] / averages[user])
        for user in range(users):
            got = channels[user][slot] if user == chosen else 0.0
            averages[user] += (got - averages[user]) / 1000
        served.append(channels[0][slot] if chosen == 0 else 0.0)
    if not any(served):
        raise BadValue("the first user of the modelled cell was never served", "give a higher snr_db or fewer users")
    return tuple(served)


def _channel(slots: int, doppler_hz: float, snr_db: float, source: random.Random) -> list[float]:
    """Return the rate in bit/s/Hz in each slot."""
    count, mean = 16, 10 ** (snr_db / 10)
    turn = source.uniform(0, 2 * math.pi)
    waves = [
        (2 * math.pi * doppler_hz * math.cos((2 * math.pi * wave + turn) / count), source.uniform(0, 2 * math.pi))
        for wave in range(count)
    ]
    rates: list[float] = []
    for slot in range(slots):
        angles = [speed * slot / 1000 + phase for speed, phase in waves]
        real, imaginary = sum(map(math.cos, angles)), sum(map(math.sin, angles))
        ratio = mean * (real**2 + imaginary**2) / count
        rates.append(min(4.4, 0.6 * math.log2(1 + ratio)) if ratio >= 0.1 else 0.0)
    return rates


def named_traces(data: object, place: Place = ()) -> Iterator[tuple[dict[str, Any], Place]]:
    """Yield each mapping in the parsed file `data` whose ``delivery_trace`` is the name of a file, with its place."""
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        if isinstance(fields.get(_KEY), str):
            yield fields, (*place, _KEY)
        for key, inner in fields.items():
            if key != _KEY:
                yield from named_traces(inner, (*place, key))
    elif isinstance(data, list):
        for index, inner in enumerate(cast("list[object]", data)):
            yield from named_traces(inner, (*place, index))


_KEY = "delivery_trace"
_FADING = ("mean", "duration", "doppler_hz", "snr_db", "users", "seed")


def delivery_trace_spec(value: object) -> list[int] | None:
    """Return a trace in the form of the lab protocol: from a list of moments, `DeliveryTrace`, or a mapping of the
    parameters of `DeliveryTrace.fading`."""
    if value is None:
        return None
    if isinstance(value, DeliveryTrace):
        return value.to_spec()
    if isinstance(value, Mapping):
        given = {str(key): one for key, one in cast("Mapping[Any, Any]", value).items()}
        for key in given:
            if key not in _FADING:
                raise BadValue(f"a fading trace has no setting {key!r}", did_you_mean(key, _FADING))
        if "mean" not in given:
            raise BadValue("a fading trace lacks 'mean'", "give its mean rate, such as mean: 20 Mbit")
        for key in ("doppler_hz", "snr_db", "users", "seed"):
            number: object = given.get(key, 1)
            if isinstance(number, bool) or not isinstance(number, int if key in ("users", "seed") else (int, float)):
                raise BadValue(f"{key} of a fading trace is {number!r}; allowed are numbers")
        return DeliveryTrace.fading(**given).to_spec()
    return DeliveryTrace(cast("Any", value)).to_spec()


@dataclass(frozen=True)
class DeliveryTraceSetting(Setting):
    """Moments in milliseconds, or the parameters of a modelled trace."""

    def read(self, value: object, what: str) -> list[int] | None:
        """Return the form of the lab protocol."""
        return delivery_trace_spec(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a list of moments, or the fields of `DeliveryTrace.fading`."""
        number = {"type": "number"}
        fields: dict[str, Any] = {
            "mean": {"type": "string"},
            "duration": {"type": "string"},
            "doppler_hz": number,
            "snr_db": number,
            "users": {"type": "integer"},
            "seed": {"type": "integer"},
        }
        for name, text in docstring_texts(DeliveryTrace.fading).items():
            fields[name] = fields[name] | {"description": text}
        moments = {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 1,
            "maxItems": _MOST_MOMENTS,
        }
        return {
            "anyOf": [
                moments,
                {"type": "string", "description": "the name of a file beside this one, in Mahimahi's format"},
                {"type": "object", "properties": fields, "required": ["mean"], "additionalProperties": False},
            ]
        }


DeliveryTraceValue = Annotated[DeliveryTrace | Sequence[int] | Mapping[str, str | int | float], DeliveryTraceSetting()]
"""A class, a list of moments in milliseconds, or the parameters of :meth:`DeliveryTrace.fading`."""
