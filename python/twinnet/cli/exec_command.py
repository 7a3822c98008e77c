"""``twinnet exec``."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.errors import TwinnetError

if TYPE_CHECKING:
    from twinnet.lab_process.job import Job

__all__ = ["exec_"]

_NOT_FOUND = 127
_INPUT_PATIENCE_S = 1.0
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@click.command(
    "exec",
    short_help="Run a program in a host of a running lab.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@json_option
@click.option("-t", "--terminal", is_flag=True, help="Give the program a terminal, on the virtual clock too.")
@click.argument("lab_name", metavar="LAB", shell_complete=completion.labs)
@click.argument("host", shell_complete=completion.hosts)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(lab_name: str, host: str, command: tuple[str, ...], terminal: bool, as_json: bool) -> int:
    """Run COMMAND in HOST of LAB with its own exit status (128 + signal when a signal ended it).

    Standard input is passed on; from a terminal, the program has a terminal. In a lab on the virtual clock time goes on
    while COMMAND runs: it reads what standard input holds to its end, nothing from a terminal, and has the lab's
    environment. With --terminal, and for a shell without arguments, it has your terminal and environment there too, and
    time goes as fast as real time. Write -- before COMMAND.
    """
    from twinnet import lab as lab_module
    from twinnet.cli.terminal import on_terminal, run_on_terminal, wants_terminal
    from twinnet.errors import BadValue, LabError
    from twinnet.lab.terminal_job import of_caller

    argv = [*command[1:]] if command[0] == "--" else [*command]
    if not argv:
        raise click.UsageError("no command was given")
    if terminal and (as_json or not on_terminal()):
        raise BadValue(
            "--terminal needs a terminal, for input and output", "leave it out, or use no pipe and no --json"
        )
    with lab_module.attach(lab_name) as lab, lab.by_hand.through("twinnet exec", shlex.join([host, *argv])):
        where = lab[host]
        signals = _Signals()
        env, cwd = of_caller(lab, host)
        try:
            if as_json:
                done = where.run(argv, env=env, cwd=cwd)
                print_json(
                    {
                        "stdout": done.stdout,
                        "stderr": done.stderr,
                        "status": done.shell_status,
                        "elapsed_s": done.elapsed_s,
                    }
                )
                return done.shell_status
            if terminal or wants_terminal(lab, argv):
                return run_on_terminal(lab, host, argv).shell_status
            stdin = sys.stdin.fileno() if lab.clock == "wall" else _whole_input()
            stdout, stderr = sys.stdout.fileno(), sys.stderr.fileno()
            signals.catch()
            job = where.popen(argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
        except LabError as error:
            if error.name in ("ProgramMissing", "ProgramNotFound", "UnknownProgram"):
                click.echo(f"twinnet: {error}", err=True)
                return _NOT_FOUND
            raise
        signals.hand_on_to(job)
        return job.wait().shell_status


def _whole_input() -> int:
    """Return a descriptor that holds all of standard input: time is not to pass while it comes."""
    given = os.memfd_create("twinnet-input", os.MFD_CLOEXEC)
    if not sys.stdin.isatty():
        hinted = False
        while True:
            if not select.select([sys.stdin], [], [], _INPUT_PATIENCE_S)[0] and not hinted:
                hinted = True
                click.echo("twinnet: reading standard input to its end first; < /dev/null gives none", err=True)
                continue
            if not (piece := os.read(sys.stdin.fileno(), 1 << 16)):
                break
            os.write(given, piece)
        os.lseek(given, 0, os.SEEK_SET)
    return given


class _Signals:
    """Signals to this client, which are meant for its program: also those that come before the program is known,
    since it would otherwise go on without its client.

    A handler runs in the midst of whatever this process does, a request that holds its connection's lock among it: so
    it makes no request, and a thread hands on what it took.
    """

    def __init__(self) -> None:
        self._job: Job | None = None
        self._early: set[int] = set()
        # Its `put` may interrupt another of the same thread.
        self._taken: SimpleQueue[int] = SimpleQueue()

    def catch(self) -> None:
        for number in _HANDED_ON:
            signal.signal(number, self._take)

    def hand_on_to(self, job: Job) -> None:
        self._job = job
        threading.Thread(target=self._hand_on, args=(job,), name="twinnet-signals", daemon=True).start()

    def _hand_on(self, job: Job) -> None:
        # The lab may end first, and the client with it.
        with contextlib.suppress(TwinnetError, TimeoutError):
            while True:
                job.signal(self._taken.get())

    def _take(self, number: int, _: object) -> None:
        if self._job is None and number in self._early:
            # Who insists does not want to wait for a lab that does not answer.
            raise KeyboardInterrupt
        self._early.add(number)
        self._taken.put(number)
