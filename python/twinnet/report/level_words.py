"""The words by which figures call the levels of factors: those of the level's `text`, as long as they stay short."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping

from twinnet.study.specification import Factor

__all__ = ["LABEL", "WIDEST", "case_words", "level_words", "wrapped"]

LABEL = "label"
"""The dimension of what a measurement distinguishes: kinds of traffic, ports, flows."""
_LONGEST = 40
WIDEST = 36
"""Letters of words that stand in one line beside a row."""
_FIRST_PARTS = (re.compile(r"[:;(]| - "), re.compile(r", "))
_ABOUT_ANOTHER = re.compile(r"the same\b", re.IGNORECASE)


def level_words(factor: Factor) -> dict[str, str]:
    """Return the words of each level of `factor`: its text, or the first part of a long one.

    All levels have their names instead where texts do not tell them apart, or tell of another level ("the same").

    Examples
    --------
    >>> from twinnet.study.specification import Level
    >>> level_words(Factor(levels={"a": Level(text="MGEN, sent by the timer that it has by itself"), "b": Level()}))
    {'a': 'MGEN', 'b': 'b'}
    >>> level_words(Factor(levels={"a": Level(text="UDP, 30 %"), "b": Level(text="The same, 60 %")}))
    {'a': 'a', 'b': 'b'}
    """
    texts = {name: level.text.strip().rstrip(".") or name for name, level in factor.levels.items()}
    words = {name: _short(text) for name, text in texts.items()}
    told_apart = len({word.casefold() for word in words.values()}) == len(words)
    if told_apart and not any(_ABOUT_ANOTHER.match(text) for text in texts.values()):
        return words
    return {name: name for name in texts}


def _short(text: str) -> str:
    for ends in _FIRST_PARTS:
        if len(text) <= _LONGEST:
            return text
        text = ends.split(text, maxsplit=1)[0].strip()
    return text if len(text) <= _LONGEST else textwrap.shorten(text, _LONGEST, placeholder=" ...")


def wrapped(words: str, breaks: str = "\n") -> str:
    """Return `words` in one line, or in two of about the same length, to stand beside a row of a figure."""
    if len(words) <= WIDEST:
        return words
    lines = textwrap.wrap(words, len(words) // 2 + 4, break_long_words=False)
    return breaks.join([lines[0], " ".join(lines[1:])] if lines[1:] else lines)


def case_words(levels: Mapping[str, str], dimensions: Iterable[str], words: Mapping[str, Mapping[str, str]]) -> str:
    """Return the title of a panel: of each of `dimensions` its name with the words of its level; kinds of traffic,
    ports and flows without a name before them.

    Examples
    --------
    >>> case_words({"queue": "fifo", "label": "udp"}, ["queue", "label"], {"label": {"udp": "UDP"}})
    'queue: fifo, UDP'
    """
    named = [(name, words.get(name, {}).get(levels[name], levels[name])) for name in dimensions]
    return ", ".join(word if name == LABEL else f"{name}: {word}" for name, word in named)
