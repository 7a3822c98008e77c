"""Values of study parameters: a quantity with its unit, a plain number or a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

__all__ = ["Kind", "Quantity", "parse_duration_ps", "parse_quantity", "parse_rate_bps", "parse_size_bytes"]

Kind = Literal["duration", "rate", "size", "number", "word"]

PS_PER_SECOND = 1_000_000_000_000

_UNITS: dict[Literal["duration", "rate", "size"], dict[str, int]] = {
    "duration": {
        "ps": 1,
        "ns": 10**3,
        "us": 10**6,
        "µs": 10**6,
        "ms": 10**9,
        "s": 10**12,
        "sec": 10**12,
        "min": 60 * 10**12,
        "h": 3600 * 10**12,
    },
    "rate": {"bit": 1, "kbit": 10**3, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12},
    "size": {
        "B": 1,
        "kB": 10**3,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
        "KiB": 1 << 10,
        "MiB": 1 << 20,
        "GiB": 1 << 30,
    },
}
_EXAMPLES = {"duration": "5 ms", "rate": "10 Mbit", "size": "1500 B"}
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,18})?|\.\d{1,18})")
_LARGEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its kind.

    Attributes
    ----------
    kind
        What the value measures.
    base
        The value in the smallest unit: picoseconds, bits per second, bytes; the number itself; the word itself.
    text
        As it was written.
    """

    kind: Kind
    base: int | float | str
    text: str

    @property
    def number(self) -> float:
        """The value in seconds, bits per second, bytes or as it is; a word has none.

        Raises
        ------
        ValueError
            The value is a word.
        """
        if isinstance(self.base, str):
            raise ValueError(f"{self.text!r} is a word, not a number")
        return self.base / PS_PER_SECOND if self.kind == "duration" else float(self.base)


def _kind_of_unit(unit: str) -> tuple[Literal["duration", "rate", "size"], int] | None:
    for kind, units in _UNITS.items():
        if unit in units:
            return kind, units[unit]
    base = unit.removesuffix("/s")
    if base == unit and base.endswith("bps"):
        base = base.removesuffix("bps") + "bit"
    scale = _UNITS["rate"].get(base)
    return None if scale is None else ("rate", scale)


def parse_quantity(given: object) -> Quantity:
    """Read a parameter's value.

    A text that begins with a number must go on with a known unit or nothing; other text is a word.

    Raises
    ------
    ValueError
        The text is a number with a unit that is not known, is negative where that has no meaning, or is not a scalar.
    """
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ValueError(f"{given!r} is not a quantity, a number or a word; write for example '10 Mbit', 3 or cubic")
    text = str(given).strip()
    shown = text[:60]
    found = _NUMBER.match(text)
    if found is None:
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,199}", text) is None:
            raise ValueError(
                f"{shown!r} is not a quantity, a number or a word; write for example '10 Mbit', 3 or cubic"
            )
        return Quantity("word", text, text)
    number, unit = Decimal(found.group()), text[found.end() :].strip()
    if not unit:
        value = float(number)
        return Quantity("number", int(value) if number == int(number) else value, text)
    known = _kind_of_unit(unit)
    if known is None:
        allowed = "; ".join(f"{kind}: {', '.join(units)}" for kind, units in _UNITS.items())
        raise ValueError(f"{shown!r} has the unknown unit {unit[:40]!r}; known are {allowed}")
    kind, scale = known
    if number < 0:
        raise ValueError(f"{shown!r} is negative; a {kind} is not below zero")
    base = number * scale
    if base != int(base) or base > _LARGEST:
        raise ValueError(
            f"{shown!r} is out of range: {'too large' if base > _LARGEST else 'finer than the smallest unit'}"
        )
    if kind == "rate" and base == 0:
        raise ValueError(f"{shown!r} is out of range: a rate is above zero")
    return Quantity(kind, int(base), text)


def _parse_kind(given: object, kind: Literal["duration", "rate", "size"]) -> int:
    try:
        quantity = parse_quantity(given)
    except ValueError as error:
        if isinstance(given, str) and _NUMBER.match(given.strip()):
            raise
        raise ValueError(f"{given!r} is not a {kind}; write for example {_EXAMPLES[kind]!r}") from error
    if quantity.kind == "number":
        raise ValueError(f"{given!r} has no unit; write for example {_EXAMPLES[kind]!r} ({', '.join(_UNITS[kind])})")
    if quantity.kind != kind or not isinstance(quantity.base, int):
        raise ValueError(f"{given!r} is a {quantity.kind}, not a {kind}; write for example {_EXAMPLES[kind]!r}")
    return quantity.base


def parse_duration_ps(given: object) -> int:
    """Picoseconds of a duration such as ``5 ms``; a bare number is refused."""
    return _parse_kind(given, "duration")


def parse_rate_bps(given: object) -> int:
    """Bits per second of a rate such as ``10 Mbit``; a bare number is refused."""
    return _parse_kind(given, "rate")


def parse_size_bytes(given: object) -> int:
    """Bytes of a size such as ``400 MB``; a bare number is refused."""
    return _parse_kind(given, "size")
