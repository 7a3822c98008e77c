"""Writes docs/reference/command-line.md from the commands themselves: ``python docs/command_line_page.py``.

A test compares the page with what this gives, so that it is always true.
"""

from __future__ import annotations

from pathlib import Path

import click
from twinnet.cli.group import LOG_LEVELS, cli
from twinnet.cli.prompt.session import COMMANDS as PROMPT_COMMANDS
from twinnet.cli.registry import COMMANDS

__all__ = ["page"]

INTRODUCTION = """\
# The command line

`twinnet COMMAND --help` shows the same text. (`docs/command_line_page.py` writes this page.)

Exit status: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted. An error is one line on standard error that
begins with `twinnet:`; a file with several mistakes gives a line for each, with file, line and column. Every command
takes `--json` and then prints one JSON value.

With `twinnet --log LEVEL COMMAND`, or the variable `TWINNET_LOG`, twinnet and its labs write to standard error what
they do: {levels}. Each level includes those before it. The default is `warn`. See
[troubleshooting](../how-to/troubleshooting.md#see-what-a-lab-does).

Put this line into `~/.bashrc`. The Tab key then completes commands, options, studies, presets, templates, running
labs, their hosts and ports, and files:

```sh
eval "$(twinnet completion bash)"
```

In zsh write `eval "$(twinnet completion zsh)"`, in fish `twinnet completion fish | source`.
"""

PROMPT = """\
## The prompt of a lab

`twinnet lab` reads these lines. Every other line begins with the name of a host and is a program for it, given to
`/bin/sh` in that host: `h1 ping -c3 h4`. A line that ends with `&` runs in the background. Lines that begin with `#`
are comments. With `--json` each answer is one line of JSON,
`{"command": ..., "ok": ..., "result": ...}`, or with `"error": {"name": ..., "message": ..., "remedy": ...}`.

| line | does |
|---|---|
"""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.format(levels=", ".join(f"`{level}`" for level in LOG_LEVELS))]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        parts.append(_command(name, command))
    rows = "".join(f"| {_code(one.usage)} | {one.help} |\n" for one in PROMPT_COMMANDS.values())
    parts.append(PROMPT + rows)
    return "\n".join(parts)


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"twinnet {name}")
    usage = " ".join([f"twinnet {name}", *command.collect_usage_pieces(context)])
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    if isinstance(command, click.Group):
        below = [_command(f"{name} {one}", each) for one, each in command.commands.items()]
        return "\n".join([f"## twinnet {name}\n\n```text\n{usage}\n```\n\n{text}\n", *below])
    rows = "".join(_option(one, context) for one in command.params if isinstance(one, click.Option))
    return f"## twinnet {name}\n\n```text\n{usage}\n```\n\n{text}\n\n| option | means |\n|---|---|\n{rows}"


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    names, told = record
    return f"| {_code(names)} | {' '.join(told.split())} |\n"


def _code(text: str) -> str:
    """Return `text` as code inside a table, where a bar would begin the next cell."""
    return "`" + text.replace("|", r"\|") + "`"


if __name__ == "__main__":
    (Path(__file__).parent / "reference/command-line.md").write_text(page(), encoding="utf-8")
