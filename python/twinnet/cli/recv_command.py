"""``twinnet recv``: receives generated traffic and judges it."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

import click

from twinnet.cli.output import json_option, print_json
from twinnet.cli.shared_options import FILE

__all__ = ["recv"]

_EPILOG = """Runs until Ctrl-C by default. Without --udp, --tcp and --rtp it listens on UDP 5003 and
5006, TCP 5002 and RTP 5004; with one of them, only there. It reports one-way delay if the sender has the same clock, or
has compared its clock with this one (`twinnet send` does, by UDP port 5009); then it also reports the error bound.
Through the same port the sender tells how much it sent: without that, loss after the last arrival is not known. Rates
are of payload (goodput). Exit status 1 when a port is in use."""


@click.command(short_help="Receive generated traffic on this machine, and judge it.", epilog=_EPILOG)
@click.option(
    "--udp", type=click.IntRange(1, 65535), multiple=True, metavar="PORT", help="Receive UDP; may be repeated."
)
@click.option(
    "--tcp", type=click.IntRange(1, 65535), multiple=True, metavar="PORT", help="Receive TCP; may be repeated."
)
@click.option(
    "--rtp", type=click.IntRange(1, 65535), multiple=True, metavar="PORT", help="Receive RTP; may be repeated."
)
@click.option("--duration", metavar="TIME", help="End after this time.")
@click.option("--idle", metavar="TIME", help="End when nothing has arrived for this time, after the first arrival.")
@click.option("--interval", default="1 s", show_default=True, metavar="TIME", help="The interval of counting.")
@click.option("--record-packets", type=click.IntRange(1, 1_000_000), metavar="N", help="Keep the first N of each flow.")
@click.option(
    "--table",
    "table_file",
    type=FILE,
    metavar="FILE",
    help="Write the counts per interval as .csv or .parquet.",
)
@click.option("--clock-port", type=click.IntRange(1, 65535), default=5009, show_default=True, metavar="PORT")
@click.option("--no-clock", is_flag=True, help="Do not answer about this machine's clock.")
@json_option
def recv(
    udp: tuple[int, ...],
    tcp: tuple[int, ...],
    rtp: tuple[int, ...],
    duration: str | None,
    idle: str | None,
    interval: str,
    record_packets: int | None,
    table_file: Path | None,
    clock_port: int,
    no_clock: bool,
    as_json: bool,
) -> int:
    """Receive flows on this machine: throughput, loss, duplicates, reordering, jitter and one-way delay of each, also
    per interval."""
    from twinnet.cli.received_table import print_received, received_record
    from twinnet.sockets.received_rows import COLUMNS, interval_rows
    from twinnet.sockets.receiving import receive
    from twinnet.sockets.table_file import check_table, write_table

    check_table(table_file)
    if not (udp or tcp or rtp):
        udp, tcp, rtp = (5003, 5006), (5002,), (5004,)
    named = [f"{kind} {port}" for kind, ports in (("UDP", udp), ("TCP", tcp), ("RTP", rtp)) for port in ports]

    def ready() -> None:
        click.echo(f"Listening on {', '.join(named)}.", err=True)

    # A script that ends the receiver wants its results, as a person does with Ctrl-C.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        received = receive(
            udp=udp,
            tcp=tcp,
            rtp=rtp,
            clock_port=None if no_clock else clock_port,
            interval=interval,
            record_packets=record_packets,
            duration=duration,
            idle=idle,
            ready=ready,
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    if table_file is not None:
        write_table(interval_rows(received), COLUMNS, table_file)
    if as_json:
        print_json(received_record(received))
    else:
        print_received(received)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
