"""Estimates of available bandwidth by any program: its command line, and a pattern for the estimate that it prints."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from twinnet.errors import BadValue
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.bandwidth_report import Bandwidth
from twinnet.results.flow_report import FlowReport
from twinnet.units import Rate, rate_bps

__all__ = ["checked_pattern", "estimate_by"]


def checked_pattern(reads: str) -> re.Pattern[str]:
    """Return the compiled pattern `reads`; raises `BadValue` unless it has one group or two."""
    remedy = r"write for example '([0-9.]+) Mbps', or two groups for a range: '([0-9.]+) - ([0-9.]+)'"
    try:
        found = re.compile(reads)
    except re.error as error:
        raise BadValue(f"the pattern {reads!r} cannot be read: {error}", remedy) from None
    if found.groups not in (1, 2):
        raise BadValue(f"the pattern {reads!r} has {found.groups} groups; 1 or 2 are allowed", remedy)
    return found


def estimate_by(
    source: str,
    target: str,
    command: str,
    *,
    reads: str,
    server: str | None = None,
    port: int = 5010,
    listens: Literal["tcp", "udp"] = "tcp",
    unit: Rate = "1 Mbit",
    flow: int = 0,
) -> Transfer:
    """Return an estimate of the available bandwidth from host `source` to host `target` by a program of yours.

    Parameters
    ----------
    command, server
        What runs in `source`, and before it in `target`, as command lines without a shell; ``{to}`` stands for the
        target's address, ``{from}`` for the source's, ``{port}`` for `port`.
    reads
        A regular expression whose group is the estimate, or whose two groups are the ends of a range. The last match
        counts, in what `command` wrote, else in what `server` wrote.
    port, listens
        Where the server listens when it is ready.
    unit
        What 1 stands for in the output.

    Raises
    ------
    BadValue
        The pattern or a command line cannot be read.
    """
    pattern, scale = checked_pattern(reads), float(rate_bps(unit, "unit"))
    argv, serving = _words(command, port), () if server is None else _words(server, port)

    def reports(transfer: Transfer, output: Output) -> list[FlowReport]:
        printed = f"{output.client}\n{output.errors}"
        found = [*pattern.finditer(output.server), *pattern.finditer(printed)][-1:]
        begin, end = output.start_ps, output.end_ps
        ends = [float(one) * scale for one in found[0].groups()] if found else []
        estimate = Bandwidth(
            transfer.program,
            "wire",
            sum(ends) / len(ends) if ends else None,
            min(ends) if len(ends) == 2 else None,
            max(ends) if len(ends) == 2 else None,
            None,
            None,
            None if ends else f"{transfer.program} wrote nothing that {reads!r} matches",
            (),
            window_start_ps=begin,
            window_end_ps=end,
        )
        return [
            FlowReport(flow=flow, protocol="bandwidth", role="source", start_ps=begin, end_ps=end, bandwidth=estimate)
        ]

    return Transfer(
        argv[0], source, target, argv, reports, server_argv=serving or None, protocol=listens, port=port, flow=flow
    )


def _words(command: str, port: int) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadValue(f"the command {command!r} cannot be read: {error}", "close its quotes") from None
    if not words:
        raise BadValue("a command is empty", "write a program and its arguments")
    return tuple(word.replace("{port}", str(port)) for word in words)
