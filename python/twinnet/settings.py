"""Settings: what a person writes for one field, its unit, its range, and its name in the lab protocol.

A class that people describe things with (a queue, for instance) is a dataclass whose fields are annotated with a
setting. From that one definition come the checks in Python and of files, the JSON schema and the form of the protocol.
``tests/project/test_settings_of_the_core.py`` holds it against the Rust types.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from twinnet.errors import BadQuantity, BadValue, did_you_mean
from twinnet.ranges import LONGEST_WAY_PS, is_whole
from twinnet.units import (
    BitsPerSecond,
    Bytes,
    Duration,
    Picoseconds,
    duration_ps,
    format_duration,
    format_rate,
    format_size,
    rate_bps,
    share_of_frames,
    size_bytes,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [
    "SHARE_SCHEMA",
    "Delay",
    "Described",
    "Flag",
    "Number",
    "OneOf",
    "Quantity",
    "Setting",
    "Share",
    "ShareSetting",
    "WayTime",
    "Whole",
    "Word",
    "duration",
    "rate",
    "settings_of",
    "size",
]

_NUMBER = r"^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)\s*"


@dataclass(frozen=True)
class Setting:
    """One field: how it is read and what is allowed.

    What :meth:`read` and :meth:`kept` are given has no type yet: it comes from a file or from a caller, and is checked
    here. What they return is of the type that each kind of setting names for itself.

    Parameters
    ----------
    error
        What is raised for a value that is not allowed.
    called
        The field's name in the protocol where it is not that of Python with the unit.
    """

    error: type[BadValue] = BadValue
    called: str = field(default="", kw_only=True)

    suffix: ClassVar[str] = ""
    """The suffix that the protocol adds to the field's name: the unit."""
    noun: ClassVar[str] = ""
    """The name of the value in a message about a file, which also gives its place."""

    def read(self, value: object, what: str) -> Any:
        """Return `value` in the form of the protocol; raises the setting's error when it is not allowed."""
        raise NotImplementedError

    def kept(self, value: object, what: str) -> Any:
        """Return `value` as an object holds it, checked: what :meth:`read` takes again, without parsing it again."""
        return self.read(value, what)

    def key(self, name: str) -> str:
        """Return the protocol's name of the field `name`."""
        return self.called or name + self.suffix

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of what files may hold."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        def keep(value: Any, info: core_schema.ValidationInfo) -> Any:
            self.read(value, self.noun or str(info.field_name))
            return value

        return core_schema.with_info_plain_validator_function(keep)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # pydantic adds to what it is given: defaults and titles of one field would stay in the next.
        return deepcopy(self.json_schema())


