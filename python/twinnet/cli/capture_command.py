"""``twinnet capture``."""

from __future__ import annotations

import contextlib
import select
import sys
from typing import TYPE_CHECKING, Any

import click

from twinnet.cli import completion
from twinnet.cli.output import json_option, print_json
from twinnet.units import duration_ps

if TYPE_CHECKING:
    from twinnet.lab.lab import Capture, Lab

__all__ = ["capture"]

_LOOK_S = 0.2
_PS_PER_S = 10**12


@click.command(short_help="Capture a port of a running lab, live into Wireshark too.")
@click.argument("lab_name", metavar="LAB", shell_complete=completion.labs)
@click.argument("interface", metavar="PORT", shell_complete=completion.ports)
@click.argument("file", metavar="FILE", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--duration", metavar="T", help='End after this time, such as "10 s"; without it, Ctrl-C ends.')
@click.option(
    "--direction",
    type=click.Choice(["both", "in", "out"]),
    default="both",
    show_default=True,
    help="What the port's node receives, what it sends, or both.",
)
@click.option("--snap", metavar="SIZE", help='How much of each frame is kept, such as "96 B".')
@click.option("--limit", metavar="SIZE", help='The most data that is written, such as "10 MB".')
@click.option(
    "--ring",
    type=(int, str),
    metavar="N SIZE",
    default=None,
    help='Keep the newest N files of SIZE, such as 5 "10 MB".',
)
@json_option
def capture(
    lab_name: str,
    interface: str,
    file: str,
    duration: str | None,
    direction: str,
    snap: str | None,
    limit: str | None,
    ring: tuple[int, str] | None,
    as_json: bool,
) -> int:
    """Write the frames that pass PORT of LAB to FILE as pcapng, until Ctrl-C. FILE is standard output when it is - or
    not given: twinnet capture LAB s1-eth1 | wireshark -k -i -

    The summary goes to standard error when the frames go to standard output. Exit status 1 when frames could not be
    written.
    """
    from twinnet import lab as lab_module

    if file == "-" and sys.stdout.isatty():
        raise click.UsageError(
            f"standard output is a terminal; write: twinnet capture {lab_name} {interface} - | wireshark -k -i -, "
            "or give a FILE"
        )
    if file == "-" and as_json:
        raise click.UsageError("with --json the frames need a FILE: standard output has the JSON")
    limit_s = None if duration is None else duration_ps(duration, "duration") / _PS_PER_S
    given: dict[str, Any] = {"direction": direction, "snap": snap, "limit": limit, "ring": ring}
    with lab_module.attach(lab_name) as lab:
        running = lab.capture(interface, sys.stdout.buffer if file == "-" else file, **given)
        reader_left = False
        # Ctrl-C is how a capture without a duration ends.
        with contextlib.suppress(KeyboardInterrupt):
            reader_left = _wait(lab, limit_s, to_pipe=file == "-")
        if not lab.running:
            click.echo(f"twinnet: the lab {lab_name} has ended, and the capture with it", err=True)
            return 0
        running.stop()
    return _tell(running, interface, file, reader_left, as_json)


def _wait(lab: Lab, limit_s: float | None, to_pipe: bool) -> bool:
    """Wait until the time is over or the lab has ended; return true when the reader of our output has left before."""
    reader = select.poll()
    if to_pipe:
        reader.register(sys.stdout.fileno(), select.POLLERR)
    end_s = None if limit_s is None else lab.now() + limit_s
    while True:
        left_s = _LOOK_S if end_s is None else min(_LOOK_S, end_s - lab.now())
        if left_s <= 0 or lab.connection.wait_closed(left_s):
            return False
        if to_pipe and any(event & select.POLLERR for _, event in reader.poll(0)):
            return True


def _tell(capture: Capture, interface: str, file: str, reader_left: bool, as_json: bool) -> int:
    failed = capture.failure is not None and not reader_left
    if as_json:
        fields = ("path", "frames", "dropped", "failure", "files")
        print_json({"interface": interface, **{name: getattr(capture, name) for name in fields}})
        return 1 if failed else 0
    if file == "-":
        where = "sent; the reader has left" if reader_left else "sent"
    else:
        where = f"in {file}" if len(capture.files) < 2 else f"in {capture.files[0]} to {capture.files[-1]}"
    dropped = f", {capture.dropped} dropped" if capture.dropped and not reader_left else ""
    why = f" ({capture.failure})" if failed else ""
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"{interface}: {capture.frames} frames {where}{dropped}{why}", err=file == "-")
    return 1 if failed else 0
