"""``twinnet live``."""

from __future__ import annotations

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.errors import BadValue

__all__ = ["live"]


@click.command(short_help="Show a running lab on a page in the browser.")
@click.argument("lab_name", metavar="[LAB]", required=False, shell_complete=completion.labs)
@click.option("--out", metavar="FILE.html", type=click.Path(dir_okay=False), help="Record it in this file as well.")
@json_option
def live(lab_name: str | None, out: str | None, as_json: bool) -> None:
    """Serve a page that shows LAB while it runs: the rate and load of each link, queues, drops, and the fidelity
    verdict. LAB may be left out when one lab runs. Ends with Ctrl-C and with the lab.

    With --out, all that it could show from now on is in one HTML file at the end, which opens without twinnet.

    Open the printed address in a browser on this machine. Needs: pip install 'twinnet[live]'.
    """
    from twinnet.lab import lab as lab_module
    from twinnet.live import PATIENCE_S, serve

    name = lab_name or _only_lab()

    def tell(address: str) -> None:
        if as_json:
            print_json({"lab": name, "address": address})
        else:
            click.echo(f"{name}: open {address}\nCtrl-C ends the page; the lab goes on.")

    with lab_module.attach(name, PATIENCE_S) as lab:
        serve(lab, tell, out)


def _only_lab() -> str:
    from twinnet.lab import lab as lab_module

    names = [info.name for info in lab_module.labs()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise BadValue("no lab is running", "start one with: twinnet lab tree:2")
    raise BadValue(f"{len(names)} labs are running: {', '.join(names)}", f"name one: twinnet live {names[0]}")
