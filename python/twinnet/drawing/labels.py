"""Labels of links in a picture: beside their line, in short lines, so that neither line nor label is crossed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from twinnet.drawing.placing import Place

if TYPE_CHECKING:
    from twinnet.drawing.picture import DrawnLink

__all__ = ["Side", "hangs", "label_lines", "label_side", "slant"]

Side = Literal["above", "left", "right"]
"""Where a label stands, seen from the middle of its link."""

_MOST_CHARACTERS = 22
# A line that rises by less than a third of its width has room above it; beside a steeper one is more.
_FLAT = 0.33


def label_lines(label: str) -> list[str]:
    """Return `label` in lines of at most 22 characters, parted between settings; a longer setting stays whole.

    Examples
    --------
    >>> label_lines("10 Mbit/s delay 20 ms, fifo queue")
    ['10 Mbit/s delay 20 ms,', 'fifo queue']
    """
    lines: list[str] = []
    for setting in _settings(label):
        if lines and len(lines[-1]) + 1 + len(setting) <= _MOST_CHARACTERS:
            lines[-1] += f" {setting}"
        else:
            lines.append(setting)
    return lines


def _settings(label: str) -> list[str]:
    """The parts of a label that belong together: a number with its unit, and the word before it."""
    parts: list[str] = []
    for word in label.split():
        begins = not parts or parts[-1].endswith(",") or (word[0].isalpha() and any(map(str.isdigit, parts[-1])))
        # A unit follows its number, a number the word that says what it is.
        if begins and not (parts and _is_number(parts[-1].split()[-1])):
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    return parts


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def label_side(one: Place, other: Place, middle: float) -> Side:
    """Return where the label of a link stands: above a flat line, beside a steep one, away from the picture's `middle`.

    Parameters
    ----------
    one, other
        The link's ends.
    middle
        The middle of the picture, from left to right.
    """
    (x1, y1), (x2, y2) = one, other
    if abs(y2 - y1) <= _FLAT * abs(x2 - x1):
        return "above"
    return "left" if (x1 + x2) / 2 < middle - 1e-6 else "right"


def slant(one: Place, other: Place) -> float:
    """Return how far to the side a steep link goes for each step down: a label beside it keeps clear of that."""
    (x1, y1), (x2, y2) = one, other
    return abs(x2 - x1) / abs(y2 - y1) if y1 != y2 else 0.0


def hangs(name: str, links: Iterable[DrawnLink], places: Mapping[str, Place]) -> bool:
    """Return whether all links of the node `name` go down: its note then stands above it, where no link passes."""
    ends = [link.b if link.a == name else link.a for link in links if name in (link.a, link.b)]
    x, y = places[name]
    return bool(ends) and all(places[end][1] > y + 0.5 * abs(places[end][0] - x) for end in ends)
