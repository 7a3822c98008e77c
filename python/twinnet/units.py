"""Quantities: text with a unit outside, exact integers inside (picoseconds, bits per second, bytes).

A bare number is refused where a unit is meant: ``"10 Mbit"``, never ``10``. The rules are those of the Rust crate
``units``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TypeAlias

from twinnet.errors import BadProbability, BadQuantity

__all__ = [
    "PS_PER_SECOND",
    "BitsPerSecond",
    "Bytes",
    "Duration",
    "Picoseconds",
    "Rate",
    "Size",
    "duration_ps",
    "format_duration",
    "format_rate",
    "format_size",
    "probability",
    "rate_bps",
    "share_of_frames",
    "size_bytes",
]

PS_PER_SECOND = 1_000_000_000_000
"""Picoseconds in a second."""


class Picoseconds(int):
    """A duration as an exact number of picoseconds; stands wherever text such as ``"5 ms"`` may.

    Examples
    --------
    >>> duration_ps(Picoseconds(5_000))
    5000
    """


class BitsPerSecond(int):
    """A rate as an exact number of bits per second; stands wherever text such as ``"10 Mbit"`` may."""


class Bytes(int):
    """A size as an exact number of bytes; stands wherever text such as ``"1500 B"`` may."""


Duration: TypeAlias = str | Picoseconds
"""Text such as ``"5 ms"``, or picoseconds."""
Rate: TypeAlias = str | BitsPerSecond
"""Text such as ``"10 Mbit"``, or bits per second."""
Size: TypeAlias = str | Bytes
"""Text such as ``"1500 B"``, or bytes."""


def duration_ps(value: object, what: str = "duration") -> int:
    """Return the duration `value`, such as ``"5 ms"``, in picoseconds.

    Parameters
    ----------
    value
        Text with a unit: ps, ns, us, ms, s, min, h; or `Picoseconds`.
    what
        What the duration is, for the message.

    Raises
    ------
    BadQuantity
        When it has no unit, is negative, or cannot be read.

    Examples
    --------
    >>> duration_ps("1.5 us")
    1500000
    """
    if isinstance(value, Picoseconds):
        return _exact(value, what, 0)
    from twinnet._core import parse_duration

    return _parse(parse_duration, value, what, "5 ms")


def rate_bps(value: object, what: str = "rate") -> int:
    """Return the rate `value`, such as ``"10 Mbit"`` or ``"1 Gbit/s"``, in bits per second. Raises as
    :func:`duration_ps`.

    Examples
    --------
    >>> rate_bps("512 kbit/s")
    512000
    """
    if isinstance(value, BitsPerSecond):
        return _exact(value, what, 1)
    from twinnet._core import parse_rate

    return _parse(parse_rate, value, what, "10 Mbit")


def size_bytes(value: object, what: str = "size") -> int:
    """Return the size `value`, such as ``"1500 B"`` or ``"64 KiB"``, in bytes. Raises as :func:`duration_ps`.

    Examples
    --------
    >>> size_bytes("64 KiB")
    65536
    """
    if isinstance(value, Bytes):
        return _exact(value, what, 0)
    from twinnet._core import parse_size

    return _parse(parse_size, value, what, "1500 B")


def _exact(value: int, what: str, least: int) -> int:
    if value < least:
        raise BadQuantity(f"the {what} {value!r} is out of range; allowed are {least} and more")
    return int(value)


def _parse(parse: Callable[[str], int], value: object, what: str, example: str) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise BadQuantity(
            f"the {what} {value!r} has no unit", f'write it as text with its unit, for example "{example}"'
        )
    if not isinstance(value, str):
        raise BadQuantity(f"the {what} {_shown(value)} is not text with a unit", f'write for example "{example}"')
    try:
        return parse(value)
    except ValueError as error:
        raise BadQuantity(f"the {what} {error}") from None


def probability(value: object, what: str = "probability") -> float:
    """Return the probability `value`: a number from 0 to 1, or text such as ``"1 %"``.

    Raises
    ------
    BadProbability
        When it is outside 0 to 1 or cannot be read.

    Examples
    --------
    >>> probability("1 %")
    0.01
    """
    number: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str):
        text = value.strip()
        percent = text.endswith("%")
        try:
            number = float(text.removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            number = None
    if number is None:
        raise BadProbability(f"the {what} {_shown(value)} is not a probability", 'write for example 0.01 or "1 %"')
    if not 0 <= number <= 1:
        raise BadProbability(
            f"the {what} {_shown(value)} is outside 0 to 1 (0 % to 100 %)", 'write for example 0.01 or "1 %"'
        )
    return number


def share_of_frames(value: object, what: str = "share") -> float:
    """Return the share of frames `value`, such as ``"1 %"``, as a number from 0 to 1.

    A number without ``%`` is refused: tools of this field write per cent without it (``loss=1`` of Mininet and `tc`),
    where a probability of 1 is all of the frames.

    Raises
    ------
    BadProbability
        When it has no ``%`` and is not 0, is outside 0 % to 100 %, or cannot be read.

    Examples
    --------
    >>> share_of_frames("1 %")
    0.01
    """
    if isinstance(value, str) and value.strip().endswith("%"):
        return probability(value, what)
    try:
        bare = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else nan
    except ValueError:
        bare = nan
    if bare <= 0:
        return probability(bare, what)
    remedy = 'write for example "1 %"'
    if 0 < bare <= 100:
        meanings = [bare] if bare > 1 else [100 * bare, bare]
        remedy = "write " + " or ".join(f'"{per_cent:g} %"' for per_cent in sorted(meanings))
    wrong = "has no unit" if bare > 0 else "is not a share of frames"
    raise BadProbability(f"the {what} {_shown(value)} {wrong}", remedy)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def format_duration(ps: int) -> str:
    """Return `ps` picoseconds as text that reads back exactly, such as ``"1.5 ms"``."""
    from twinnet import _core

    return _core.format_duration(ps)


def format_rate(bps: int) -> str:
    """Return `bps` bits per second as text that reads back exactly, such as ``"10 Mbit/s"``."""
    from twinnet import _core

    return _core.format_rate(bps) if bps else "0 bit/s"


def format_size(size: int) -> str:
    """Return `size` bytes as text that reads back exactly, such as ``"1.5 kB"``."""
    from twinnet import _core

    return _core.format_size(size)
