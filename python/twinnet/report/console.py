"""The console of reports: it prints text as it is, and shows control characters."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from twinnet.shown_text import bare, shown_text

__all__ = ["text_console"]


class _ShowingConsole(Console):
    """A console that writes out what would steer the terminal; its own colours and moves stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown_text(segment.text), segment.style)


def text_console(
    file: IO[str] | None = None,
    *,
    stderr: bool = False,
    width: int | None = None,
    quiet: bool = False,
    coloured: bool = True,
) -> Console:
    """Return a console that writes to `file` (default: standard output or, by `stderr`, standard error), in colours if
    that is a terminal and they are wanted.

    Names and messages come from programs and files of others, so nothing in them is markup, the name of a picture
    (``:x:``), to be coloured, or steers the terminal.
    """
    colours = "auto" if coloured else None
    stream = bare(file if file is not None else sys.stderr if stderr else sys.stdout)
    return _ShowingConsole(
        file=stream, width=width, quiet=quiet, color_system=colours, highlight=False, markup=False, emoji=False
    )
