"""The option that says how many threads move a network on the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

__all__ = ["fabric_threads_option"]

_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class _Threads(click.ParamType[Any]):
    name = "auto|NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        if value == "auto" or isinstance(value, int):
            return value
        if not str(value).isdecimal() or not 1 <= int(value) <= 64:
            self.fail(f"{value!r} is neither auto nor a whole number from 1 to 64", param, ctx)
        return int(value)


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
