"""``twinnet traces``."""

from __future__ import annotations

from pathlib import Path

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import PATH

__all__ = ["traces"]


@click.command(short_help="Tell where the traces of two runs part.")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@json_option
def traces(first: Path, second: Path, as_json: bool) -> int:
    """Compare two traces of one lab on the virtual clock, made on two machines or in two ways, and tell the first event
    that differs: when, where, and in which fields of the frame.

    Traces are written by net.simulate(trace=FILE) and by twinnet lab --clock virtual --trace FILE. Exit status 1 when
    they differ.
    """
    from twinnet.results.traces import part

    equal, parting = part(first, second)
    if as_json:
        print_json(
            {"equal_events": equal, "equal": True} if parting is None else {"equal": False, **parting.to_record()}
        )
    elif parting is None:
        click.echo(f"The traces are equal: {equal:,} events.")
    else:
        click.echo(f"The traces part after {equal:,} equal events, in: {parting.difference}.")
        rows = (("both", parting.before), (str(first), parting.first), (str(second), parting.second))
        for name, event in rows:
            if event is not None or name != "both":
                click.echo(f"{name}: " + (f"at {event.time} {event}" if event is not None else "ends before"))
    return 0 if parting is None else 1
