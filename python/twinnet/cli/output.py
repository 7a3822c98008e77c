"""Output of commands for programs: one JSON value."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click

__all__ = ["json_option", "print_json"]

json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option that every command has."""


def print_json(value: Any) -> None:
    """Print `value` as one line of JSON."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        # The terminal's locale lacks a character, or an argument was no text: JSON has a form for these.
        text = json.dumps(value)
    click.echo(text)
