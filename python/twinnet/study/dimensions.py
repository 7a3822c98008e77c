"""The dimensions of the sides of a check, so that only like is compared with like."""

from __future__ import annotations

from twinnet.study.quantity import Kind

__all__ = ["ANY", "PLAIN", "combined", "described", "example", "unit_of_kind"]

PLAIN = ""
"""The unit of a bare number: it fits measurements that have no unit in a file, such as a share or a count."""
ANY = "any"
"""The unit of a bare zero, which is the same amount in every unit."""

_OF_KINDS: dict[Kind, str] = {"duration": "s", "rate": "bit/s", "size": "B", "number": PLAIN}
_WORDED = {
    "s": "a time",
    "bit/s": "a rate",
    "B": "a size",
    "1": "a share",
    "1/s": "a number a second",
    "packets": "a number of packets",
    "dB": "a level in dB",
    "SSIM": "a similarity",
    PLAIN: "a bare number",
    ANY: "zero",
}
_EXAMPLES = {"s": "3 ms", "bit/s": "3 Mbit", "B": "3 kB"}


def unit_of_kind(kind: Kind) -> str:
    """The unit of a quantity of `kind`."""
    return _OF_KINDS[kind]


def combined(first: str, second: str) -> str | None:
    """The unit of what `first` and `second` make when they are added or compared; `None` when they cannot be."""
    if first == second or second == ANY:
        return first
    if first == ANY:
        return second
    if PLAIN in (first, second):
        other = second if first == PLAIN else first
        return None if other in _EXAMPLES else other
    return None


def described(unit: str) -> str:
    """Return a description of a value of `unit`, in words."""
    return _WORDED[unit]


def example(unit: str) -> str | None:
    """A quantity of `unit` as a file gives it; `None` where a bare number is right."""
    return _EXAMPLES.get(unit)
