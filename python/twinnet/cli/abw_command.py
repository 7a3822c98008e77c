"""``twinnet abw``: available bandwidth between two machines."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinnet.cli.output import json_option, print_json
from twinnet.report.text_table import terminal_columns, wrapped
from twinnet.traffic.bandwidth import BANDWIDTH_PORT, METHODS, PRESETS

if TYPE_CHECKING:
    from twinnet.sockets.probing import Probed
    from twinnet.traffic.bandwidth import Probes

__all__ = ["abw"]

_EXAMPLES = """\b
Examples:
  twinnet abw --listen
  twinnet abw 10.0.0.2
  twinnet abw 10.0.0.2 --method pathload --json
  twinnet abw 10.0.0.2 --method spruce --capacity "100 Mbit"
  twinnet abw 10.0.0.2 --method waves:Waves --setting trains=20
  twinnet abw 10.0.0.2 --budget "5 MB" --most-rate "50 Mbit"

Start the listener at the far end first. Rates are those of an Ethernet line, preamble and gap included; with --layer
network those of IP. Exit status 1 when there is no estimate."""


class _Here(Mapping[str, str]):
    """The texts of the files in this folder."""

    def __getitem__(self, name: str) -> str:
        try:
            return Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise ValueError(f"there is no file {name!r} in this folder that can be read") from None

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in Path().iterdir())

    def __len__(self) -> int:
        return len(list(self))


class _Method(click.Choice[str]):
    """A built-in method, or an estimator of one's own."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in METHODS:
            return value
        from twinnet.study.named_code import own_name

        return own_name(value, "estimator") or super().convert(value, param, ctx)


@click.command(short_help="Estimate the available bandwidth to another machine, or listen there.", epilog=_EXAMPLES)
@click.argument("host", required=False)
@click.option("--listen", is_flag=True, help="Listen here for probes of others, until Ctrl-C.")
@click.option(
    "--method",
    type=_Method(METHODS),
    metavar=f"[{'|'.join(METHODS)}|MODULE:CLASS]",
    default="hybrid",
    show_default=True,
    help="How to estimate; MODULE:CLASS is your own, in MODULE.py here or installed.",
)
@click.option("--capacity", metavar="RATE", help="Capacity of the tight link: spruce needs it, hybrid can use it.")
@click.option("--prior", metavar="RATE", help="With hybrid: the estimate by counters.")
@click.option("--prior-std", metavar="RATE", help="With --prior: its standard deviation.")
@click.option("--prior-window", metavar="TIME", help="With --prior-std: the polling period that it is between.")
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default="ours",
    show_default=True,
    help="The settings that twinnet found best, or those that the method was published with.",
)
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=NUMBER", help="A setting of the method; may be repeated."
)
@click.option("--layer", type=click.Choice(["wire", "network"]), default="wire", show_default=True)
@click.option("--mtu", type=click.IntRange(92, 65535), default=1500, show_default=True, help="The path's MTU in bytes.")
@click.option(
    "--most-rate", metavar="RATE", help="The highest rate to send (1 Gbit), or to allow with --listen (10 Gbit)."
)
@click.option("--budget", metavar="SIZE", help="The most data that probes may cost, such as '5 MB'.")
@click.option("--duration", metavar="TIME", help="The most time that the estimate, or the listener, takes.")
@click.option("--allow", multiple=True, metavar="ADDRESS", help="With --listen: answer only this; may be repeated.")
@click.option("--port", type=click.IntRange(1, 65535), default=BANDWIDTH_PORT, show_default=True, metavar="PORT")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Seed of randomness.")
@click.option("--record", is_flag=True, help="With --json: keep the stamps of all trains.")
@click.option("-4", "family", flag_value="4", help="Use IPv4 if the name has both.")
@click.option("-6", "family", flag_value="6", help="Use IPv6 if the name has both.")
@json_option
def abw(
    host: str | None,
    listen: bool,
    method: str,
    capacity: str | None,
    prior: str | None,
    prior_std: str | None,
    prior_window: str | None,
    preset: str,
    settings: tuple[str, ...],
    layer: str,
    mtu: int,
    most_rate: str | None,
    budget: str | None,
    duration: str | None,
    allow: tuple[str, ...],
    port: int,
    seed: int,
    record: bool,
    family: str | None,
    as_json: bool,
) -> int:
    """Estimate the bandwidth that is available on the way to HOST, where `twinnet abw --listen` runs.

    Needs no lab and no privileges; as root the sender keeps its gaps on a busy machine, too.
    """
    from twinnet.traffic.bandwidth import Probes

    if listen:
        if host is not None:
            raise click.UsageError("--listen waits for others: leave HOST out")
        return _listen(as_json, port, most_rate, allow, duration)
    if host is None:
        raise click.UsageError("give a host, such as 10.0.0.2, or --listen")
    if allow:
        raise click.UsageError("--allow belongs to --listen")
    probes = Probes(
        capacity=capacity,
        prior=prior,
        prior_std=prior_std,
        prior_window=prior_window,
        preset=preset,
        settings=_settings(settings),
        layer=layer,
        mtu=mtu,
        most_rate=most_rate or "1 Gbit",
        budget=budget,
        duration=duration or "10 min",
        record=record,
        port=port,
    )
    return _probe(host, _found(method), probes, seed, family, as_json)


