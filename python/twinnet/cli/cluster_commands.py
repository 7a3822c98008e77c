"""``twinnet cluster``, ``scheduler`` and ``worker``, and what ``twinnet run --on`` does: runs on several machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FOLDER

__all__ = ["check_cluster_options", "cluster", "cluster_options", "scheduler", "worker"]

_Command = Callable[..., Any]


def _door_options(command: _Command) -> _Command:
    keys = click.option(
        "--keys",
        type=FOLDER,
        metavar="FOLDER",
        help="The certificates that `twinnet cluster new` made; default: ~/.config/twinnet/cluster.",
    )
    without = click.option(
        "--without-tls", is_flag=True, help="Permit tcp://127.0.0.1:PORT: on this machine, open to all its users."
    )
    return keys(without(command))


def cluster_options(command: _Command) -> _Command:
    """Give `command` the options ``--on``, ``--keys`` and ``--without-tls``."""
    on = click.option(
        "--on", metavar="ADDRESS", help="Make the runs on the workers of the scheduler at tls://HOST:PORT."
    )
    return on(_door_options(command))


def check_cluster_options(on: str | None, keys: Path | None, without_tls: bool) -> None:
    """Raise `BadValue` where ``--keys`` or ``--without-tls`` is given without ``--on``."""
    from twinnet.errors import BadValue

    if on is None and (keys is not None or without_tls):
        raise BadValue("--keys and --without-tls are for --on, which is not given", "add --on tls://HOST:PORT")


@click.group(short_help="Make the certificates of a cluster.")
def cluster() -> None:
    """Certificates for `twinnet scheduler`, `twinnet worker` and `twinnet run --on`.

    Each of these commands takes --json.
    """


@cluster.command()
@click.argument("folder", type=FOLDER, required=False)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=365,
    show_default=True,
    metavar="N",
    help="How long they are valid.",
)
@json_option
def new(folder: Path | None, days: int, as_json: bool) -> None:
    """Make the certificates of a new cluster in FOLDER; default: ~/.config/twinnet/cluster.

    Anyone who has these files can run programs as you on each machine of the cluster. Only you can read them. Copy the
    folder to each machine of the cluster, for example with `scp -r`.
    """
    from twinnet.cluster.certificates import default_folder, new_certificates

    made = new_certificates(folder if folder is not None else default_folder(), days)
    if as_json:
        print_json({"folder": str(made.folder), "days": days})
        return
    click.echo(f"Certificates: {made.folder}, valid for {days} days")
    click.echo("copy this folder to each machine of the cluster; anyone who has it can run programs there as you")


@click.command(short_help="Connect the workers of a cluster with `twinnet run --on`.")
@click.option(
    "--at", required=True, metavar="ADDRESS", help="Where to listen: tls://HOST:PORT; port 0 takes any that is free."
)
@_door_options
@json_option
def scheduler(at: str, keys: Path | None, without_tls: bool, as_json: bool) -> None:
    """Listen for `twinnet worker` and `twinnet run --on`, until Ctrl-C.

    Both ends of each connection must have a certificate that `twinnet cluster new` made. The scheduler makes no runs
    and keeps no results.
    """
    from twinnet.cluster.client import door

    address, certificates = door(at, keys, without_tls, listening=True)
    from twinnet.cluster.scheduler import serve_scheduler

    def tell(at: str) -> None:
        if as_json:
            print_json({"scheduler": at})
        else:
            click.echo(f"Scheduler: {at}")

    serve_scheduler(address, certificates, tell)


def _slots(_: click.Context, __: click.Parameter, given: str) -> int | None:
    if given == "auto":
        return None
    if not given.isdecimal():
        raise click.BadParameter(f"{given!r} is neither auto nor a number; write for example --slots auto")
    return int(given[:6])


@click.command(short_help="Make runs for a scheduler, one in each slot of this machine.")
@click.option("--at", required=True, metavar="ADDRESS", help="The scheduler: tls://HOST:PORT.")
@click.option(
    "--slots",
    default="auto",
    show_default=True,
    callback=_slots,
    metavar="auto|N",
    help="How many runs side by side; auto: one for each pair of cores.",
)
@_door_options
@json_option
def worker(at: str, slots: int | None, keys: Path | None, without_tls: bool, as_json: bool) -> None:
    """Join the scheduler with the slots of this machine, and make runs until Ctrl-C.

    A slot is a pair of processors of one NUMA node, and its runs and their hosts use no others. Each slot first runs a
    lab of two seconds on the wall clock; where its verdict is not valid, and where slots share a core, the slot takes
    runs on the virtual clock only. The worker waits for a scheduler that is not there or has gone. With --json each
    line of output is a JSON object.
    """
    from twinnet.cluster.client import door

    address, certificates = door(at, keys, without_tls)
    from twinnet.cluster.slots import claimed_cores, processors_here, slots_in_words, slots_on
    from twinnet.cluster.worker import serve_slots

    here = processors_here()
    held, taken = claimed_cores(here)
    made = slots_on(here, slots, taken)

    def tell(said: str) -> None:
        if as_json:
            print_json({"told": said})
        else:
            click.echo(said)

    if as_json:
        print_json({"slots": [asdict(slot) for slot in made]})
    else:
        for line in slots_in_words(here, made):
            click.echo(line)
    serve_slots(address, certificates, made, tell)
    for claim in held:
        claim.close()
