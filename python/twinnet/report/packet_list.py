"""The packet list of a capture: the first packets one by one, for a terminal and for a page that sorts and filters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from twinnet.report.frame_rows import Column, shown_rows
from twinnet.report.text_table import table, terminal_columns

if TYPE_CHECKING:
    import polars as pl

    from twinnet.results.captures import CaptureAnalysis

__all__ = ["PACKET_COLUMNS", "packet_list_text", "page_rows"]

_LARGEST_LIST_BYTES = 240_000
"""Of the list in a page: with the script that draws figures the page stays below 1.5 MB."""

_COLUMNS = ("source", "destination", "protocol", "length", "info")

PACKET_COLUMNS: Mapping[str, Column] = {
    "packet": "packet",
    "time s": lambda row: _seconds(row["since_start_ns"]),
    "source": "source",
    "destination": "destination",
    "protocol": "protocol",
    "bytes": "length",
    "info": "info",
}
"""What people are told of a packet in a table."""

PageRow = list[int | float | str | None]


def packet_list_text(one: CaptureAnalysis) -> str:
    """The list for people; empty when no packets were asked for."""
    if not one.packet_list.width:
        return ""
    rows = shown_rows(one.packet_list, PACKET_COLUMNS, one.packet_list.height)
    whole = int(one.capture["packets"][0])
    more = f"\n... and {whole - len(rows)} more (--packets {whole})" if whole > len(rows) else ""
    return f"\nPackets\n{table(list(PACKET_COLUMNS), rows, terminal_columns())}{more}"


def page_rows(listed: pl.DataFrame) -> list[PageRow]:
    """The rows of a page's list: number, seconds from the first packet, and what is known of it; as many as fit."""
    rows: list[PageRow] = []
    left = _LARGEST_LIST_BYTES
    for row in listed.to_dicts():
        since = row["since_start_ns"]
        shown: PageRow = [row["packet"], None if since is None else since / 1e9, *(row[name] for name in _COLUMNS)]
        left -= len(json.dumps(shown, ensure_ascii=False).encode())
        if left < 0:
            break
        rows.append(shown)
    return rows


def _seconds(since_start_ns: int | None) -> str:
    return "-" if since_start_ns is None else f"{since_start_ns / 1e9:.6f}"
