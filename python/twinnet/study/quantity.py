"""Values of study parameters: a quantity with its unit, a plain number or a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from twinnet.errors import BadQuantity
from twinnet.ranges import counting_interval_ps, line_rate_bps, moment_ps, run_time_ps, transfer_bytes
from twinnet.units import PS_PER_SECOND, duration_ps, rate_bps, size_bytes

__all__ = [
    "Kind",
    "Quantity",
    "parse_duration_ps",
    "parse_interval_ps",
    "parse_moment_ps",
    "parse_quantity",
    "parse_rate_bps",
    "parse_run_time_ps",
    "parse_size_bytes",
    "parse_transfer_bytes",
]

Kind = Literal["duration", "rate", "size", "number", "word"]

_KINDS: dict[Literal["duration", "rate", "size"], Callable[[object, str], int]] = {
    "duration": duration_ps,
    "rate": rate_bps,
    "size": size_bytes,
}
_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,199}")
_FORMS = "write for example '10 Mbit', '5 ms', '400 MB', 3 or cubic"


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
        """The value in seconds, bits per second, bytes or as it is.

        Raises
        ------
        ValueError
            The value is a word.
        """
        if isinstance(self.base, str):
            raise ValueError(f"{self.text!r} is a word, not a number")
        return self.base / PS_PER_SECOND if self.kind == "duration" else float(self.base)


def parse_quantity(given: object) -> Quantity:
    """Read a parameter's value.

    A text that begins with a number must go on with a known unit or nothing; other text is a word.

    Raises
    ------
    ValueError
        It is neither; or the unit is not known, or the value is out of the range that the unit's kind has.
    """
    shown = repr(given)[:60]
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ValueError(f"{shown} is not a quantity, a number or a word; {_FORMS}")
    text = str(given).strip()
    if _WORD.fullmatch(text):
        return Quantity("word", text, text)
    number = _NUMBER.match(text)
    if number is None:
        raise ValueError(f"{shown} is not a quantity, a number or a word; {_FORMS}")
    if number.end() == len(text):
        value = float(text)
        return Quantity("number", int(text) if re.fullmatch(r"[+-]?\d+", text) else value, text)
    refused: list[str] = []
    for kind, parse in _KINDS.items():
        try:
            return Quantity(kind, parse(text, "value"), text)
        except BadQuantity as error:
            if "unknown unit" not in str(error):
                raise ValueError(str(error)) from None
            refused.append(str(error).partition("; known are ")[2])
    raise ValueError(f"{shown} has an unknown unit; known are {', '.join(refused)}")


def _as_value_error(parse: Callable[[object, str], int], given: object, what: str) -> int:
    try:
        return parse(given, what)
    except BadQuantity as error:
        raise ValueError(str(error)) from None


def parse_duration_ps(given: object) -> int:
    """Picoseconds of a duration such as ``5 ms``; a bare number is refused with `ValueError`, as pydantic wants it."""
    return _as_value_error(duration_ps, given, "duration")


def parse_moment_ps(given: object) -> int:
    """Picoseconds of a time after the start, at most 100 days; raises `ValueError`."""
    return _as_value_error(moment_ps, given, "time")


def parse_run_time_ps(given: object) -> int:
    """Picoseconds that traffic lasts, above zero and at most 100 days; raises `ValueError`."""
    return _as_value_error(run_time_ps, given, "duration")


def parse_interval_ps(given: object) -> int:
    """Picoseconds of an interval in which is counted, 1 ms to an hour; raises `ValueError`."""
    return _as_value_error(counting_interval_ps, given, "interval")


def parse_rate_bps(given: object) -> int:
    """Bits per second of a rate such as ``10 Mbit``; a bare number is refused with `ValueError`."""
    return _as_value_error(line_rate_bps, given, "rate")


def parse_transfer_bytes(given: object) -> int:
    """Bytes of a transfer such as ``400 MB``, at most 1 PB; raises `ValueError`."""
    return _as_value_error(transfer_bytes, given, "size")


def parse_size_bytes(given: object) -> int:
    """Bytes of a size such as ``400 MB``; a bare number is refused with `ValueError`."""
    return _as_value_error(size_bytes, given, "size")
