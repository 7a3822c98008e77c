"""``twinnet completion``."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from twinnet.cli.output import json_option, print_json

__all__ = ["completion"]

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the script that completes twinnet's words in your shell.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@json_option
def completion(shell: str | None, as_json: bool) -> None:
    """Print the script that lets the Tab key complete commands, options, studies, presets, templates, running labs,
    their hosts and ports, and files. Without a shell's name, it is the script for the shell that you use.

    \b
    bash:  eval "$(twinnet completion bash)"      (in ~/.bashrc)
    zsh:   eval "$(twinnet completion zsh)"       (in ~/.zshrc)
    fish:  twinnet completion fish | source       (in ~/.config/fish/config.fish)
    """
    from twinnet.cli.group import cli

    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        raise click.UsageError(f"name your shell: {', '.join(SHELLS)}")
    made = get_completion_class(chosen)
    assert made is not None
    script = made(cli, {}, "twinnet", "_TWINNET_COMPLETE").source()
    if as_json:
        print_json({"shell": chosen, "script": script})
    else:
        click.echo(script)
