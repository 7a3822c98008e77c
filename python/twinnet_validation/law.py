"""A law, and a row of what was found of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Law", "Row", "within"]


@dataclass(frozen=True)
class Row:
    """The expected and the measured value for one setting of a law.

    Parameters
    ----------
    setting
        The setting in words.
    quantity, unit
        What was measured.
    expected
        What the law says; `None` where it says only a direction, which `tolerance` then states.
    seen
        What was measured.
    tolerance
        What may lie between them, and why so much.
    passed
        Whether no more does.
    interval
        Confidence interval of `seen` at :data:`twinnet_validation.confidence.LEVEL`; `None` where nothing is random.
    """

    setting: str
    quantity: str
    unit: str
    expected: float | None
    seen: float
    tolerance: str
    passed: bool
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Law:
    """A law and how to check it.

    Parameters
    ----------
    name
        Its key on the command line.
    title
        Its heading.
    physics
        Why it holds, in a sentence or two.
    source
        Where it is written.
    measure
        Gives its rows; given `True` in a short form, with fewer settings or samples.
    """

    name: str
    title: str
    physics: str
    source: str
    measure: Callable[[bool], Sequence[Row]]


def within(
    setting: str,
    quantity: str,
    unit: str,
    expected: float,
    seen: float,
    share: float,
    why: str,
) -> Row:
    """Return a row that passes when `seen` is within `share` of `expected`."""
    passed = abs(seen - expected) <= share * abs(expected)
    return Row(setting, quantity, unit, expected, seen, f"{share * 100:g} %: {why}", passed)
