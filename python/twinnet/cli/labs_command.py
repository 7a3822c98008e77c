"""``twinnet labs``."""

from __future__ import annotations

import click

from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import table, terminal_columns

__all__ = ["labs"]

_PATIENCE_S = 2.0
_MOST_STRANGERS = 8


@click.command(short_help="List your running labs.")
@json_option
def labs(as_json: bool) -> None:
    """List your running labs: name, hosts, switches, and how long each has been running."""
    from twinnet import lab as lab_module
    from twinnet.errors import LabError, NotAvailable

    _tell_of_strangers()
    found: list[dict[str, object]] = []
    for info in lab_module.labs():
        try:
            with lab_module.attach(info.name, _PATIENCE_S) as lab:
                hosts, switches = len(lab.layout.names("host")), len(lab.layout.names("switch"))
                found.append({"name": info.name, "hosts": hosts, "switches": switches, "age_s": round(lab.now(), 1)})
        except (LabError, NotAvailable, TimeoutError):
            # It ended between the listing and the question, is not built yet, or does not answer; its name is all that
            # can be said.
            found.append({"name": info.name, "hosts": None, "switches": None, "age_s": None})
    if as_json:
        print_json(found)
    elif found:
        rows = [["-" if value is None else value for value in one.values()] for one in found]
        click.echo(table(["name", "hosts", "switches", "age (s)"], rows, terminal_columns()))
    else:
        click.echo("no lab is running")


def _tell_of_strangers() -> None:
    from twinnet._core import strangers_at_labs

    strangers = strangers_at_labs()
    for name, user in strangers[:_MOST_STRANGERS]:
        who = "somebody who lets nobody in" if user is None else f"user {user}"
        click.echo(f"twinnet: {who} listens at the address of a lab {name!r} of yours; ignored", err=True)
    if len(strangers) > _MOST_STRANGERS:
        click.echo(f"twinnet: {len(strangers) - _MOST_STRANGERS} more such listeners; ignored", err=True)
