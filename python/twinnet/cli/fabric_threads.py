"""The option that says how many threads move a network on the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

from twinnet.errors import BadValue
from twinnet.network.checks import checked_fabric_threads

__all__ = ["fabric_threads_option"]

_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")


class _Threads(click.ParamType[int | Literal["auto"]]):
    name = "auto|NUMBER"

    # click gives the text of the command line or a default, and says nothing of its type.
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        try:
            return checked_fabric_threads(int(str(value)) if str(value).isdecimal() else value)
        except BadValue as error:
            self.fail(str(error), param, ctx)


def fabric_threads_option(command: _Command) -> _Command:
    """Give `command` the option ``--fabric-threads``."""
    option = click.option(
        "--fabric-threads",
        type=_Threads(),
        metavar="auto|NUMBER",
        help="How many threads move the network on the wall clock; default: what its file says, else auto.",
    )
    return option(command)
