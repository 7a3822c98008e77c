"""What the page is told of a lab: its network once, and what its links did since the look before.

The counters of links are compared from look to look. So the lab keeps nothing for a page, and a page that is killed
leaves nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.drawing.running import picture_of_running

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["PATIENCE_S", "LabWatch", "network_told", "way_told"]

PATIENCE_S = 5.0
"""How long an answer of the lab is waited for, in seconds."""
_MOST_SPREAD_PS = 5 * 10**9
"""A look whose moment is known less well shows no rates."""
_VERDICT_EVERY_PS = 10**12
_DROPS = (
    "dropped_overlimit",
    "dropped_early",
    "dropped_unclassified",
    "dropped_down",
    "dropped_oversize",
    "dropped_unfragmentable",
    "lost",
)
"""Counters of frames that a port was to send and that did not arrive."""

Row = Mapping[str, Any]


def network_told(lab: Lab) -> dict[str, Any]:
    """Return the network as the page draws it: ``lab``, ``title``, ``nodes`` with places in cells, and ``links`` with
    their ports. The same network has the same places.

    Raises
    ------
    BadValue
        It has so many nodes that they could not be told apart.
    """
    now = lab.links()
    picture = picture_of_running(lab.layout.nodes, lab.layout.links, now)
    nodes = [
        {"name": node.name, "kind": node.kind, "x": node.place[0], "y": node.place[1], "note": node.note}
        for node in picture.nodes
    ]
    links = [
        {"a": link["a"], "b": link["b"], "a_port": link["ab"]["port"], "b_port": link["ba"]["port"]} for link in now
    ]
    return {"lab": lab.name, "title": picture.caption, "nodes": nodes, "links": links}


def way_told(before: Row, after: Row, elapsed_s: float) -> list[float | int | bool | None]:
    """Return what one direction of a link did: its rate in bit/s (Ethernet frames from their header on), its load (the
    share of the time for which the line was busy; ``None`` without a line rate), the frames that wait, the frames that
    were dropped or lost since, whether it is up, and its line rate in bit/s.

    Parameters
    ----------
    before, after
        The direction at two moments, in the form of the lab protocol (``links``).
    elapsed_s
        The time between them in seconds.
    """
    then, now = before["counters"], after["counters"]
    line_bps = after["config"].get("rate_bps")
    rate_bps = (now["link_bytes"] - then["link_bytes"]) * 8 / elapsed_s
    load = (now["wire_bytes"] - then["wire_bytes"]) * 8 / elapsed_s / line_bps if line_bps else None
    dropped = sum(now[name] - then[name] for name in _DROPS)
    load = None if load is None else round(load, 4)
    return [round(rate_bps), load, now["backlog_frames"], dropped, bool(after["up"]), line_bps]


class LabWatch:
    """Looks at a lab again and again. One thread at a time uses it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._before: tuple[int, Sequence[Row]] | None = None
        self._verdict: tuple[int, dict[str, Any]] | None = None
        self._lateness = 0

    def rest(self) -> None:
        """Forget the last look: nobody watches for a while."""
        self._before = None

    def look(self) -> dict[str, Any] | None:
        """Return what happened since the last look; ``None`` for the first one, which has nothing to compare with, and
        for one whose moment is not known well enough, because the lab was held up between two answers.

        ``now_s`` and ``elapsed_s`` are of the lab's clock, ``ways`` has :func:`way_told` of each link there and back,
        and ``verdict`` the fidelity verdict, its reasons and the time that it covers, looked up once a second: ``at_s``
        says when, and ``late_s`` is the time since the look-up before if the lab was late in it, and 0 if not.

        Raises
        ------
        LabClosed
            The lab has ended.
        TimeoutError
            It does not answer.
        """
        # Asked for together, so that the moment of the counters lies between two that are close.
        lab = self._lab.connection
        before_them, asked, after_them = lab.now_later(), lab.links_later(), lab.now_later()
        early, links, late = before_them.result(PATIENCE_S), asked.result(PATIENCE_S), after_them.result(PATIENCE_S)
        spread_ps = int(late["now_ps"]) - int(early["now_ps"])
        if spread_ps > _MOST_SPREAD_PS:
            return None
        now_ps = int(early["now_ps"]) + spread_ps // 2
        before, self._before = self._before, (now_ps, links)
        if before is None or now_ps <= before[0]:
            return None
        elapsed_s = (now_ps - before[0]) / 1e12
        ways = [
            way_told(then[way], now[way], elapsed_s)
            for then, now in zip(before[1], links, strict=True)
            for way in ("ab", "ba")
        ]
        return {"now_s": now_ps / 1e12, "elapsed_s": elapsed_s, "ways": ways, "verdict": self._judged(now_ps)}

    def _judged(self, now_ps: int) -> dict[str, Any]:
        if self._verdict is None or now_ps - self._verdict[0] >= _VERDICT_EVERY_PS:
            record = self._lab.fidelity()
            verdict = record.verdict()
            told = {"state": verdict.state, "reasons": verdict.reasons, "covers_s": record.elapsed_ps / 1e12}
            since_ps = min(now_ps - self._verdict[0] if self._verdict else record.elapsed_ps, record.elapsed_ps)
            # Frames that were late, and the time for which lines and the loop stood still: of a record that began anew
            # all is new.
            lateness = record.lateness_ns.late + record.slipped_ps + record.pauses_ps.get("total", 0)
            was_late = lateness > (0 if since_ps == record.elapsed_ps else self._lateness)
            self._lateness = lateness
            told |= {"at_s": now_ps / 1e12, "late_s": since_ps / 1e12 if was_late else 0}
            self._verdict = (now_ps, told)
        return self._verdict[1]
