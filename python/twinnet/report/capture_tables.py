"""Tables of captures for a terminal: conversations, RTP streams, TCP, segments between captures, comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinnet.report.frame_rows import Column, Row, shown_rows
from twinnet.report.packet_list import packet_list_text
from twinnet.report.text_table import table, terminal_columns
from twinnet.report.wording import common_scale

if TYPE_CHECKING:
    import polars as pl

    from twinnet.results.captures import CaptureAnalysis, CaptureLayer, MatchedCaptures
    from twinnet.results.openflow_capture import OpenflowCapture

__all__ = ["SHOWN", "capture_parts", "capture_text", "comparison_text", "openflow_text", "segments_text"]

SHOWN = 20


def capture_text(one: CaptureAnalysis, layer: CaptureLayer, *, with_packets: bool = False) -> str:
    """The capture for people: what it is, notes, and the greatest of every table."""
    whole = one.capture.to_dicts()[0]
    duration_s = (whole["duration_ns"] or 0) / 1e9
    parts = [f"{one.path}: {whole['packets']} packets, {whole['bytes']} bytes in {duration_s:.6g} s ({whole['form']})"]
    parts += [f"note: {note}" for note in one.notes]
    rates = one.throughput(layer)["throughput_bps"]
    if rates.len():
        divisor, unit = common_scale([float(rate) for rate in rates], "bit/s")
        rates = rates / divisor
        parts.append(
            f"\nThroughput, all packets both ways, {layer} layer, intervals of {one.interval_s:g} s ({unit}): "
            f"mean {_number(rates.mean())}, min {_number(rates.min())}, max {_number(rates.max())}"
        )
    parts += [_shown(title, frame, columns) for title, frame, columns in capture_parts(one)]
    if with_packets:
        parts.append(packet_list_text(one))
    return "\n".join(part for part in parts if part) + "\n"


def capture_parts(one: CaptureAnalysis) -> list[tuple[str, pl.DataFrame, Mapping[str, Column]]]:
    """The tables of a capture that people are shown: title, rows, and what stands in each column."""
    top = one.conversations.sort("bytes", descending=True, maintain_order=True)
    return [
        (
            "Conversations",
            top,
            {
                "protocol": "protocol",
                "a": lambda row: _end(row, "a"),
                "b": lambda row: _end(row, "b"),
                "packets a>b": "packets_a_to_b",
                "bytes a>b": "bytes_a_to_b",
                "packets b>a": "packets_b_to_a",
                "bytes b>a": "bytes_b_to_a",
                "s": lambda row: _number((row["duration_ns"] or 0) / 1e9),
            },
        ),
        (
            "RTP streams",
            one.rtp_streams,
            {
                "source": lambda row: _end(row, "source"),
                "destination": lambda row: _end(row, "destination"),
                "ssrc": "ssrc",
                "payload": "payload",
                "packets": "packets",
                "lost": "lost",
                "errors": "sequence_errors",
                "delta ms mean": lambda row: _number(row["mean_delta_ms"]),
                "max": lambda row: _number(row["max_delta_ms"]),
                "jitter ms mean": lambda row: _number(row["mean_jitter_ms"]),
                "max ": lambda row: _number(row["max_jitter_ms"]),
                "skew ms": lambda row: _number(row["max_skew_ms"]),
                "kbit/s": lambda row: _number(row["mean_bandwidth_kbps"]),
            },
        ),
        (
            "TCP",
            one.tcp.filter(one.tcp["payload_bytes"] > 0),
            {
                "from": lambda row: _end(row, "source"),
                "to": lambda row: _end(row, "destination"),
                "bytes": "payload_bytes",
                "handshake ms": lambda row: _number(_sum(row["syn_to_synack_ms"], row["synack_to_ack_ms"])),
                "rtt ms min": lambda row: _number(row["min_round_trip_ms"]),
                "mean": lambda row: _number(row["mean_round_trip_ms"]),
                "max": lambda row: _number(row["max_round_trip_ms"]),
                "sent again": lambda row: (
                    row["retransmissions"] + row["fast_retransmissions"] + row["spurious_retransmissions"]
                ),
                "out of order": "out_of_order",
                "zero windows": "zero_windows",
            },
        ),
    ]


def openflow_text(spoken: OpenflowCapture) -> str:
    """What switches and controllers said, and how long answers took."""
    titles: Mapping[str, Column] = {
        name: name for name in ("connection", "version", "sender", "type", "messages", "bytes")
    }
    times: Mapping[str, Column] = {name: name for name in ("connection", "request", "answer", "asked", "answered")}
    figures: Mapping[str, Column] = {
        name.removesuffix("_ms") + " ms": lambda row, name=name: _number(row[name])
        for name in ("mean_ms", "median_ms", "p99_ms", "max_ms")
    }
    notes = "".join(f"note: {note}\n" for note in spoken.notes)
    messages = _shown("OpenFlow messages", spoken.messages, titles)
    return notes + messages + _shown("OpenFlow round trips", spoken.round_trips, {**times, **figures})


def segments_text(matched: MatchedCaptures) -> str:
    """Delay and loss from each capture to the next."""
    parts: list[str] = []
    for number, (first, second) in enumerate(zip(matched.paths, matched.paths[1:], strict=False), 1):
        segment = matched.segments.filter(matched.segments["segment"] == number)
        segment = segment.sort("sent", descending=True, maintain_order=True)
        parts.append(
            _shown(
                f"Segment {number}: {first} to {second}",
                segment,
                {
                    "protocol": "protocol",
                    "source": lambda row: _end(row, "source"),
                    "destination": lambda row: _end(row, "destination"),
                    "way": "direction",
                    "sent": "sent",
                    "received": "received",
                    "lost": lambda row: "-" if row["lost"] is None else row["lost"],
                    "outside": "outside",
                    "delay ms min": lambda row: _number(row["min_delay_ms"]),
                    "mean": lambda row: _number(row["mean_delay_ms"]),
                    "p99": lambda row: _number(row["p99_delay_ms"]),
                    "max": lambda row: _number(row["max_delay_ms"]),
                },
            )
        )
    return "\n".join(parts)


def comparison_text(compared: pl.DataFrame, labels: tuple[str, str]) -> str:
    """Both sets quantity by quantity, and the tests of their difference."""
    measures = ("samples", "mean", "min", "max", "variance", "std", "normality_p")
    lines: list[list[object]] = []
    for row in compared.to_dicts():
        for key, label in zip(("first", "second"), labels, strict=True):
            name = f"{row['quantity']} ({row['unit']})"
            lines.append([name, label, *(_number(row[f"{key}_{measure}"]) for measure in measures)])
    sets = table(
        ["quantity", "set", "samples", "mean", "min", "max", "variance", "std", "normality p"],
        lines,
        terminal_columns(),
    )
    tests = ("student_p", "welch_p", "holm_p", "mann_whitney_p", "hedges_g", "cliffs_delta")
    differences = table(
        [f"{labels[1]} - {labels[0]}", "difference", "Student p", "Welch p", "Holm p", "Mann-Whitney p", "g", "d"],
        [
            [row["quantity"], _number(row["difference_of_means"]), *(_number(row[test]) for test in tests)]
            for row in compared.to_dicts()
        ],
        terminal_columns(),
    )
    return f"{sets}\n\n{differences}"


def _shown(title: str, frame: pl.DataFrame, columns: Mapping[str, Column]) -> str:
    """The first rows of `frame` below a title; nothing when there are none."""
    if frame.is_empty():
        return ""
    rows = shown_rows(frame, columns, SHOWN)
    more = f"\n... and {frame.height - SHOWN} more (--json, --csv)" if frame.height > SHOWN else ""
    return f"\n{title}\n{table(list(columns), rows, terminal_columns())}{more}"


def _end(row: Row, which: str) -> str:
    address, port = row[f"{which}_address"], row[f"{which}_port"]
    if not port:
        return str(address)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
