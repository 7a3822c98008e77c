"""The top command: it knows its subcommands by the registry and loads each when it is called."""

from __future__ import annotations

import importlib
import os

import click

from twinnet import __version__
from twinnet.cli.registry import COMMANDS
from twinnet.errors import did_you_mean

__all__ = ["LOG_LEVELS", "LOG_VARIABLE", "LazyGroup", "cli"]

LOG_VARIABLE = "TWINNET_LOG"
"""The variable that the compiled part reads when it is loaded, and that lab processes inherit."""

LOG_LEVELS = ("off", "error", "warn", "info", "debug")
"""The log levels of the compiled part; each level includes those before it."""


class LazyGroup(click.Group):
    """A group whose help and completion need none of its commands' modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in the order of the registry."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command; the real one when it is to be run, a stand-in while only names are completed."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if ctx.resilient_parsing and not _is_typed(ctx, cmd_name):
            return click.Command(cmd_name, help=entry.help, short_help=entry.help)
        command = getattr(importlib.import_module(f"twinnet.cli.{entry.module}"), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the registry."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with; an unknown one gets the nearest name as a hint."""
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


def _set_log_level(ctx: click.Context, parameter: click.Parameter, level: str | None) -> None:
    """Pass `level` on before a command's module, and with it the compiled part, is loaded."""
    if level is not None and not ctx.resilient_parsing:
        os.environ[LOG_VARIABLE] = level


def _is_typed(ctx: click.Context, name: str) -> bool:
    """Return whether `name` was typed in full on the line that is completed, so that its own options are wanted."""
    return name in (*ctx.protected_args, *ctx.args) if hasattr(ctx, "protected_args") else name in ctx.args


@click.command(
    cls=LazyGroup,
    # Nothing here is styled by click, which else takes escape sequences away unseen where there is no terminal.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": True},
    help="A laboratory for software-defined networks.",
    epilog="Exit status: 0 done, 1 the work failed, 2 wrong usage.",
)
@click.version_option(__version__, prog_name="twinnet")
@click.option(
    "--log",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    envvar=LOG_VARIABLE,
    metavar="LEVEL",
    expose_value=False,
    callback=_set_log_level,
    help=f"Tell on standard error what twinnet does: {', '.join(LOG_LEVELS)} (default: warn). Also {LOG_VARIABLE}.",
)
def cli() -> None:
    """Hold the subcommands together."""
