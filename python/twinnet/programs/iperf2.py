"""iperf 2: TCP and UDP traffic, reported as comma-separated values (``-y C``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mode

from twinnet.errors import BadValue, ReportUnreadable
from twinnet.programs.transfer import Output, Transfer, interval_index
from twinnet.results.flow_report import FlowReport
from twinnet.results.flow_series import Intervals
from twinnet.units import Duration, Rate, Size, duration_ps, rate_bps, size_bytes

__all__ = ["Row", "iperf2", "read_rows", "reported_interval_ps"]

_RESOLUTION_PS = 100_000_000_000
"""The resolution of the times in its reports, and its shortest interval, in picoseconds."""


def reported_interval_ps(interval_ps: int) -> int:
    """Return the longest interval that iperf 2 can report and that is no longer than `interval_ps`: at least 100 ms."""
    return max(interval_ps // _RESOLUTION_PS, 1) * _RESOLUTION_PS


def iperf2(
    client: str,
    server: str,
    *,
    duration: Duration = "10 s",
    rate: Rate | None = None,
    payload: Size = "1470 B",
    port: int = 5001,
    interval: Duration = "1 s",
    flow: int = 0,
    congestion_control: str | None = None,
) -> Transfer:
    """Return a transfer by iperf 2 from host `client` to host `server`: TCP (by the host's congestion
    control or the one that is named), or UDP when a `rate` is given.

    Its report gives times to a tenth of a second, so the `interval` is a multiple of 100 ms: one of 125 ms would be
    read as 100 ms at times and as 200 at others."""
    seconds, every = duration_ps(duration, "duration") / 1e12, duration_ps(interval, "interval") / 1e12
    if reported_interval_ps(duration_ps(interval, "interval")) != duration_ps(interval, "interval"):
        raise BadValue(
            f"the interval is {interval!r}; iperf 2 gives times to a tenth of a second", "write a multiple of 100 ms"
        )
    protocol = "udp" if rate is not None else "tcp"
    extra = ["-u"] if rate is not None else []
    report = ["-i", f"{every:g}", "-y", "C"]
    sending = ["-b", str(rate_bps(rate, "rate")), "-l", str(size_bytes(payload, "payload"))] if rate is not None else []
    if rate is None and congestion_control is not None:
        sending = ["-Z", congestion_control]
    return Transfer(
        "iperf",
        client,
        server,
        ("iperf", "-c", "{to}", *extra, "-p", str(port), "-t", f"{seconds:g}", *sending, *report),
        _reports,
        server_argv=("iperf", "-s", *extra, "-p", str(port), *report),
        protocol=protocol,
        port=port,
        flow=flow,
    )


@dataclass(frozen=True)
class Row:
    """One line of a report: what passed from `begin_s` to `end_s`; the UDP counters are ``None`` for TCP."""

    connection: tuple[str, str, str, str]
    begin_s: float
    end_s: float
    bytes: int
    jitter_ms: float | None = None
    lost: int | None = None
    datagrams: int | None = None
    out_of_order: int | None = None


def read_rows(text: str) -> list[Row]:
    """Return the lines of a ``-y C`` report; lines of another form (warnings) are passed over.

    Raises
    ------
    ReportUnreadable
        When there is no line of the known form.
    """
    rows: list[Row] = []
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) not in (9, 14):
            continue
        try:
            begin, _, end = cells[6].partition("-")
            row = Row((cells[1], cells[2], cells[3], cells[4]), float(begin), float(end), int(cells[7]))
            if len(cells) == 14:
                jitter, lost, datagrams, late = float(cells[9]), int(cells[10]), int(cells[11]), int(cells[13])
                row = replace(row, jitter_ms=jitter, lost=lost, datagrams=datagrams, out_of_order=late)
            rows.append(row)
        except ValueError:
            raise ReportUnreadable(f"iperf 2 wrote a line of an unknown form: {line[:120]!r}") from None
    if not rows:
        raise ReportUnreadable("iperf 2 wrote no report", "see whether this version knows: iperf -y C")
    return rows


def _reports(transfer: Transfer, output: Output) -> list[FlowReport]:
    client = read_rows(output.client)
    connection = client[0].connection
    reports = [_report(transfer, client, "source", connection, output.start_ps)]
    if output.server.strip():
        # The server's lines name the connection from its own side: source and destination as the client's, or turned.
        ends = {connection[:2], connection[2:]}
        mine = [row for row in read_rows(output.server) if {row.connection[:2], row.connection[2:]} == ends]
        if mine:
            reports.append(_report(transfer, mine, "sink", connection, output.start_ps))
    return reports


def _report(
    transfer: Transfer, rows: list[Row], role: str, connection: tuple[str, str, str, str], start_ps: int
) -> FlowReport:
    total = max(rows, key=lambda row: (row.end_s - row.begin_s, rows.index(row)))
    parts = [row for row in rows if row is not total] or [total]
    length_s = mode(round(row.end_s - row.begin_s, 6) for row in parts)
    length_ps = round(length_s * 1e12)
    packets = total.datagrams if total.datagrams is not None and total.datagrams >= 0 else None
    carried = _placed([(row, row.bytes) for row in parts], length_s)
    counts = total.datagrams is not None
    counted = _placed([(row, max(row.datagrams or 0, 0)) for row in parts], length_s) if counts else ()
    is_sink = role == "sink" and transfer.protocol == "udp"
    return FlowReport(
        flow=transfer.flow,
        protocol=transfer.protocol,
        role=role,
        source=connection[0],
        target=connection[2],
        start_ps=start_ps,
        end_ps=start_ps + round((total.end_s - total.begin_s) * 1e12),
        packets=packets - (total.lost or 0) if packets is not None and is_sink else packets or (sum(counted) or None),
        bytes=total.bytes,
        lost=total.lost if is_sink else None,
        reordered=total.out_of_order if is_sink else None,
        jitter_rfc3550_ps=total.jitter_ms * 1e9 if is_sink and total.jitter_ms is not None else None,
        intervals=Intervals(length_ps, interval_index(start_ps, length_ps), carried, counted),
    )


def _placed(rows: list[tuple[Row, int]], length_s: float) -> tuple[int, ...]:
    """Return the counts of `rows` by interval.

    A receiver that gets nothing writes no line, or later one for all the time since the last: a row is therefore placed
    by its own times, and what it counts is spread evenly over them.
    """
    placed: dict[int, int] = {}
    for row, count in rows:
        first, last = round(row.begin_s / length_s), round(row.end_s / length_s)
        intervals = range(first, max(last, first + 1))
        for place, index in enumerate(intervals):
            placed[index] = (
                placed.get(index, 0) + (place + 1) * count // len(intervals) - place * count // len(intervals)
            )
    return tuple(placed.get(index, 0) for index in range(max(placed, default=-1) + 1))
