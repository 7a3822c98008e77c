"""The answer of a prompt command: a value for programs, text for people, and whether the work was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twinnet.report.text_table import wrapped

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
    fitted
        Makes the answer for people for a terminal of a width in columns; `text` is broken between words without it.
    verbatim
        `text` is shown as it is: what others parse or copy, such as flows.
    ok
        Whether the work was done.
    """

    data: Any
    text: str = ""
    ok: bool = True
    fitted: Callable[[int | None], str] | None = None
    verbatim: bool = False

    def text_for(self, columns: int | None) -> str:
        """Return the text for a terminal of `columns`; `None`: no terminal."""
        if columns is None or self.verbatim:
            return self.text
        return self.fitted(columns) if self.fitted is not None else wrapped(self.text, columns)
