"""``twinnet agent``: what a lab starts on a physical machine."""

from __future__ import annotations

import os
import sys

import click

from twinnet.cli.output import json_option

__all__ = ["agent"]


@click.command(short_help="Be a host of a study: started over SSH by the machine that runs it.")
@json_option
def agent(as_json: bool) -> int:
    """Run the apps of a study on this machine, as a host of the study.

    You do not start it: `twinnet run STUDY --clock real` starts it over SSH on every machine of the study. It reads
    requests from standard input, answers on standard output, always in JSON, and ends when the connection ends.
    """
    del as_json
    if sys.stdin.isatty():
        raise click.UsageError(
            "twinnet run STUDY --clock real starts the agent over SSH; it has nothing to say to a terminal"
        )
    from twinnet.code_version import code_version
    from twinnet.machines.agent import MachineTeller, serve
    from twinnet.study.machine import describe_machine, describe_versions

    # Whatever a library prints must not come between the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    serve(0, answers, MachineTeller(code_version(), describe_machine, describe_versions))
    return 0
