"""Values of study parameters: a quantity with its unit, a plain number or a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from twinnet.errors import BadQuantity
from twinnet.ranges import moment_ps
from twinnet.units import PS_PER_SECOND, duration_ps, rate_bps, size_bytes

__all__ = ["Kind", "Quantity", "parse_moment_ps", "parse_quantity", "reader"]

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


def reader(parse: Callable[[object, str], int], what: str) -> Callable[[object], int]:
    """Return a function that reads a quantity of a study file by `parse`, as `what` it is: it refuses bare numbers and
    raises `ValueError`, as pydantic wants it."""

    def read(given: object) -> int:
        try:
            return parse(given, what)
        except BadQuantity as error:
            raise ValueError(str(error)) from None

    return read


parse_moment_ps: Callable[[object], int] = reader(moment_ps, "time")
"""Picoseconds of a time after the start, at most 100 days."""
