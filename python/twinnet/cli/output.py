"""Output of commands for programs: one JSON value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

__all__ = ["json_option", "print_json"]

json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that every command has."""


def print_json(value: Any) -> None:
    """Print `value` as one line of JSON."""
    click.echo(json.dumps(value, ensure_ascii=False))
