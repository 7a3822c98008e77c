"""The settings that several kinds of traffic have, with their units and ranges: those of the Rust types."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from twinnet.errors import BadValue
from twinnet.ranges import LONGEST_RUN_PS, LONGEST_WAY_PS, SHORTEST_INTERVAL_PS
from twinnet.settings import Described, Flag, Number, OneOf, Setting, Whole, duration, rate, settings_of, size
from twinnet.traffic.congestion import CongestionControl as OwnClass
from twinnet.traffic.distributions import Distribution, OnOff
from twinnet.traffic.files import read_frame_sizes, read_trace
from twinnet.traffic.own_code import name_of_class
from twinnet.units import Bytes, Duration, Picoseconds, Rate, Size, duration_ps, size_bytes

__all__ = [
    "CongestionControl",
    "CountOf",
    "CountingInterval",
    "DatagramPayload",
    "Dscp",
    "FlowNumber",
    "FrameSizes",
    "GapProcess",
    "Gaps",
    "OnOffPeriods",
    "PacketRate",
    "PathMtu",
    "PayloadRate",
    "Port",
    "Recorded",
    "RunTime",
    "Sizes",
    "Switch",
    "TraceOfDatagrams",
    "TrafficSettings",
    "Transfer",
]

_MOST_COUNT = 10**15
_MOST_ENTRIES = 1_000_000
_LARGEST_TRANSFER_BYTES = 10**15
_SIZES_OF_DATAGRAMS = (8, 65_507)
_SIZES_OF_FRAMES = (1, 64_000_000)


@dataclass(frozen=True)
class Drawn(Setting):
    """A distribution of durations (``ps``) or sizes (``bytes``); text is one value, drawn always."""

    unit: str = "ps"

    @property
    def suffix(self) -> str:  # type: ignore[override]
        """The unit, after an underscore."""
        return f"_{self.unit}"

    def read(self, value: object, what: str) -> dict[str, Any]:
        """Return the distribution in the form of the protocol."""
        quantity = duration_ps if self.unit == "ps" else size_bytes
        return self.kept(value, what).to_spec(what, quantity)

    def kept(self, value: object, what: str) -> Distribution:
        """Return the distribution, checked."""
        if isinstance(value, (str, Picoseconds, Bytes)):
            found = Distribution("constant", {"value": value})
        else:
            found = Distribution.of(cast("Mapping[str, object]", value), what)
        found.to_spec(what, duration_ps if self.unit == "ps" else size_bytes)
        return found

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: the name of the distribution and its parameters."""
        return _DISTRIBUTION_SCHEMA


_DISTRIBUTION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["distribution"],
    "properties": {"distribution": {"type": "string", "description": "Its name, such as exponential."}},
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}]},
}


@dataclass(frozen=True)
class Periods(Setting):
    """Periods of talk and of silence, a distribution each."""

    def read(self, value: object, what: str) -> dict[str, Any]:
        """Return the periods in the form of the protocol."""
        return self.kept(value, what).to_spec()

    def kept(self, value: object, what: str) -> OnOff:
        """Return the periods, checked."""
        found = OnOff.of(cast("Mapping[str, Any]", value))
        found.to_spec()
        return found

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: both distributions."""
        return {
            "type": "object",
            "required": ["on", "off"],
            "properties": {
                "on": _DISTRIBUTION_SCHEMA | {"description": "How long a period of talk lasts."},
                "off": _DISTRIBUTION_SCHEMA | {"description": "How long a period of silence lasts."},
            },
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class CongestionControlName(Setting):
    """The name of a congestion control, as kernels have them."""

    def read(self, value: object, what: str) -> str:
        """Return the name; a class of one's own is made known for it."""
        if isinstance(value, type) and issubclass(value, OwnClass):
            return name_of_class(value)
        name = value if isinstance(value, str) else ""
        if not (1 <= len(name) <= 15 and name.isascii() and name.isprintable()) or {" ", ":"} & set(name):
            raise self.error(
                f"{value!r} is no congestion control; a name such as cubic is allowed, in studies module:Class, and in "
                "Python a class derived from tn.CongestionControl"
            )
        return name

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a text, which in studies may be the name of a class."""
        return {"type": "string", "minLength": 1, "maxLength": 200}


def _or_file(entry: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list that may stand in a file of its own."""
    return {
        "anyOf": [
            {"type": "array", "minItems": 1, "maxItems": _MOST_ENTRIES, "items": entry},
            {"type": "string", "description": "the name of a file beside this one, ending in .csv or .txt"},
        ]
    }


def _path(value: object) -> Path | None:
    """The path of a file, where `value` is one."""
    return Path(cast("str | os.PathLike[str]", value)) if isinstance(value, (str, os.PathLike)) else None


