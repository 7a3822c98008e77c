"""``twinnet mininet`` and ``twinnet mn``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from twinnet.errors import BadValue

if TYPE_CHECKING:
    from twinnet.mininet.virtual_machine import VirtualMachine

__all__ = ["mininet", "mn"]

_OPTIONS_FIRST = {"allow_interspersed_args": False}
"""What follows the first argument belongs to that."""
_OF_THE_MACHINE = (
    click.option(
        "--clock",
        type=click.Choice(["wall", "virtual"]),
        default="wall",
        show_default=True,
        help="On the virtual clock all runs in simulated time: the same each time, however busy the machine is.",
    ),
    click.option(
        "--seed", type=click.IntRange(0), help="With --clock virtual: the seed of all randomness; default: 1."
    ),
    click.option("--memory", metavar="SIZE", help="With --clock virtual: the memory of all programs; default: 1 GiB."),
    click.option(
        "--date", metavar="DATE", help="With --clock virtual: the date at which it begins; default: 2026-01-01."
    ),
    click.option(
        "--patience",
        metavar="TIME",
        help="With --clock virtual: the processor time that programs may take at one moment; default: 60 s.",
    ),
    click.option(
        "--env",
        "variables",
        metavar="NAME[=VALUE]",
        multiple=True,
        help="With --clock virtual: a variable for the script, your own where you give no value; may be repeated.",
    ),
    click.option(
        "--keep",
        metavar="FOLDER",
        multiple=True,
        help="With --clock virtual: bring back what is written there too; may be repeated.",
    ),
    click.option(
        "--controller-run",
        metavar="COMMAND",
        help="Start this controller in the script's machine first; it is to listen at port 6653 ({port}), and what it"
        " writes goes to controller.log.",
    ),
)


_OF_THE_MACHINE_NAMES = ("--clock", "--seed", "--memory", "--date", "--patience", "--env", "--keep", "--controller-run")


def _of_the_machine(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OF_THE_MACHINE):
        command = option(command)
    return command


def _virtual(clock: str, settings: dict[str, Any]) -> VirtualMachine | None:
    """Return the machine on the virtual clock that is asked for, if one is."""
    given = {name: value for name, value in settings.items() if value not in (None, ())}
    if clock == "wall":
        if given:
            name = next(iter(given)).replace("variables", "env")
            raise BadValue(f"--{name} is for --clock virtual", "add --clock virtual, or leave it away")
        return None
    import os

    from twinnet.mininet.virtual_machine import VirtualMachine

    variables: dict[str, str] = {}
    for text in given.pop("variables", ()):
        name, assigned, value = text.partition("=")
        if not name:
            raise BadValue(f"--env {text}: it has no name", "write NAME=VALUE")
        if not assigned and name not in os.environ:
            raise BadValue(f"--env {name}: you have no such variable", "write NAME=VALUE")
        variables[name] = value if assigned else os.environ[name]
    return VirtualMachine(variables=variables, **given)


@click.command("mininet", short_help="Run a Python script of Mininet.", context_settings=_OPTIONS_FIRST)
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
@_of_the_machine
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mininet(
    script: str,
    arguments: tuple[str, ...],
    strict: bool,
    export: str | None,
    report: str | None,
    fix_prints: bool,
    clock: str,
    controller_run: str | None,
    **of_virtual: Any,
) -> int:
    """Run SCRIPT, written for Mininet, with ARGUMENTS, and end with its exit status. SCRIPT can also be a file of
    MiniEdit (.mn), whose network is started with the prompt.

    It needs no root: it runs in a machine of its own, where it is root and sees your files. When it ends, nothing is
    left.
    """
    from twinnet.mininet import script as script_module

    virtual = _virtual(clock, of_virtual)
    return script_module.run(script, arguments, strict, export, report, fix_prints, controller_run, virtual)


@click.command(
    "mn",
    short_help="Mininet's command, with its options.",
    context_settings={**_OPTIONS_FIRST, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@_of_the_machine
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mn(arguments: tuple[str, ...], clock: str, controller_run: str | None, **of_virtual: Any) -> int:
    """Make a network as Mininet's `mn` does, with its options: `twinnet mn --help` lists them. Options of twinnet come
    before those of `mn`."""
    from twinnet.interpreter import PYTHON
    from twinnet.mininet import machine
    from twinnet.mininet.beside_controller import beside

    late = {name for option in _OF_THE_MACHINE_NAMES for name in arguments if name.partition("=")[0] == option}
    if late:
        raise BadValue(f"{late.pop()} comes after an option of mn", "write options of twinnet first")
    command = [*PYTHON, "-m", "twinnet.mininet.mn", *arguments]
    if controller_run is not None:
        command = beside(controller_run, command)
    virtual = _virtual(clock, of_virtual)
    return machine.run(command) if virtual is None else virtual.run(command)
