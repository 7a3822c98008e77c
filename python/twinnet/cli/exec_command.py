"""``twinnet exec``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json

if TYPE_CHECKING:
    from twinnet.lab_process.job import Job

__all__ = ["exec_"]

_NOT_FOUND = 127
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@click.command(
    "exec",
    short_help="Run a program in a host of a running lab.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@json_option
@click.argument("lab_name", metavar="LAB", shell_complete=completion.labs)
@click.argument("host", shell_complete=completion.hosts)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(lab_name: str, host: str, command: tuple[str, ...], as_json: bool) -> int:
    """Run COMMAND in HOST of LAB with its own exit status (128 + signal when a signal ended it).

    Standard input is passed on; from a terminal, the program has a terminal. Write -- before COMMAND.
    """
    from twinnet.cli.terminal import on_terminal, run_on_terminal
    from twinnet.errors import LabError
    from twinnet.lab import lab as lab_module

    argv = [*command[1:]] if command[0] == "--" else [*command]
    if not argv:
        raise click.UsageError("no command was given")
    with lab_module.attach(lab_name) as lab:
        where = lab[host]
        signals = _Signals()
        try:
            if as_json:
                done = where.run(argv, env=dict(os.environ), cwd=str(Path.cwd()))
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
                return run_on_terminal(lab, host, argv, str(Path.cwd())).shell_status
            stdin, stdout, stderr = sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno()
            signals.catch()
            job = where.popen(
                argv, env=dict(os.environ), cwd=str(Path.cwd()), stdin=stdin, stdout=stdout, stderr=stderr
            )
        except LabError as error:
            if error.name in ("ProgramMissing", "ProgramNotFound", "UnknownProgram"):
                click.echo(f"twinnet: {error}", err=True)
                return _NOT_FOUND
            raise
        signals.hand_on_to(job)
        return job.wait().shell_status


class _Signals:
    """Signals to this client, which are meant for its program: also those that come before the program is known,
    since it would otherwise go on without its client."""

    def __init__(self) -> None:
        self._job: Job | None = None
        self._early: list[int] = []

    def catch(self) -> None:
        for number in _HANDED_ON:
            signal.signal(number, self._take)

    def hand_on_to(self, job: Job) -> None:
        self._job = job
        for number in self._early:
            job.signal(number)

    def _take(self, number: int, _: object) -> None:
        if self._job is not None:
            self._job.signal(number)
        elif number in self._early:
            # Who insists does not want to wait for a lab that does not answer.
            raise KeyboardInterrupt
        else:
            self._early.append(number)
