"""Options that several commands have, and the kinds of paths that options and arguments take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["FILE", "FOLDER", "PATH", "parallel_edges_option", "run_code_option", "with_invalid_option", "yes_option"]

PATH: click.Path = click.Path(path_type=Path)
"""A path; like the others, it arrives as a `Path`."""
FILE: click.Path = click.Path(dir_okay=False, path_type=Path)
"""The path of a file."""
FOLDER: click.Path = click.Path(file_okay=False, path_type=Path)
"""The path of a folder."""

_Option = Callable[[Any], Any]
with_invalid_option: _Option = click.option(
    "--with-invalid", is_flag=True, help="Use runs that missed their schedule too."
)
"""Given to a command that shows results."""


def _let_run(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        from twinnet.study.consent import asked_for

        context.with_resource(asked_for())


run_code_option: _Option = click.option(
    "--run-code",
    is_flag=True,
    expose_value=False,
    callback=_let_run,
    help="Run the Python that others' results bring; read it first. What you ran once needs no such word.",
)
"""Given to a command that reads results, which may have metrics of their own."""
parallel_edges_option: _Option = click.option(
    "--parallel-edges",
    type=click.Choice(["refuse", "merge", "keep"]),
    help="Edges of GraphML between the same two nodes: one link (merge), links side by side (keep), or refused.",
)
"""Given to a command that takes a network."""
yes_option: _Option = click.option("--yes", is_flag=True, help="Do not ask before a long study.")
"""Given to a command that makes runs."""
