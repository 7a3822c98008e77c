"""The option that says how many threads move a network on the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

__all__ = ["fabric_threads_option"]

_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class _Threads(click.ParamType[int | Literal["auto"]]):
    name = "auto|NUMBER"

    # click gives the text of the command line or a default, and says nothing of its type.
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        if isinstance(value, int):
            return value
        if not str(value).isdecimal() or not 1 <= int(str(value)) <= 64:
            self.fail(f"{value!r} is neither auto nor a whole number from 1 to 64", param, ctx)
        return int(str(value))


def fabric_threads_option(command: _Command) -> _Command:
    """Give `command` the option ``--fabric-threads``."""
    option = click.option(
        "--fabric-threads",
        type=_Threads(),
        metavar="auto|NUMBER",
        default="auto",
        show_default=True,
        help="How many threads move the network on the wall clock.",
    )
    return option(command)
