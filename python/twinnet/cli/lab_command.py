"""``twinnet lab``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from twinnet.cli import completion
from twinnet.cli.fabric_threads import fabric_threads_option
from twinnet.cli.output import json_option
from twinnet.errors import BadValue, TimeLimit
from twinnet.units import duration_ps

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["lab"]


@click.command(short_help="Start a network and open its prompt.")
@click.argument("network", shell_complete=completion.networks)
@click.option("--rate", help='Line rate of every link, such as "1 Gbit".')
@click.option("--delay", help='Delay of every link, such as "50 us".')
@click.option("--jitter", help='Jitter of every link, such as "1 ms" or "1 ms normal".')
@click.option("--loss", help='Loss of every link, such as "1 %".')
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all randomness.")
@click.option("--name", help="Name of the lab, for other terminals; chosen when not given.")
@click.option(
    "--interface", type=click.Choice(["auto", "tap", "veth"]), default="auto", help="Kind of host interfaces."
)
@fabric_threads_option
@click.option(
    "--controller",
    shell_complete=completion.controllers,
    metavar="ADDRESS|APP",
    help="Controller of the switches: tcp:127.0.0.1:6653, or learning, shortest-path, tree-flooding, module:Class.",
)
@click.option(
    "--controller-run",
    metavar="COMMAND",
    help='Start this controller with the lab, such as "python controller.py {port}".',
)
@click.option("--wait", default="10 s", show_default=True, help="How long to wait until controllers have joined.")
@click.option("--no-wait", is_flag=True, help="Do not wait for controllers.")
@click.option(
    "--queue",
    shell_complete=completion.queues,
    metavar="KIND[,NAME=VALUE]...",
    help="Queue of every port, such as fifo,limit_frames=100.",
)
@click.option("--switch", type=click.Choice(["own", "ovs", "ovs:system"]), help="Kind of every switch.")
@click.option("--no-ip6", is_flag=True, help="Hosts speak IPv4 alone: no IPv6 addresses, no neighbour discovery.")
@click.option("--model", is_flag=True, help="Hosts are models: they run the built-in apps, and no programs.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "virtual"]),
    default="wall",
    show_default=True,
    help="On the virtual clock time passes while a line is done, and stands while you type.",
)
@click.option("--programs", is_flag=True, help="With --clock virtual: hosts are real and run programs.")
@click.option("-c", "--command", "commands", multiple=True, help="Do this line, then end; may be repeated.")
@json_option
def lab(
    network: str,
    seed: int,
    name: str | None,
    interface: str,
    fabric_threads: int | Literal["auto"] | None,
    controller: str | None,
    controller_run: str | None,
    wait: str,
    no_wait: bool,
    queue: str | None,
    switch: str | None,
    no_ip6: bool,
    model: bool,
    clock: Literal["wall", "virtual"],
    programs: bool,
    commands: tuple[str, ...],
    as_json: bool,
    **link: str | None,
) -> int:
    """Start NETWORK - a template such as single:4, linear:3, tree:2,3, dumbbell:2, fat-tree:4, mesh:4, or a YAML file.

    Without -c, lines are read from the keyboard, or from standard input when that is a file or pipe. Exit status 1
    when a line failed, or when a controller did not join in time.
    """
    from twinnet.cli import lab_options
    from twinnet.cli.network_argument import described_network, network_of_file
    from twinnet.network import templates

    described = (
        described_network(network, seed, link)
        if templates.is_template(network) or any(link.values())
        else network_of_file(network, seed)
    )
    if controller is not None or controller_run is not None:
        lab_options.give_controller(described, controller, controller_run)
    if queue is not None:
        lab_options.give_queues(described, queue)
    if switch is not None:
        lab_options.give_switches(described, switch)
    if no_ip6:
        described.without_ip6()
    if model:
        lab_options.give_models(described)
    duration_ps(wait, "wait")
    if clock == "wall":
        if programs:
            raise BadValue("--programs is for --clock virtual: on the wall clock hosts run programs", "leave it away")
        chosen = described.emulate(name=name, interface=interface, fabric_threads=fabric_threads)
    else:
        _refuse_of_wall(name, interface, fabric_threads)
        chosen = described.simulate(hosts="programs" if programs else "models")
    with chosen as running:
        from twinnet.cli.prompt.loop import interact, lines_of_stdin, run_lines
        from twinnet.cli.prompt.session import Session

        if not no_wait:
            _wait_for_controllers(running, wait)
        if unused := lab_options.tell_unused_links(described):
            click.echo(f"*** {unused}", err=True)
        session = Session(running, as_json)
        try:
            if commands:
                return 0 if run_lines(session, commands) else 1
            if not sys.stdin.isatty():
                return 0 if run_lines(session, lines_of_stdin(running)) else 1
            interact(session)
            return 0
        finally:
            session.end()


def _refuse_of_wall(name: str | None, interface: str, fabric_threads: int | Literal["auto"] | None) -> None:
    """Refuse options that only a lab on the wall clock has."""
    given = {"--name": name, "--interface": interface if interface != "auto" else None}
    given["--fabric-threads"] = None if fabric_threads is None else str(fabric_threads)
    for option, value in given.items():
        if value is not None:
            raise BadValue(f"a lab on the virtual clock has no {option}", "leave it away, or use --clock wall")


def _wait_for_controllers(running: Lab, wait: str) -> None:
    """Wait until every switch has its controller: before that, a switch that stands alone would answer for it."""
    try:
        running.wait_for_controllers(wait)
    except TimeLimit as error:
        raise TimeLimit(error.message, f"{error.remedy}; or start the lab with --no-wait") from None