@dataclass(frozen=True)
class Entries(Setting):
    """A list that may be the path of a file of its entries."""

    def _listed(self, value: object, what: str) -> Sequence[Any]:
        if not isinstance(value, Sequence) or not 1 <= len(cast("Sequence[Any]", value)) <= _MOST_ENTRIES:
            raise self.error(f"{what} has 1 to {_MOST_ENTRIES} entries, or is the path of a file of them")
        return cast("Sequence[Any]", value)

    def _within(self, value: object, what: str, bounds: tuple[int, int]) -> Bytes:
        found = size_bytes(value, what)
        if not bounds[0] <= found <= bounds[1]:
            raise self.error(f"the {what} {value!r} is out of range: {bounds[0]} B to {bounds[1]} B")
        return Bytes(found)


class CheckedTrace(tuple[tuple[Picoseconds, Bytes], ...]):
    """Gaps and payloads that were checked: a study has the same ones checked under each combination of its levels."""

    __slots__ = ()


@dataclass(frozen=True)
class TraceEntries(Entries):
    """A gap and a payload for each datagram."""

    def read(self, value: object, what: str) -> list[list[int]]:
        """Return the entries in picoseconds and bytes."""
        return [[int(gap), int(length)] for gap, length in self.kept(value, what)]

    def kept(self, value: object, what: str) -> CheckedTrace:
        """Return the entries as typed numbers."""
        if isinstance(value, CheckedTrace):
            return value
        if (path := _path(value)) is not None:
            return self.checked(read_trace(path))
        entries = self._listed(value, what)
        if not all(map(_has_texts, entries)):
            return self.checked(entries)
        return _checked_once(self, tuple(map(tuple, cast("Sequence[Sequence[str]]", entries))))

    def checked(self, entries: Sequence[object]) -> CheckedTrace:
        """Return the `entries` as typed numbers; raises the setting's error when one is not allowed."""
        found: list[tuple[Picoseconds, Bytes]] = []
        for entry in entries:
            pair = tuple(cast("Sequence[object]", entry)) if isinstance(entry, (tuple, list)) else ()
            if len(pair) != 2:
                raise self.error(f"{entry!r} is no gap and payload; write for example [2 ms, 1000 B]")
            gap = duration_ps(pair[0], "gap")
            if gap > LONGEST_WAY_PS:
                raise self.error(f"the gap {pair[0]!r} is out of range: at most 1 h")
            found.append((Picoseconds(gap), self._within(pair[1], "payload", _SIZES_OF_DATAGRAMS)))
        return CheckedTrace(found)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: pairs, or the name of a file."""
        return _or_file({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}})


def _has_texts(entry: object) -> bool:
    """Whether an entry is as a file has it."""
    return isinstance(entry, (list, tuple)) and [type(one) for one in cast("Sequence[object]", entry)] == [str, str]


@lru_cache(maxsize=32)
def _checked_once(setting: TraceEntries, entries: tuple[tuple[str, ...], ...]) -> CheckedTrace:
    return setting.checked(entries)


@dataclass(frozen=True)
class FrameEntries(Entries):
    """The size of each frame of video."""

    def read(self, value: object, what: str) -> list[int]:
        """Return the sizes in bytes."""
        return [int(one) for one in self.kept(value, what)]

    def kept(self, value: object, what: str) -> tuple[Bytes, ...]:
        """Return the sizes as typed numbers."""
        entries = read_frame_sizes(path) if (path := _path(value)) is not None else self._listed(value, what)
        return tuple(self._within(one, "frame size", _SIZES_OF_FRAMES) for one in entries)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: sizes, or the name of a file."""
        return _or_file({"type": "string"})


