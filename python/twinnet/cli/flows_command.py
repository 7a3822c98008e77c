"""``twinnet flows``."""

from __future__ import annotations

import sys

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json

__all__ = ["flows"]


@click.command(short_help="Show, add or delete a switch's flows in a running lab.")
@click.argument("lab_name", metavar="LAB", shell_complete=completion.labs)
@click.argument("switch", shell_complete=completion.switches)
@click.argument("action", type=click.Choice(["dump", "add", "del"]), default="dump")
@click.argument("lines", metavar="[FLOW]...", nargs=-1)
@json_option
def flows(lab_name: str, switch: str, action: str, lines: tuple[str, ...], as_json: bool) -> None:
    """Show (dump), add or delete (del) flows of SWITCH in LAB, in ovs-ofctl syntax.

    `add -` reads flows from standard input, one in each line; `del` without a match deletes all.
    """
    from twinnet import lab as lab_module
    from twinnet.lab.flow_ports import missing_parts

    if action == "add" and not lines:
        raise click.UsageError("no flow to add was given; write for example priority=1,actions=flood")
    if action == "del" and len(lines) > 1:
        raise click.UsageError("del takes one match")
    with lab_module.attach(lab_name) as lab:
        on = lab.switch(switch)
        if action == "add":
            given = [line.rstrip("\n") for line in sys.stdin] if lines == ("-",) else list(lines)
            wanted = [line for line in given if line.strip() and not line.lstrip().startswith("#")]
            on.add_flows(wanted)
            for missing in dict.fromkeys(filter(None, (missing_parts(lab, switch, line) for line in wanted))):
                click.echo(f"*** {missing}", err=True)
            _print(as_json, {"added": len(wanted)}, "")
        elif action == "del":
            deleted = on.delete_flows(lines[0] if lines else "")
            _print(as_json, {"deleted": deleted}, f"{deleted} deleted")
        else:
            dumped = on.dump_flows()
            _print(as_json, dumped, "\n".join(dumped))


def _print(as_json: bool, data: object, text: str) -> None:
    if as_json:
        print_json(data)
    elif text:
        click.echo(text)
