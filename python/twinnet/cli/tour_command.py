"""``twinnet tour``."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import click

from twinnet.cli.doctor_command import can_run_labs
from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import sentence_columns, wrapped

__all__ = ["STOPS", "Stop", "labs_run", "pasteable", "tour"]


@dataclass(frozen=True)
class Stop:
    """A stop of the tour.

    Parameters
    ----------
    says
        What is shown.
    command
        The arguments of ``twinnet`` that show it.
    needs_labs
        Whether it needs labs with real hosts, which some machines do not permit.
    """

    says: str
    command: str
    needs_labs: bool = True


STOPS = (
    Stop(
        "A network is a template, a file, or ten lines of Python. This is one of two switches.",
        "graph linear:2 --format mermaid",
        needs_labs=False,
    ),
    Stop(
        "It runs with real hosts, which run any program of this machine. Links are lines with a rate and a delay.",
        "lab linear:2 --rate '10 Mbit' --delay '5 ms' -c pingall -c 'h1 ping -c 2 -i 0.2 h2' -c 'iperf h1 h2 2s'",
    ),
    Stop(
        "Links and queues change while it runs: a long queue holds every ping up, and CoDel keeps it short.",
        "lab linear:2 --rate '10 Mbit' -c 'link s1 s2 rate 2Mbit queue fifo,limit_frames=100' "
        '-c \'py lab.start(tn.apps.tcp_bulk("h1", "h2", duration="8 s"))\' -c \'h1 ping -c 5 -i 0.5 h2\' '
        "-c 'link s1 s2 queue codel' -c 'h1 ping -c 5 -i 0.5 h2'",
    ),
    Stop(
        "Scripts of Mininet run as they are, and so do its command and its prompt.",
        "mn --topo tree,2 --link tc,bw=10,delay=2ms --test pingall",
    ),
    Stop(
        "A study is a question: its runs are made again and again, here in simulated time, and answered with the "
        "uncertainty.",
        "run mtu-sweep --preset tiny --no-report --out {folder}/results",
        needs_labs=False,
    ),
    Stop("These questions come with twinnet.", "studies", needs_labs=False),
)
"""The stops, in their order."""
_NEXT = (
    "Go on with: twinnet lab single:3 (its prompt; help lists what it knows), twinnet new (a study of your own), "
    "twinnet mininet SCRIPT, twinnet --help. Nothing of this tour is left on the machine."
)


def labs_run() -> bool:
    """Return whether this machine permits labs."""
    from twinnet import _core

    return can_run_labs({str(one["ability"]): bool(one["ok"]) for one in json.loads(_core.doctor())})


def pasteable(command: str, columns: int) -> str:
    """Return `command` in lines of `columns` that a shell joins, broken before options."""
    lines: list[str] = []
    for part in re.split(r" (?=--?\w)(?=(?:[^']*'[^']*')*[^']*$)", command):
        if lines and len(f"{lines[-1]} {part} \\") <= columns:
            lines[-1] += f" {part}"
        else:
            lines.append(part if not lines else f"    {part}")
    return " \\\n".join(lines)


@click.command(short_help="Show in three minutes what there is, on this machine.")
@click.option("--no-wait", is_flag=True, help="Go from stop to stop without asking.")
@json_option
def tour(no_wait: bool, as_json: bool) -> int:
    """Show in about three minutes what there is: networks, labs with real programs, links and queues that change,
    scripts of Mininet, studies.

    Every stop is a command that you can type yourself. On a terminal each waits for Enter; q ends the tour. Labs are
    left out where this machine does not permit them. Exit status 1 when a command failed.

    With --json, only the commands and their statuses are printed; the status of one that is left out is null.
    """
    waits = not (no_wait or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    possible = labs_run()
    statuses: list[int | None] = []
    with tempfile.TemporaryDirectory(prefix="twinnet-tour-") as folder:
        for number, stop in enumerate(STOPS, 1):
            if not as_json:
                break_before = "" if number == 1 else "\n"
                click.echo(break_before + wrapped(f"{number}/{len(STOPS)} {stop.says}", sentence_columns()))
                click.echo(pasteable(f"$ twinnet {stop.command.format(folder=folder)}", sentence_columns()))
            if stop.needs_labs and not possible:
                statuses.append(None)
                if not as_json:
                    click.echo("left out: this machine permits no labs (twinnet doctor says why)")
                continue
            if waits and click.prompt("Enter goes on, q ends", "", show_default=False).strip() == "q":
                return 0
            statuses.append(_status(shlex.split(stop.command.format(folder=folder)), folder, not as_json))
    if as_json:
        rows = [{"command": stop.command, "status": status} for stop, status in zip(STOPS, statuses, strict=True)]
        print_json({"stops": rows})
    else:
        click.echo("\n" + wrapped(_NEXT, sentence_columns()))
    return int(any(statuses))


def _status(arguments: Sequence[str], folder: str, shown: bool) -> int:
    """Run a command of ours in `folder`, and return its exit status; what it prints is `shown` or not."""
    from twinnet.interpreter import PYTHON

    command = [*PYTHON, "-c", "import sys; from twinnet.cli import main; sys.exit(main())", *arguments]
    sys.stdout.flush()
    output = None if shown else subprocess.DEVNULL
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, check=False)
    return done.returncode
