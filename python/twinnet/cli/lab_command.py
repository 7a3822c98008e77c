"""``twinnet lab``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = ["lab"]


@click.command(short_help="Start a network and open its prompt.")
@click.argument("network")
@click.option("--rate", help='Line rate of every link, such as "1 Gbit".')
@click.option("--delay", help='Delay of every link, such as "50 us".')
@click.option("--jitter", help='Jitter of every link, such as "1 ms" or "1 ms normal".')
@click.option("--loss", help='Loss of every link, such as "1 %".')
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all randomness.")
@click.option("--name", help="Name of the lab, for other terminals; chosen when not given.")
@click.option(
    "--interface", type=click.Choice(["auto", "tap", "veth"]), default="auto", help="Kind of host interfaces."
)
@click.option("-c", "--command", "commands", multiple=True, help="Do this line and leave; may be given several times.")
@json_option
def lab(
    network: str,
    seed: int,
    name: str | None,
    interface: str,
    commands: tuple[str, ...],
    as_json: bool,
    **link: str | None,
) -> int:
    """Start NETWORK - a template such as single:4, linear:3, tree:2,3, dumbbell:2, fat-tree:4, mesh:4, or a YAML file.

    Without -c, lines are read from the keyboard, or from standard input when that is a file or pipe. Exit status 1
    when a line
    failed.
    """
    described = _network(network, seed, {key: value for key, value in link.items() if value is not None})
    with described.emulate(name=name, interface=interface) as running:
        from twinnet.cli.prompt.loop import interact, lines_of_stdin, run_lines
        from twinnet.cli.prompt.session import Session

        session = Session(running, as_json)
        try:
            if commands:
                return 0 if run_lines(session, commands) else 1
            if not sys.stdin.isatty():
                return 0 if run_lines(session, lines_of_stdin()) else 1
            interact(session)
            return 0
        finally:
            session.end()


def _network(text: str, seed: int, link: dict[str, Any]) -> Network:
    from twinnet.network import templates

    if templates.is_template(text):
        return templates.from_text(text, seed, **link)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        from twinnet.network.topology_file import load_network

        if link:
            options = " ".join(f"--{key}" for key in link)
            raise click.UsageError(f"{options} is for templates; a file says it under link_defaults")
        return load_network(text)
    return templates.from_text(text, seed, **link)
