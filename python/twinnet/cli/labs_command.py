"""``twinnet labs``."""

from __future__ import annotations

import click

from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import table, terminal_columns

__all__ = ["labs"]


@click.command(short_help="List your running labs.")
@json_option
def labs(as_json: bool) -> None:
    """List your running labs: name, hosts, switches, and how long each has been running."""
    from twinnet.errors import LabError, NotAvailable
    from twinnet.lab import lab as lab_module

    found: list[dict[str, object]] = []
    for info in lab_module.labs():
        try:
            with lab_module.attach(info.name) as lab:
                hosts, switches = len(lab.layout.names("host")), len(lab.layout.names("switch"))
                found.append({"name": info.name, "hosts": hosts, "switches": switches, "age_s": round(lab.now(), 1)})
        except (LabError, NotAvailable):
            # It ended, or is not built yet, between the listing and the question; its name is all that can be said.
            found.append({"name": info.name, "hosts": None, "switches": None, "age_s": None})
    if as_json:
        print_json(found)
    elif found:
        rows = [["-" if value is None else value for value in one.values()] for one in found]
        click.echo(table(["name", "hosts", "switches", "age (s)"], rows, terminal_columns()))
    else:
        click.echo("no lab is running")
