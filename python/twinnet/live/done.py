"""What an act of the page has done, and what undoes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Done"]


class Done(NamedTuple):
    """A change that was made.

    Attributes
    ----------
    lines
        What does the same at the prompt; none where the prompt has no words for it.
    python
        What does the same in Python.
    undo
        Undoes it, and returns what that has done; ``None``: it cannot be undone.
    note
        What is to be known of its effect.
    """

    lines: Sequence[str]
    python: Sequence[str]
    undo: Callable[[], Done] | None
    note: str = ""
