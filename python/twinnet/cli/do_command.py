"""``twinnet do``."""

from __future__ import annotations

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option

__all__ = ["do"]

_LOOK_S = 0.2


@click.command(short_help="Do lines of the prompt in a running lab.")
@click.argument("lab_name", metavar="LAB", shell_complete=completion.labs)
@click.argument("lines", nargs=-1, required=True, metavar="LINE...", shell_complete=completion.lines)
@json_option
def do(lab_name: str, lines: tuple[str, ...], as_json: bool) -> int:
    """Do each LINE in LAB as its prompt does: twinnet do LAB 'link s1 h1 down' 'pingall'.

    A capture or a watch that a line has begun goes on until Ctrl-C, or until the lab ends. Exit status 1 when a line
    failed.
    """
    from twinnet import lab as lab_module
    from twinnet.cli.prompt.loop import run_lines
    from twinnet.cli.prompt.session import Session

    with lab_module.attach(lab_name) as lab:
        session = Session(lab, as_json, lasts=False)
        try:
            done = run_lines(session, lines)
            while not session.over and (session.captures.running or session.watches.running):
                if lab.connection.wait_closed(_LOOK_S):
                    break
            return 0 if done else 1
        except KeyboardInterrupt:
            # Ctrl-C is how a capture that goes on is ended; what it holds is shown below.
            if not (session.captures.running or session.watches.running):
                raise
            return 0
        finally:
            session.end()
