"""What a command of the prompt answers: a value for programs, text for people, and whether the work was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """The answer to one line.

    Parameters
    ----------
    data
        The answer as JSON can hold it.
    text
        The answer for people; empty when there is nothing to say.
    ok
        Whether the work was done.
    """

    data: Any
    text: str = ""
    ok: bool = True
