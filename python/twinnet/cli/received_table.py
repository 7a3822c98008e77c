"""Output of ``twinnet recv``: the data that it received, in all and per interval."""

from __future__ import annotations

from typing import Any

import click

from twinnet.cli.sent_table import microseconds, rate_text
from twinnet.report.text_table import table, terminal_columns, wrapped
from twinnet.sockets.receiving import Received, ReceivedFlow

__all__ = ["print_received", "received_record"]


def print_received(received: Received) -> None:
    """Print a table of flows and what went wrong."""
    head = ["from", "flow", "received", "lost", "late", "twice", "goodput", "delay us", "jitter 3550", "gap p99 us"]
    rows = [_row(flow) for flow in received.flows]
    click.echo(table(head, rows, terminal_columns()) if rows else "Nothing was received.")
    shown: set[str] = set()
    for flow in received.flows:
        for note in _notes(flow):
            line = f"{flow.report.source}: {note}"
            if line not in shown:
                shown.add(line)
                click.echo(wrapped(line, terminal_columns()))
    for error in received.errors:
        click.echo(error)


def _row(flow: ReceivedFlow) -> list[object]:
    report = flow.report

    def counted(value: int | None) -> object:
        return "-" if value is None else value

    return [
        report.source or "-",
        f"{'-' if report.flow is None else report.flow} {report.protocol}",
        counted(report.packets) if report.packets is not None else f"{report.bytes} B",
        counted(report.lost),
        counted(report.reordered),
        counted(report.duplicates),
        rate_text(report.throughput_bps),
        microseconds(report.delay.mean if report.delay else None),
        microseconds(report.jitter_rfc3550_ps),
        microseconds(report.gap.p99 if report.gap else None),
    ]


def _notes(flow: ReceivedFlow) -> list[str]:
    notes = list(flow.report.errors)
    stamped = flow.report.protocol in ("udp", "rtp") and flow.report.flow is not None
    if flow.clock is not None and not flow.clock.same_clock and flow.delay_known:
        notes.append(
            f"one-way delays are right within {flow.clock.bound_ps / 1e6:.1f} us, the bound of the clocks' offset"
        )
    elif stamped and not flow.delay_known:
        notes.append("no one-way delay: the sender's clock was not compared with this one (twinnet send does so)")
    if stamped and flow.sent is None:
        notes.append("what was lost after the last arrival is not known: the sender did not say how much it sent")
    return notes


def received_record(received: Received) -> dict[str, Any]:
    """Return all that is known as JSON."""
    return {
        "errors": list(received.errors),
        "flows": [
            {
                **dict(flow.report.raw),
                "port": flow.port,
                "delay_known": flow.delay_known,
                "sent_packets": flow.sent,
                "clock": None if flow.clock is None else flow.clock.to_spec(),
            }
            for flow in received.flows
        ],
    }
