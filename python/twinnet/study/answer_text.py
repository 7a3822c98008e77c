"""The answer of a study in its own words: text in which measured quantities stand in braces.

answer: UDP takes {mean(throughput[protocol=udp], queues=shared)} of ${link_rate} while it sends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinnet.study.predicate import Names, Side, parse_side, unit_of_side

__all__ = ["AnswerPart", "parse_answer"]

_BRACED = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class AnswerPart:
    """A piece of the answer: its text, or a quantity with its unit that is measured and written there."""

    text: str
    side: Side | None = None
    unit: str = ""


def parse_answer(text: str, names: Names) -> list[AnswerPart]:
    """Return the pieces of `text`.

    Raises
    ------
    ValueError
        What stands in braces is no quantity that the study measures; or a brace is left alone.
    """
    parts: list[AnswerPart] = []
    end = 0
    for found in _BRACED.finditer(text):
        parts.append(AnswerPart(text[end : found.start()]))
        inner = found.group(1).strip()
        parts.append(AnswerPart(inner, parse_side(inner, names), unit_of_side(inner, names)))
        end = found.end()
    parts.append(AnswerPart(text[end:]))
    for part in parts:
        if part.side is None and ("{" in part.text or "}" in part.text):
            raise ValueError("a brace is left alone; a measured quantity stands between { and }")
    return [part for part in parts if part.text]
