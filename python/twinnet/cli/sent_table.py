"""Output of ``twinnet send``: the data that it sent."""

from __future__ import annotations

from typing import Any

import click

from twinnet.report.text_table import table, terminal_columns, wrapped
from twinnet.sockets.sending import Sent, SentFlow

__all__ = ["microseconds", "print_sent", "rate_text", "sent_record"]


def rate_text(bits_per_second: float | None) -> str:
    """A rate in three digits with its unit."""
    if bits_per_second is None:
        return "-"
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_second >= scale:
            return f"{bits_per_second / scale:.4g} {unit}"
    return f"{bits_per_second:.4g} bit/s"


def microseconds(picoseconds: float | None) -> str:
    """A time in microseconds."""
    return "-" if picoseconds is None else f"{picoseconds / 1e6:.4g}"


def print_sent(sent: Sent) -> None:
    """Print a table of flows, what went wrong, and whose processor it was."""
    if sent.interrupted:
        click.echo("interrupted: this is what was sent until then")
    head = ["flow", "to", "sent", "bytes", "requested", "achieved", "gap error p50 us", "p99 us", "max us"]
    click.echo(table(head, [_row(flow) for flow in sent.flows], terminal_columns()))
    for flow in sent.flows:
        for note in _notes(flow):
            click.echo(wrapped(f"flow {flow.report.flow}: {note}", terminal_columns()))
    if any(flow.report.pacing is not None for flow in sent.flows):
        click.echo(wrapped(sent.processor.text, terminal_columns(), hanging=0))


def _row(flow: SentFlow) -> list[object]:
    report, pacing = flow.report, flow.report.pacing
    error = pacing.gap_error if pacing is not None else None
    asked = pacing.requested_packets_per_second if pacing is not None else None
    done = pacing.achieved_packets_per_second if pacing is not None else None
    return [
        f"{report.flow} {flow.protocol}",
        report.target or "-",
        "-" if report.packets is None else report.packets,
        report.bytes or 0,
        "-" if asked is None else f"{asked:.6g}/s",
        rate_text(report.throughput_bps) if done is None else f"{done:.6g}/s",
        microseconds(error.p50 if error else None),
        microseconds(error.p99 if error else None),
        microseconds(error.max if error else None),
    ]


def _notes(flow: SentFlow) -> list[str]:
    report = flow.report
    notes = list(report.errors)
    if report.pacing is not None and not report.pacing.kept_up:
        notes.append("it could not keep up with the requested rate")
    if report.rtt is not None:
        rtt = report.rtt
        notes.append(
            f"round trips: min {rtt.min / 1e9:.3f}, mean {rtt.mean / 1e9:.3f}, max {rtt.max / 1e9:.3f} ms;"
            f" {report.lost or 0} of {report.packets} lost"
        )
    if flow.unheard and not flow.failed:
        notes.append(
            "no `twinnet recv` answered there; UDP itself does not show whether anybody receives: ask the receiver"
        )
    if flow.clock is not None and not flow.clock.same_clock:
        notes.append(
            f"the receiver's clock is ahead by {flow.clock.offset_ps / 1e9:.6f} ms, within"
            f" {flow.clock.bound_ps / 1e6:.1f} us"
        )
    return notes


def sent_record(sent: Sent, seed: int) -> dict[str, Any]:
    """Return all that is known as JSON."""
    processor = sent.processor
    return {
        "seed": seed,
        "interrupted": sent.interrupted,
        "failed": sent.failed,
        "processor": {
            "shared": processor.shared,
            "realtime": processor.realtime,
            "waited_s": processor.waited_s,
            "cpu_s": processor.cpu_s,
        },
        "flows": [
            {
                **dict(flow.report.raw),
                "protocol": flow.protocol,
                "failed": flow.failed,
                "unheard": flow.unheard,
                "clock": None if flow.clock is None else flow.clock.to_spec(),
            }
            for flow in sent.flows
        ],
    }