Port = Annotated[int, Whole(BadValue, 1, 65_535)]
"""A port of UDP or TCP."""
FlowNumber = Annotated[int, Whole(BadValue, 0, (1 << 32) - 1)]
"""The flow's number in reports."""
RunTime = Annotated[Duration, duration(1, LONGEST_RUN_PS)]
"""The duration of traffic: at most 100 days, as no sum of times may run over the clock."""
CountingInterval = Annotated[Duration, duration(SHORTEST_INTERVAL_PS, LONGEST_WAY_PS)]
"""The interval in which is counted: 1 ms to 1 h."""
PayloadRate = Annotated[Rate, rate(1, 10**12)]
"""A rate of payload."""
PacketRate = Annotated[float, Number(BadValue, 0.001, 1e8)]
"""Datagrams or writes a second."""
DatagramPayload = Annotated[Size, size(*_SIZES_OF_DATAGRAMS)]
"""The UDP payload of a datagram. Below 16 B the receiver can tell no delay."""
Transfer = Annotated[Size, size(0, _LARGEST_TRANSFER_BYTES, called="bytes")]
"""The total amount of data to transfer, in bytes."""
CountOf = Annotated[int, Whole(BadValue, 1, _MOST_COUNT)]
"""A number of packets, writes, frames or requests."""
Recorded = Annotated[int, Whole(BadValue, 1, 1_000_000)]
"""Packets of each flow that are kept one by one."""
PathMtu = Annotated[int, Whole(BadValue, 68, 65_535, called="mtu_bytes")]
"""The path's MTU in bytes, with which frames, network bytes and wire bytes are counted."""
Dscp = Annotated[int, Whole(BadValue, 0, 63)]
"""Differentiated services code point."""
GapProcess = Annotated[str, OneOf(BadValue, ("constant", "poisson"))]
"""The process that draws the gaps at a given rate."""
Gaps = Annotated[Distribution | Mapping[str, object], Drawn(unit="ps")]
"""A distribution of gaps, up to 1 h."""
Sizes = Annotated[Distribution | Mapping[str, object], Drawn(unit="bytes")]
"""A distribution of sizes."""
OnOffPeriods = Annotated[OnOff | Mapping[str, Mapping[str, object]], Periods()]
"""Periods of talk and of silence."""
Switch = Annotated[bool, Flag(BadValue)]
"""True or false."""
CongestionControl = Annotated[str | type[OwnClass], CongestionControlName()]
"""A congestion control by name, such as ``cubic``, or a class of one's own."""
TraceOfDatagrams = Annotated[Sequence[tuple[Duration, Size]] | str | os.PathLike[str], TraceEntries()]
"""A gap and a payload for each datagram, or the path of a file of them."""
FrameSizes = Annotated[Sequence[Size] | str | os.PathLike[str], FrameEntries()]
"""The size of each frame, or the path of a file with one on each line."""


@dataclass(frozen=True, kw_only=True)
class TrafficSettings(Described):
    """Base class of all kinds of traffic. Each setting is read once, when the object is made, and kept as an exact
    number.

    A kind of traffic is a frozen dataclass of settings; the same class is what ``tn.apps`` offers, what the entries of
    study files and of files of flows are checked with, and what writes the fields of the lab protocol.
    """

    in_words: ClassVar[str] = ""
    """The name in reports."""
    protocol: ClassVar[str] = "udp"
    """The protocol, as tables of results name it."""
    transport: ClassVar[Literal["udp", "tcp", "icmp"]] = "udp"
    """The transport protocol that carries it."""
    application: ClassVar[str | None] = None
    """The application name for QoS policies; without one, the name of its entry in the study is used."""
    asked_for: ClassVar[bool] = False
    """True if its first host is a client that requests from the second, rather than a source that sends to it."""
    needed_in_studies: ClassVar[tuple[str, ...]] = ()
    """Settings that a study must give, though other uses need not."""
    left_out_of_studies: ClassVar[frozenset[str]] = frozenset({"flow"})
    """Settings that a study chooses itself, or that would hide from it when the traffic ends."""
    other_names: ClassVar[Mapping[str, str]] = {}
    """Names that studies have for settings, and those here."""
    counted_by: ClassVar[str | None] = "interval"
    """The setting of the interval in which the receiver counts."""
    only_apps: ClassVar[frozenset[str] | None] = None
    """Settings that no ordinary program takes, with `using: programs` in a study; ``None``: no program makes such
    traffic (``twinnet.study.program_traffic`` has those that do)."""

    def __post_init__(self) -> None:
        optional = {one.name for one in fields(self) if one.default is None}
        for name, setting in settings_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or name not in optional:
                self._keep(name, setting.kept(value, name))
        self.check()
        self.complete()

    def _keep(self, name: str, value: object) -> None:
        """Change a field while the object is made."""
        object.__setattr__(self, name, value)

    def check(self) -> None:
        """Raise `BadValue` for settings that contradict each other; subclasses say which."""

    def complete(self) -> None:
        """Fill in what follows from the other settings, which are checked; subclasses say what."""

    def given(self, kind: type[TrafficSettings] | None = None) -> dict[str, Any]:
        """Return the settings that are not left out, in the form of the protocol; those of `kind` where it is given."""
        return {
            setting.key(name): setting.read(getattr(self, name), name)
            for name, setting in settings_of(kind or type(self)).items()
            if getattr(self, name) is not None
        }

    @classmethod
    def in_study(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of an entry of a study with what goes without saying there."""
        return settings

    def refuse(self, names: Sequence[str], because: str) -> None:
        """Raise `BadValue` when one of the settings `names` is given, saying `because`."""
        beside = [name for name in names if getattr(self, name) not in (None, False)]
        if beside:
            raise BadValue(because, f"leave {', '.join(repr(name) for name in beside)} out")