def _found(method: str) -> str:
    """The name by which the core knows `method`."""
    if method in METHODS:
        return method
    from twinnet.study.own_source import bring_own

    try:
        return bring_own(method, _Here(), "estimator")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--method") from None


def _listen(as_json: bool, port: int, most_rate: str | None, allow: tuple[str, ...], duration: str | None) -> int:
    from twinnet.sockets.probing import listen_for_probes

    def ready() -> None:
        click.echo(f"Listening for probes on UDP {port}.", err=True)

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        report = listen_for_probes(
            port=port, most_rate=most_rate or "10 Gbit", allow=allow or None, duration=duration, ready=ready
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    if as_json:
        print_json(dict(report.raw))
    else:
        click.echo(f"{report.packets} datagrams, {report.bytes} bytes")
        for error in report.errors:
            click.echo(error)
    return 0


def _probe(host: str, method: str, probes: Probes, seed: int, family: str | None, as_json: bool) -> int:
    from twinnet.sockets.probing import probe

    chosen = {"4": socket.AF_INET, "6": socket.AF_INET6}.get(family or "", 0)
    probed = probe(host, method, probes, seed=seed, family=chosen)
    if as_json:
        raw = dict(probed.report.raw)
        print_json({**raw, "doubts": list(probed.doubts), "processor": probed.processor.text})
    else:
        _print(probed)
    bandwidth = probed.report.bandwidth
    return 0 if bandwidth is not None and bandwidth.estimate_bps is not None else 1


def _settings(texts: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"--setting {text!r} is not NAME=NUMBER")
        if value in ("true", "false"):
            found[name] = value == "true"
            continue
        try:
            number = float(value)
        except ValueError:
            raise click.UsageError(f"--setting {text!r}: {value!r} is no number") from None
        found[name] = int(number) if number.is_integer() and "." not in value and "e" not in value.lower() else number
    return found


def _print(probed: Probed) -> None:
    columns = terminal_columns()
    for line in _lines(probed):
        click.echo(wrapped(line, columns))


def _stamps(kernel: int, trains: int) -> str:
    handed_over = "when packets were handed to the kernel"
    if kernel == 0:
        return f"{handed_over} (the interface stamps nothing)" if trains else "none"
    rest = f"; in the other {trains - kernel} trains {handed_over}" if kernel < trains else ""
    return f"the kernel's stamps of when packets left{rest}"


def _lines(probed: Probed) -> Iterator[str]:
    from twinnet.cli.sent_table import rate_text

    estimate = probed.report.bandwidth
    if estimate is None:
        yield from probed.report.errors
        return
    if estimate.estimate_bps is None:
        yield f"No estimate: {estimate.gave_up or '; '.join(probed.report.errors)}"
    else:
        sort = "range" if estimate.confidence is None else f"{100 * estimate.confidence:.0f} % interval"
        ends = f"{rate_text(estimate.low_bps)} to {rate_text(estimate.high_bps)}"
        method = f"{estimate.method}, layer {estimate.layer}"
        yield f"Available: {rate_text(estimate.estimate_bps)} ({sort} {ends}; {method})"
        if estimate.capacity_bps is not None:
            yield f"Capacity of the tight link: {rate_text(estimate.capacity_bps)}"
        if estimate.gave_up:
            yield f"It stopped early: {estimate.gave_up}"
    for hop in estimate.hops:
        yield f"up to hop {hop.hop}: {rate_text(hop.estimate_bps)}, thin with probability {hop.thin:.2f}"
    cost = (estimate.probe_bytes + estimate.control_bytes) / 1e6
    spent = f"{estimate.trains} trains, {estimate.probe_packets} packets, {cost:.3f} MB"
    yield f"Over {estimate.window_s:.2f} s, by {spent}"
    yield f"Times of sending: {_stamps(estimate.kernel_stamped_trains, estimate.trains)}"
    for line in (*estimate.notes, *probed.report.errors, *(f"Doubtful: {doubt}" for doubt in probed.doubts)):
        if line != estimate.gave_up:
            yield line
    yield probed.processor.text
