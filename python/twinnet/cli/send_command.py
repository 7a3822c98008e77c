"""``twinnet send``: generated traffic from this machine."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE

if TYPE_CHECKING:
    from twinnet.sockets.flow_plan import PlannedFlow

__all__ = ["send"]

INTERRUPTED = 130
_EXAMPLES = """\b
Examples:
  twinnet send 10.0.0.2 --rate "10 Mbit" --duration "10 s"
  twinnet send h2 --gap "exponential(10 ms)" --size "normal(500 B, 100 B)" --duration "1 min" --seed 7
  twinnet send 10.0.0.2 --voice G.711 --silence-suppression --duration "2 min" --parallel 30
  twinnet send 10.0.0.2 --protocol tcp --bytes "1 GB"
  twinnet send 10.0.0.2 --protocol tcp --gap "exponential(10 ms)" --size "gamma(2, 800 B)" --duration "1 min"
  twinnet send 10.0.0.2 --protocol icmp --gap "exponential(100 ms)" --size "uniform(0 B, 1000 B)" --packets 100
  twinnet send --flows flows.yaml --json

Receive with `twinnet recv`. Exit status 1 when a flow sent nothing, did not keep its rate, or nobody
listened: then the receiver's host sends the datagrams back. A firewall or a host that is off says nothing; where no
`twinnet recv` answers either, the output says so."""


@click.command(short_help="Send generated traffic from this machine, and report how exactly.", epilog=_EXAMPLES)
@click.argument("to", required=False)
@click.option("--flows", type=FILE, metavar="FILE", help="Flows to send (YAML).")
@click.option("--protocol", type=click.Choice(["udp", "tcp", "rtp", "icmp"]), help="The protocol; default: udp.")
@click.option("--port", type=click.IntRange(1, 65535), help="The receiver's port: 5003 (UDP), 5002 (TCP), 5004 (RTP).")
@click.option("--rate", metavar="RATE", help="Rate of the payload, such as '10 Mbit'.")
@click.option("--pps", "packets_per_second", type=float, metavar="N", help="Datagrams a second, or writes with TCP.")
@click.option("--gap", metavar="DIST", help="Distribution of gaps, such as 'exponential(10 ms)'.")
@click.option("--unpaced", is_flag=True, default=None, help="Send as fast as the host accepts.")
@click.option("--preset", metavar="NAME", help="What a known application sends: dns, telnet, game-client, game-server.")
@click.option("--voice", metavar="CODEC", help="One direction of a call: G.711, G.723.1 or G.729.")
@click.option("--silence-suppression", is_flag=True, default=None, help="With --voice: talkspurts and pauses.")
@click.option("--trace", type=FILE, metavar="FILE", help="Lines 'GAP, PAYLOAD'.")
@click.option(
    "--frame-sizes",
    type=FILE,
    metavar="FILE",
    help="With RTP: the size of each frame, one on each line, repeated.",
)
@click.option("--fps", "frames_per_second", type=float, metavar="N", help="With RTP: frames a second; default: 60.")
@click.option("--shaping", metavar="TIME", help="With RTP: windows over which the stream is spread, such as '200 ms'.")
@click.option("--repeat", is_flag=True, default=None, help="Repeat the trace after its end.")
@click.option(
    "--payload", metavar="SIZE", help="Payload of a datagram, write or request; default: 1472 (IPv6: 1452), 1448, 56 B."
)
@click.option("--size", metavar="DIST", help="Distribution of payloads, such as 'uniform(64 B, 1472 B)'.")
@click.option("--on", "on", metavar="DIST", help="How long periods of talk are; with --off.")
@click.option("--off", "off", metavar="DIST", help="How long periods of silence are.")
@click.option("--duration", metavar="TIME", help="How long; default: 10 s, unless another option ends the flow.")
@click.option(
    "--packets", type=click.IntRange(1), metavar="N", help="How many datagrams, echo requests or, with TCP, writes."
)
@click.option("--bytes", "size_bytes", metavar="SIZE", help="With TCP: how much.")
@click.option("--interval", metavar="TIME", help="With ICMP: from one request to the next.")
@click.option("--dscp", type=click.IntRange(0, 63), metavar="N", help="Differentiated services code point.")
@click.option("--no-fragment", is_flag=True, help="Refuse datagrams that exceed the MTU instead of fragmenting them.")
@click.option("--gather", is_flag=True, help="Let datagrams of fast flows leave in bursts of up to 200 us: saves CPU.")
@click.option("--congestion-control", metavar="NAME", help="With TCP, such as cubic.")
@click.option(
    "--parallel", type=click.IntRange(1, 4096), default=1, show_default=True, metavar="N", help="Number of equal flows."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Seed of randomness.")
@click.option("-4", "family", flag_value="4", help="Use IPv4 if the name has both.")
@click.option("-6", "family", flag_value="6", help="Use IPv6 if the name has both.")
@click.option(
    "--table",
    "table_file",
    type=FILE,
    metavar="FILE",
    help="Write what was sent, a row for each flow, as .csv or .parquet.",
)
@click.option("--clock-port", type=click.IntRange(1, 65535), default=5009, show_default=True, metavar="N")
@click.option("--no-clock", is_flag=True, help="Do not compare clocks: the receiver then reports no one-way delay.")
@json_option
def send(
    to: str | None,
    flows: Path | None,
    parallel: int,
    seed: int,
    family: str | None,
    table_file: Path | None,
    clock_port: int,
    no_clock: bool,
    as_json: bool,
    **options: str | float | bool | Path | None,
) -> int:
    """Send flows from this machine: UDP, TCP, RTP or ICMP echo, by any process of gaps and sizes, paced to the
    microsecond; or all flows of a file.

    Needs no lab and no privileges; as root the sender keeps its schedule on a busy machine, too.
    """
    from twinnet.cli.sent_table import print_sent, sent_record
    from twinnet.sockets.flow_plan import planned_flow, read_flows
    from twinnet.sockets.sending import send as send_flows
    from twinnet.sockets.sent_rows import SENT_COLUMNS, sent_rows
    from twinnet.sockets.table_file import check_table, write_table

    check_table(table_file)
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    chosen = {"4": socket.AF_INET, "6": socket.AF_INET6}.get(family or "", 0)
    plan: list[PlannedFlow]
    if flows is not None:
        if to is not None or given or parallel != 1:
            raise click.UsageError("--flows FILE has all flows: leave the receiver and the options of a flow out")
        plan = read_flows(flows, chosen)
    elif to is None:
        raise click.UsageError("give a receiver, such as 10.0.0.2, or --flows FILE")
    else:
        settings = {"to": to, **_settings(given)}
        plan = [planned_flow(settings, number, chosen) for number in range(1, parallel + 1)]
    sent = send_flows(plan, seed=seed, clock_port=None if no_clock else clock_port)
    if table_file is not None:
        write_table(sent_rows(sent), SENT_COLUMNS, table_file)
    if as_json:
        print_json(sent_record(sent, seed))
    else:
        print_sent(sent)
    if sent.interrupted:
        return INTERRUPTED
    return 1 if sent.failed else 0


def _settings(given: Mapping[str, object]) -> dict[str, object]:
    """Return the options as settings of a flow."""
    from twinnet.traffic.distributions import Distribution, OnOff

    settings: dict[str, object] = dict(given)
    protocol = settings.get("protocol", "udp")
    for name in ("gap", "size"):
        if name in settings:
            settings[name] = Distribution.parse(str(settings[name]), name)
    on, off = settings.pop("on", None), settings.pop("off", None)
    if (on is None) != (off is None):
        raise click.UsageError("periods need both --on and --off")
    if on is not None:
        settings["on_off"] = OnOff(Distribution.parse(str(on), "on"), Distribution.parse(str(off), "off"))
    if settings.pop("no_fragment", False):
        settings["fragment"] = False
    if settings.pop("gather", False):
        settings["exact"] = False
    if protocol == "tcp":
        _settings_of_tcp(settings)
    elif "size_bytes" in settings:
        raise click.UsageError("--bytes is for TCP; other flows end by --duration or --packets")
    if protocol == "icmp":
        settings["count"] = settings.pop("packets", None) or _requests(settings)
        settings.pop("duration", None)
    ends = ["duration", "packets", "count", "writes", "bytes"]
    endless_trace = "trace" in settings and not settings.get("repeat")
    if protocol != "icmp" and not endless_trace and not any(name in settings for name in ends):
        settings["duration"] = "10 s"
    if protocol == "udp" and not _is_scheduled(settings):
        settings["rate"] = "1 Mbit"
    return settings


def _settings_of_tcp(settings: dict[str, object]) -> None:
    """Name a stream's ends: what is sent in all, or how many writes."""
    if "packets" in settings:
        settings["writes"] = settings.pop("packets")
    if "size_bytes" in settings:
        if "size" in settings:
            raise click.UsageError("--bytes ends a flow whose writes have one --payload; with --size say --packets")
        settings["bytes"] = settings.pop("size_bytes")


def _is_scheduled(settings: dict[str, object]) -> bool:
    names = ("rate", "packets_per_second", "gap", "unpaced", "trace", "preset", "voice")
    return any(name in settings for name in names)


def _requests(settings: dict[str, object]) -> int:
    """Return the number of echo requests that fill the duration."""
    from twinnet.units import duration_ps

    if "gap" in settings:
        raise click.UsageError("echo requests at random gaps end by their number: give --packets N")
    interval = duration_ps(settings.get("interval", "1 s"), "interval")
    return max(duration_ps(settings.get("duration", "10 s")) // max(interval, 1), 1)