@dataclass(frozen=True)
class Quantity(Setting):
    """Text with a unit.

    Parameters
    ----------
    unit
        The unit inside: ``ps``, ``bps`` or ``bytes``.
    least, most
        The range, in `unit`.
    or_zero
        Whether zero is allowed besides.
    remedy
        What to do about a value that is out of range.
    """

    unit: str = "ps"
    least: int = 0
    most: int = 0
    or_zero: bool = False
    remedy: str = ""

    @property
    def suffix(self) -> str:  # type: ignore[override]
        """The unit, after an underscore."""
        return f"_{self.unit}"

    @property
    def noun(self) -> str:  # type: ignore[override]
        """The kind of quantity."""
        return {"ps": "duration", "bps": "rate", "bytes": "size"}[self.unit]

    def read(self, value: object, what: str) -> int:
        """Return the quantity in its unit."""
        parse, show, _, _, _ = _UNITS[self.unit]
        found = parse(value, what)
        if self.least <= found <= self.most or (self.or_zero and found == 0):
            return found
        allowed = f"{show(self.least)} to {show(self.most)}"
        zero = f", and {show(0)}" if self.or_zero else ""
        given = show(found) if isinstance(value, int) else value
        raise self.error(f"the {what} {given!r} is out of range; allowed are {allowed}{zero}", self.remedy)

    def kept(self, value: object, what: str) -> int:
        """Return the quantity as a typed number."""
        return _UNITS[self.unit][4](self.read(value, what))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: text that ends in a unit."""
        _, _, pattern, example, _ = _UNITS[self.unit]
        return {"type": "string", "pattern": pattern, "examples": [example]}


_UNITS: dict[str, tuple[Callable[[object, str], int], Callable[[int], str], str, str, type[int]]] = {
    "ps": (duration_ps, format_duration, _NUMBER + "(ps|ns|us|µs|ms|s|sec|min|h)$", "5 ms", Picoseconds),
    "bps": (rate_bps, format_rate, _NUMBER + "([kKMGT]?bit(/s)?|[kKMGT]?bps)$", "10 Mbit", BitsPerSecond),
    "bytes": (size_bytes, format_size, _NUMBER + "([kKMGT]?B|[KMG]iB)$", "1500 B", Bytes),
}


def duration(least_ps: int, most_ps: int, error: type[BadValue] = BadQuantity, *, or_zero: bool = False) -> Quantity:
    """Return the setting of a duration."""
    return Quantity(error, "ps", least_ps, most_ps, or_zero)


def rate(least_bps: int, most_bps: int, error: type[BadValue] = BadQuantity) -> Quantity:
    """Return the setting of a rate."""
    return Quantity(error, "bps", least_bps, most_bps)


def size(
    least_bytes: int, most_bytes: int, error: type[BadValue] = BadQuantity, *, remedy: str = "", called: str = ""
) -> Quantity:
    """Return the setting of a size."""
    return Quantity(error, "bytes", least_bytes, most_bytes, remedy=remedy, called=called)


@dataclass(frozen=True)
class WayTime(Quantity):
    """The time that a frame or message takes somewhere, which messages about files call by the name of the field."""

    unit: str = "ps"
    most: int = LONGEST_WAY_PS

    @property
    def noun(self) -> str:  # type: ignore[override]
        """Nothing: the name of the field says it."""
        return ""


Delay = Annotated[Duration, WayTime(BadQuantity)]
"""The time that a frame takes somewhere: at most 1 h."""


@dataclass(frozen=True)
class Whole(Setting):
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int = 0

    def read(self, value: object, what: str) -> int:
        """Return the number."""
        if not is_whole(value, self.least, self.most):
            raise self.error(f"{what} is {value!r}; allowed are whole numbers from {self.least} to {self.most}")
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: an integer with its bounds."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Number(Setting):
    """A number from `least` to `most`."""

    least: float = 0.0
    most: float = 0.0

    def read(self, value: object, what: str) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.least <= value <= self.most:
            raise self.error(f"{what} is {value!r}; allowed are numbers from {self.least:g} to {self.most:g}")
        return float(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a number with its bounds."""
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Share(Setting):
    """A number above 0 and at most 1: a probability or a weight."""

    def read(self, value: object, what: str) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise self.error(f"{what} is {value!r}; allowed are numbers above 0, at most 1")
        return float(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a number with its bounds."""
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 1}


SHARE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"const": 0},
        {"type": "string", "pattern": r"^\s*([0-9.]+\s*%|0)\s*$", "examples": ["1 %"]},
    ]
}
"""The JSON schema of a share of frames: text, or 0."""


@dataclass(frozen=True)
class ShareSetting(Setting):
    """A share of frames: text such as ``1 %``, or 0."""

    def read(self, value: object, what: str) -> float:
        """Return the number."""
        return share_of_frames(value, what)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: text, or 0."""
        return SHARE_SCHEMA


@dataclass(frozen=True)
class Flag(Setting):
    """True or false."""

    def read(self, value: object, what: str) -> bool:
        """Return the value."""
        if not isinstance(value, bool):
            raise self.error(f"{what} is {value!r}; allowed are True and False")
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: a boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class OneOf(Setting):
    """One of several words."""

    words: tuple[str, ...] = ()

    def read(self, value: object, what: str) -> str:
        """Return the word."""
        if not isinstance(value, str) or value not in self.words:
            raise self.error(f"the {what} {value!r} is not known", did_you_mean(str(value), self.words))
        return value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema: the words."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Word(OneOf):
    """One of so few words that a message lists them."""

    def read(self, value: object, what: str) -> str:
        """Return the word."""
        if not isinstance(value, str) or value not in self.words:
            raise self.error(f"{what} is {value!r}; allowed are {' and '.join(map(repr, self.words))}")
        return value


@cache
def settings_of(kind: type) -> Mapping[str, Setting]:
    """Return the settings of a dataclass or ``TypedDict`` by the names of its fields; fields of other kinds are left
    out."""
    hints = typing.get_type_hints(kind, include_extras=True)
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else list(hints)
    found: dict[str, Setting] = {}
    for name in names:
        setting = next(_settings_in(hints[name]), None)
        if setting is not None:
            found[name] = setting
    return found


def _settings_in(annotation: Any) -> Iterator[Setting]:
    """The setting in ``Annotated[...]``, also where ``None`` may stand instead."""
    for data in getattr(annotation, "__metadata__", ()):
        if isinstance(data, Setting):
            yield data
    if not hasattr(annotation, "__metadata__"):
        for part in typing.get_args(annotation):
            yield from _settings_in(part)


class Described:
    """A dataclass whose fields are settings: checked when made, written in the form of the protocol, read from files.

    A field whose default is ``None`` may be left out, which the protocol writes as null.
    """

    # What pydantic reads of a dataclass that it is to make of a mapping in a file.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __new__(cls, *_given: object, **settings: object) -> Self:
        """Refuse a keyword that the dataclass does not take, with the nearest that it does."""
        taken = {one.name for one in fields(cls) if one.init} if is_dataclass(cls) else set(settings)
        for name in settings:
            if name not in taken:
                raise BadValue(f"{cls.__name__}() takes no {name!r}: {did_you_mean(name, taken)}")
        return super().__new__(cls)

    def checked_fields(self) -> dict[str, Any]:
        """Return the settings in the form of the protocol; raises the setting's error for what is not allowed."""
        spec: dict[str, Any] = {}
        for name, key, setting, optional in _fields_to_check(type(self)):
            value = getattr(self, name)
            spec[key] = None if value is None and optional else setting.read(value, name)
        return spec

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema has the texts of the class's documentation."""
        found = handler.resolve_ref_schema(handler(schema))
        text = inspect.getdoc(cls) or ""
        found["description"] = text.partition("\n")[0]
        texts = _parameters(text)
        if "kind" in found.get("properties", {}):
            # In Python the class says it; in a file nothing else does.
            found["properties"]["kind"].pop("default", None)
            found["required"] = ["kind", *found.get("required", [])]
        for name, one in found.get("properties", {}).items():
            if name in texts and "$ref" not in one:
                one["description"] = texts[name]
        return found


@cache
def _fields_to_check(kind: type) -> Sequence[tuple[str, str, Setting, bool]]:
    """The settings of a dataclass: field, name in the protocol, setting, and whether it may be left out. A network has
    tens of thousands of objects of one class."""
    assert is_dataclass(kind)
    optional = {one.name for one in fields(kind) if _may_be_left_out(one)}
    return [(name, setting.key(name), setting, name in optional) for name, setting in settings_of(kind).items()]


def _may_be_left_out(one: Field[Any]) -> bool:
    return one.default is None and one.default_factory is MISSING


def _parameters(text: str) -> dict[str, str]:
    """Return the description of each field in the section ``Parameters`` of a docstring, as one line."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    texts: dict[str, str] = {}
    for names, body in re.findall(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)+)", section.group(1) if section else "", re.M):
        for name in names.split(","):
            texts[name.strip()] = " ".join(body.split())
    return texts
