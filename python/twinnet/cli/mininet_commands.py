"""``twinnet mininet`` and ``twinnet mn``."""

from __future__ import annotations

import click

__all__ = ["mininet", "mn"]

_HAS_ITS_OWN = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command("mininet", short_help="Run a Python script of Mininet.", context_settings=_HAS_ITS_OWN)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse settings that Mininet ignores, such as bw on a plain link; status 1 if a command was refused.",
)
@click.option("--export", metavar="FILE", help="Write the network that the script built as a network file (YAML).")
@click.option(
    "--report", metavar="FILE", help="Write a page about the run (HTML): the verdict, the network, its lines."
)
@click.option(
    "--fix-prints", is_flag=True, help="Convert a script for Python 2 in memory: print statements and the like."
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mininet(
    script: str, arguments: tuple[str, ...], strict: bool, export: str | None, report: str | None, fix_prints: bool
) -> int:
    """Run SCRIPT, written for Mininet, with ARGUMENTS, and end with its exit status. SCRIPT can also be a file of
    MiniEdit (.mn), whose network is started with the prompt.

    It needs no root: it runs in a machine of its own, where it is root and sees your files. When it ends, nothing is
    left.
    """
    from twinnet.mininet import script as script_module

    return script_module.run(script, arguments, strict, export, report, fix_prints)


@click.command(
    "mn",
    short_help="Mininet's command, with its options.",
    context_settings={**_HAS_ITS_OWN, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mn(arguments: tuple[str, ...]) -> int:
    """Make a network as Mininet's `mn` does, with its options: `twinnet mn --help` lists them."""
    from twinnet.interpreter import PYTHON
    from twinnet.mininet import machine

    return machine.run([*PYTHON, "-m", "twinnet.mininet.mn", *arguments])
