"""``twinnet lab``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from twinnet.cli import completion
from twinnet.cli.fabric_threads import fabric_threads_option
from twinnet.cli.output import json_option
from twinnet.cli.shared_options import PATH, parallel_edges_option
from twinnet.errors import BadValue, TimeLimit, TwinnetError
from twinnet.units import duration_ps

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.network.graphs import ParallelEdges
    from twinnet.network.network import Network

__all__ = ["lab"]


@click.command(short_help="Start a network and open its prompt.")
@click.argument("network", shell_complete=completion.networks)
@click.option("--rate", help='Line rate of every link, such as "1 Gbit".')
@click.option("--delay", help='Delay of every link, such as "50 us".')
@click.option("--jitter", help='Jitter of every link, such as "1 ms" or "1 ms normal".')
@click.option("--loss", help='Loss of every link, such as "1 %".')
@parallel_edges_option
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
@click.option("--arp", is_flag=True, help="Hosts know each other's hardware addresses and need not ask.")
@click.option("--nat", is_flag=True, help="Hosts reach the network outside, by a gateway nat0 at the first switch.")
@click.option("--model", is_flag=True, help="Hosts are models: they run the built-in apps, and no programs.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "virtual"]),
    default="wall",
    show_default=True,
    help="On the virtual clock time passes while a line is done, and stands while you type.",
)
@click.option("--programs", is_flag=True, help="With --clock virtual: hosts are real and run programs.")
@click.option(
    "--trace",
    type=PATH,
    metavar="FILE",
    help="With --clock virtual: write the trace to this file; see `twinnet traces`.",
)
@click.option("--memory", metavar="SIZE", help="With --programs: the memory of all programs; default: 512 MiB.")
@click.option("--date", metavar="DATE", help="With --programs: the date at which it begins; default: 2026-01-01.")
@click.option(
    "--patience",
    metavar="TIME",
    help="With --programs: the processor time that programs may take at one moment; default: 4.5 s.",
)
@click.option(
    "--ovsdb",
    metavar="PLACE",
    help="Serve the switches to ovs-vsctl and other clients of OVSDB: ptcp:[PORT][:ADDRESS] or punix:PATH.",
)
@click.option("--live", is_flag=True, help="Show the lab on a page in the browser, as `live` at the prompt does.")
@click.option("-c", "--command", "commands", multiple=True, help="Do this line, then end; may be repeated.")
@json_option
def lab(
    network: str,
    parallel_edges: ParallelEdges | None,
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
    arp: bool,
    nat: bool,
    model: bool,
    clock: Literal["wall", "virtual"],
    programs: bool,
    trace: Path | None,
    memory: str | None,
    date: str | None,
    patience: str | None,
    ovsdb: str | None,
    live: bool,
    commands: tuple[str, ...],
    as_json: bool,
    **link: str | None,
) -> int:
    """Start NETWORK - a template such as single:4, linear:3, tree:2,3, dumbbell:2, fat-tree:4, mesh:4, or a YAML file.

    Without -c, lines are read from the keyboard, or from standard input when that is a file or pipe. Exit status 1
    when a line failed, or when a controller did not join in time.
    """
    from twinnet.cli import lab_options, way_out
    from twinnet.lab.known_neighbours import introduce

    described = _described(network, seed, link, parallel_edges)
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
    if nat:
        way_out.give_gateway(described)
    duration_ps(wait, "wait")
    if ovsdb is not None:
        from twinnet.lab.database import check_place

        check_place(ovsdb)
    if clock == "wall":
        if programs:
            raise BadValue("--programs is for --clock virtual: on the wall clock hosts run programs", "leave it away")
        if trace is not None:
            raise BadValue("--trace is for --clock virtual: no two runs on the wall clock are equal", "leave it away")
        for option, value in {"--memory": memory, "--date": date, "--patience": patience}.items():
            if value is not None:
                raise BadValue(f"{option} is for --clock virtual --programs", "leave it away")
        chosen = described.emulate(name=name, interface=interface, fabric_threads=fabric_threads)
    else:
        _refuse_of_wall(interface, fabric_threads, nat, ovsdb)
        hosts = "programs" if programs else "models"
        chosen = described.simulate(
            static_neighbours=arp,
            hosts=hosts,
            name=name or "",
            trace=trace,
            memory=memory,
            date=date,
            patience=patience,
        )
    with chosen as running, way_out.open_way(running, nat):
        if ovsdb is not None:
            running.serve_ovsdb(ovsdb, tell=lambda note: click.echo(f"*** OVSDB: {note}", err=True))
        if arp and clock == "wall":
            introduce(running)
        if not no_wait:
            _wait_for_controllers(running, wait)
        if unused := lab_options.tell_unused_links(described):
            click.echo(f"*** {unused}", err=True)
        return _do_lines(running, network, commands, as_json, live=live)


def _described(network: str, seed: int, link: dict[str, str | None], parallel: ParallelEdges | None) -> Network:
    from twinnet.cli.network_argument import described_network, network_of_file
    from twinnet.network import templates

    if templates.is_template(network) or any(link.values()) or parallel is not None:
        return described_network(network, seed, link, parallel)
    return network_of_file(network, seed)


def _do_lines(running: Lab, network: str, commands: tuple[str, ...], as_json: bool, *, live: bool) -> int:
    """Do `commands`, or without any what standard input says, and return the exit status. `live` opens the live page
    first."""
    from twinnet.cli.prompt.loop import interact, lines_of_stdin, run_lines
    from twinnet.cli.prompt.session import Session
    from twinnet.drawing.positions import positions_beside

    paged = not commands and sys.stdin.isatty() and sys.stdout.isatty()
    positions = positions_beside(network) if Path(network).is_file() else None
    session = Session(running, as_json, paged=paged, positions=positions)
    try:
        if live and not session.execute("live"):
            return 1
        if commands:
            return 0 if run_lines(session, commands) else 1
        if not sys.stdin.isatty():
            return 0 if run_lines(session, lines_of_stdin(running)) else 1
        interact(session)
        return 0
    finally:
        _tell_circles(running)
        session.end()


def _tell_circles(running: Lab) -> None:
    """Say how many frames went round in a loop until the hop limit, if any did and the lab still answers."""
    from twinnet.lab.circling import circled_frames, told_of_circles

    with contextlib.suppress(TwinnetError, OSError):
        if circled := circled_frames(running.ports()):
            click.echo(f"*** {told_of_circles(circled)}", err=True)


def _refuse_of_wall(interface: str, fabric_threads: int | Literal["auto"] | None, nat: bool, ovsdb: str | None) -> None:
    """Refuse options that only a lab on the wall clock has."""
    given = {"--interface": interface if interface != "auto" else None, "--nat": "" if nat else None, "--ovsdb": ovsdb}
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
