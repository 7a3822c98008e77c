"""``twinnet exec``."""

from __future__ import annotations

import os
import signal
import sys

import click

from twinnet.cli.output import json_option, print_json

__all__ = ["exec_"]

_NOT_FOUND = 127


@click.command(
    "exec",
    short_help="Run a program in a host of a running lab.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@json_option
@click.argument("lab_name", metavar="LAB")
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(lab_name: str, host: str, command: tuple[str, ...], as_json: bool) -> int:
    """Run COMMAND in HOST of LAB with its own exit status (128 + signal when a signal ended it).

    Standard input is passed on; from a terminal, the program has a terminal. Write -- before COMMAND.
    """
    from twinnet import lab as lab_module
    from twinnet.cli.terminal import on_terminal, run_on_terminal
    from twinnet.errors import LabError

    argv = [*command[1:]] if command[0] == "--" else [*command]
    if not argv:
        raise click.UsageError("no command was given")
    with lab_module.attach(lab_name) as lab:
        where = lab[host]
        try:
            if as_json:
                done = where.run(argv, env=dict(os.environ), cwd=os.getcwd())
                print_json(
                    {
                        "stdout": done.stdout,
                        "stderr": done.stderr,
                        "status": done.shell_status,
                        "elapsed_s": done.elapsed_s,
                    }
                )
                return done.shell_status
            if on_terminal():
                return run_on_terminal(lab, host, argv, os.getcwd()).shell_status
            streams = {"stdin": sys.stdin.fileno(), "stdout": sys.stdout.fileno(), "stderr": sys.stderr.fileno()}
            job = where.popen(argv, env=dict(os.environ), cwd=os.getcwd(), **streams)
        except LabError as error:
            if error.name in ("ProgramMissing", "ProgramNotFound", "UnknownProgram"):
                click.echo(f"twinnet: {error}", err=True)
                return _NOT_FOUND
            raise
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda got, _: job.signal(got))
        return job.wait().shell_status
