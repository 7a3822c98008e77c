"""``twinnet switch``."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli.output import json_option, print_json

if TYPE_CHECKING:
    from twinnet.control.tls import Tls

__all__ = ["switch"]

_NAME = "s"
_LOOK_S = 0.2


def _one_place(_: click.Context, __: click.Parameter, places: tuple[str, ...]) -> str | None:
    if len(places) > 1:
        raise click.BadParameter(f"a switch listens in one place, and {' and '.join(places)} were given")
    return places[0] if places else None


@click.command(short_help="Run one switch alone, on existing interfaces of this machine.")
@click.option("--dpid", default="1", show_default=True, help="Datapath number; hexadecimal with 0x or 16 digits.")
@click.option(
    "--port",
    "ports",
    multiple=True,
    required=True,
    metavar="INTERFACE",
    help="Interface that becomes a port; once for each port, port 1 first.",
)
@click.option("--controller", "controllers", multiple=True, metavar="TARGET", help="tcp:HOST:PORT or ssl:HOST:PORT.")
@click.option("--control-delay", metavar="TIME", help="One-way delay to controllers and tools.")
@click.option(
    "--listen",
    metavar="PLACE",
    multiple=True,
    callback=_one_place,
    help="Listen for tools, in one place: ptcp:PORT[:ADDRESS], pssl:PORT[:ADDRESS] or punix:PATH.",
)
@click.option(
    "--ovsdb",
    metavar="PLACE",
    help="Serve it to ovs-vsctl and other clients of OVSDB: ptcp:[PORT][:ADDRESS] or punix:PATH.",
)
@click.option("--private-key", metavar="FILE", help="For ssl: and pssl:, the switch's private key (PEM).")
@click.option("--certificate", metavar="FILE", help="The certificate of that key (PEM).")
@click.option(
    "--ca-cert",
    metavar="FILE",
    help="CA certificate that verifies controllers and tools (PEM); without it, none is verified.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=click.Choice(["OpenFlow10", "OpenFlow13"]),
    help="Version to speak; both when not given.",
)
@click.option(
    "--fail-mode",
    type=click.Choice(["standalone", "secure"]),
    default="standalone",
    show_default=True,
    help="Without a controller: standalone learns and forwards, secure keeps to its flows.",
)
@click.option("--flow", "flows", multiple=True, metavar="FLOW", help="A flow to start with, as for ovs-ofctl add-flow.")
@json_option
def switch(
    dpid: str,
    ports: tuple[str, ...],
    controllers: tuple[str, ...],
    control_delay: str | None,
    listen: str | None,
    ovsdb: str | None,
    private_key: str | None,
    certificate: str | None,
    ca_cert: str | None,
    protocols: tuple[str, ...],
    fail_mode: str,
    flows: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run one switch alone on interfaces of this machine, until it is interrupted (Ctrl-C, SIGTERM).

    It prints one line when it is ready. It needs CAP_NET_RAW where the interfaces are. They receive every frame
    meanwhile, and at the end they are as they were before.
    """
    from twinnet.network.network import Network

    if ovsdb is not None:
        from twinnet.lab.database import check_place

        check_place(ovsdb)
    net = Network()
    # Click has checked the words.
    settings: dict[str, Any] = {"fail_mode": fail_mode} | ({"protocols": protocols} if protocols else {})
    one = net.switch(
        _NAME,
        dpid=_datapath_number(dpid),
        flows=flows,
        controllers=controllers,
        control_delay=control_delay,
        listen=listen,
        tls=_tls((private_key, certificate, ca_cert), (*controllers, listen or "")),
        **settings,
    )
    lowest = min(_mtu(interface) for interface in ports)
    for number, interface in enumerate(ports, 1):
        one.attach(interface, name=f"p{number}", port_b=number, mtu=lowest)
    with _signals() as came, net.emulate() as lab:
        if ovsdb is not None:
            lab.serve_ovsdb(ovsdb, tell=lambda note: click.echo(f"twinnet: OVSDB: {note}", err=True))
        record: dict[str, Any] = {"dpid": f"{one.dpid:016x}", "ports": list(ports), "controllers": list(controllers)}
        if as_json:
            print_json(record | {"listen": listen, "ovsdb": ovsdb, "lab": lab.name})
        else:
            to = f", connects to {' and '.join(controllers)}" if controllers else ""
            heard = f", listens on {listen}" if listen else ""
            served = f", serves OVSDB on {ovsdb}" if ovsdb else ""
            click.echo(f"switch {record['dpid']} is ready on {', '.join(ports)}{to}{heard}{served}")
        told_of: dict[str, str | None] = {}
        while not came and not lab.connection.wait_closed(_LOOK_S):
            # Clients of OVSDB change them.
            for target in lab.layout.node(_NAME).get("controllers") or ():
                trouble = lab.controller_trouble(_NAME, target)
                if trouble is not None and trouble != told_of.get(target):
                    click.echo(f"twinnet: {target}: {trouble}", err=True)
                told_of[target] = trouble
        return 0 if lab.running else 1


@contextlib.contextmanager
def _signals() -> Generator[list[int]]:
    """Within, SIGINT and SIGTERM are put into the list that this gives."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tls(files: tuple[str | None, str | None, str | None], places: tuple[str, ...]) -> Tls | None:
    from twinnet.control.tls import Tls

    private_key, certificate, ca_cert = files
    if not any(place.startswith(("ssl:", "pssl:")) for place in places):
        if files != (None, None, None):
            raise click.UsageError("a key or certificate is given, and no --controller ssl:... or --listen pssl:...")
        return None
    if private_key is None or certificate is None:
        raise click.UsageError("ssl: and pssl: need --private-key and --certificate")
    return Tls(private_key, certificate, ca_cert)


def _datapath_number(text: str) -> int | str:
    if text.lower().startswith("0x"):
        return text[2:]
    return int(text) if text.isdecimal() and len(text) < 16 else text


def _mtu(interface: str) -> int:
    """Return the MTU of `interface`; 1500 of one that is not there, which shows when it is opened."""
    from twinnet._core import CoreError, open_interface

    try:
        packet, watch, _, mtu = open_interface(interface)
    except CoreError:
        return 1500
    os.close(packet)
    os.close(watch)
    return min(max(mtu, 68), 65_521)
