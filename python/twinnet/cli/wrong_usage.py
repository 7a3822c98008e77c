"""What a user who typed something else may want: nearest values, options of other tools, blanks in values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from twinnet.errors import did_you_mean

__all__ = ["remedy"]

_OPTIONS_OF_OTHER_TOOLS = {
    "--topo": "name the network itself: twinnet lab tree:2,3",
    "--custom": "describe the network in a file: twinnet lab FILE.yaml",
    "--link": "write --rate '10 Mbit' --delay '5 ms' --loss '1 %'",
    "--bw": "write --rate '10 Mbit'",
    "--test": "write -c pingall",
    "--mac": "MAC addresses count from 00:00:00:00:00:01 without it",
    "--repetitions": "write --repeat N",
}
"""Options of Mininet, and words for ours, and what to write here."""

_UNIT = re.compile(r"(ps|ns|us|ms|s|min|h|[kMGT]?bit(/s|ps)?|[kM]?B|%)")


def remedy(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Return what to write instead of `arguments`, which `error` refuses; empty when the error says it itself.

    Examples
    --------
    >>> choice = click.Option(["--clock"], type=click.Choice(["wall", "virtual"]))
    >>> remedy(click.BadParameter("'virtuel' is not one of 'wall', 'virtual'.", param=choice), [])
    "did you mean 'virtual'?"
    """
    if isinstance(error, click.NoSuchOption):
        return _OPTIONS_OF_OTHER_TOOLS.get(error.option_name, "")
    if isinstance(error, click.BadParameter):
        kind = error.param.type if error.param is not None else None
        given = re.match(r"'([^']*)' is not one of", error.message)
        if isinstance(kind, click.Choice) and given is not None:
            nearest = did_you_mean(given[1], [str(one) for one in kind.choices])
            return nearest if nearest.endswith("?") else ""
        return ""
    if isinstance(error, click.UsageError) and "unexpected extra argument" in error.message:
        for before, option, value, unit in _fours(arguments):
            if option.startswith("--") and re.fullmatch(r"[\d.]+", value) and _UNIT.fullmatch(unit) and before != "--":
                return f"put a value with a blank in quotes: {option} '{value} {unit}'"
    return ""


def _fours(words: Sequence[str]) -> list[tuple[str, str, str, str]]:
    padded = ["", *words]
    return list(zip(padded, padded[1:], padded[2:], padded[3:], strict=False))
