"""The page about a run of a script: the verdict, the networks, and what each line carried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from twinnet.drawing.summary import page_part
from twinnet.errors import TwinnetError
from twinnet.network.topology_file import parse_network
from twinnet.report.pages import render_page
from twinnet.report.view import Cell, Table
from twinnet.results.fidelity import FidelityRecord

if TYPE_CHECKING:
    from twinnet.mininet.exported_network import ExportedNetwork

__all__ = ["run_page"]

_HEAD = ("Line", "Frames", "Bytes", "Dropped in the queue", "Lost on the line")


def run_page(
    script: str,
    networks: Sequence[ExportedNetwork],
    record: FidelityRecord | None,
    lines: Mapping[tuple[str, str], Counter[str]],
) -> str:
    """Return the page, which stands alone.

    Parameters
    ----------
    script
        Its name.
    networks
        The networks that it built.
    record
        What the fabric measured of itself; ``None``: it moved no frame.
    lines
        The counters of the lab protocol by the interfaces at the sending and the receiving end of each line.
    """
    verdict = record.verdict() if record is not None else None
    said = f"Fidelity: {record}." if record is not None else "No frame passed the fabric."
    return render_page(
        "mininet.html.jinja",
        (),
        title=script,
        said=said,
        reasons=verdict.reasons if verdict is not None else (),
        networks=[(_picture(one), one.notes) for one in networks],
        lines=_table(lines),
        files=(),
    )


def _picture(one: ExportedNetwork) -> str:
    """The network as HTML: its picture, or why there is none."""
    try:
        return page_part(parse_network(one.text("")))
    except TwinnetError as refused:
        return f"<p>{escape(str(refused))}</p>"


def _table(lines: Mapping[tuple[str, str], Counter[str]]) -> Table:
    rows: list[list[Cell]] = []
    for (sender, receiver), counts in lines.items():
        dropped = sum(value for name, value in counts.items() if name.startswith("dropped_"))
        figures = (counts["frames"], counts["link_bytes"], dropped, counts["lost"])
        rows.append([Cell(f"{sender} to {receiver}"), *(Cell(f"{figure:,}") for figure in figures)])
    note = "Frames and bytes that left each end of a line; Ethernet header included, check sequence not."
    return Table(_HEAD, rows, right_from=1, title="Lines", note=note)
