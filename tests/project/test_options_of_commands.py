"""Every option of the command line is used by a test: of the command, and not of another that has one of that name.

A test uses an option of a command when the option stands in it, and the command in it or in what it shares with its
file: helpers, constants, imported modules (`twinnet.cli.abw_command`) and its name (`test_send_and_recv.py`). A line
of a documentation page that is executed uses those that stand in it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from markdown_blocks import blocks_of
from twinnet.cli.group import cli
from twinnet.cli.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
OF_EVERY_COMMAND = {"--help"}
Words = set[str]


def commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield the command, or those below a group, by their names with spaces."""
    if isinstance(command, click.Group):
        for below, one in command.commands.items():
            yield from commands(f"{name} {below}", one)
    else:
        yield name, command


def all_commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        found.update(commands(name, command))
    return found


def options(command: click.Command) -> list[list[str]]:
    """The options of a command, each with all its names."""
    named = [
        [*one.opts, *one.secondary_opts] for one in command.params if isinstance(one, click.Option) and not one.hidden
    ]
    return [names for names in named if not OF_EVERY_COMMAND & set(names)]


def words(node: ast.AST) -> Words:
    """The words of all texts in a piece of code; of ``--name=value`` the name."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return {word.partition("=")[0] if word.startswith("-") else word for text in texts for word in text.split()}


def words_of_file(path: Path) -> dict[str, Words]:
    """The words of each test in a file, with those of the file's helpers and constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    shared: Words = set().union(*(words(one) for one in tree.body if one not in tests))
    imported = [one.module or "" for one in tree.body if isinstance(one, ast.ImportFrom)]
    shared |= {word for name in (path.stem, *imported) for word in re.split(r"[._]", name)}
    place = path.relative_to(ROOT)
    return {f"{place}::{test.name}": words(test) | shared for test in tests}


def lines_of_pages() -> dict[str, Words]:
    """The words of each line with `twinnet` in blocks of the documentation that a test executes."""
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if page.stem != "changelog")]
    found: dict[str, Words] = {}
    for page in pages:
        for block in blocks_of(page):
            left_out = any(block.note(name) is not None for name in ("syntax", "options", "make"))
            if block.language not in ("sh", "console") or left_out:
                continue
            for number, line in enumerate(re.sub(r"\\\n", " ", block.text).splitlines(), 1):
                if "twinnet" in line:
                    found[f"{page.relative_to(ROOT)}:{block.line + number}"] = {
                        word.partition("=")[0] if word.startswith("-") else word for word in line.split()
                    }
    return found


@functools.cache
def users() -> dict[str, Words]:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = lines_of_pages()
    for path in files:
        if path != Path(__file__):
            found.update(words_of_file(path))
    return found


@pytest.mark.parametrize("name", list(all_commands()))
def test_every_option_of_a_command_is_used_by_a_test(name: str) -> None:
    path = set(name.split())
    of_the_command = [found for found in users().values() if path <= found]
    unused = [
        " ".join(names)
        for names in options(all_commands()[name])
        if not any(set(names) & found for found in of_the_command)
    ]
    assert unused == []
