"""The console of reports: it prints text as it is."""

from __future__ import annotations

from typing import IO

from rich.console import Console

__all__ = ["text_console"]


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
    (``:x:``) or to be coloured.
    """
    colours = "auto" if coloured else None
    return Console(
        file=file, stderr=stderr, width=width, quiet=quiet, color_system=colours, highlight=False, markup=False,
        emoji=False,
    )  # fmt: skip
