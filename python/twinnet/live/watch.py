"""What the page shows of a lab: its network once, and what its links did since the look before.

The counters of links are compared from look to look. So the lab keeps nothing for a page, and a page that is killed
leaves nothing in it but the samplers of open curves (`fine.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.drawing.running import picture_of_running
from twinnet.errors import TwinnetError
from twinnet.open_vswitch import is_open_vswitch
from twinnet.results.port_samples import DROP_COUNTERS

if TYPE_CHECKING:
    from twinnet.drawing.picture import Picture
    from twinnet.drawing.placing import Place
    from twinnet.lab.lab import Lab

__all__ = [
    "DROPS",
    "PATIENCE_S",
    "LabWatch",
    "is_lossy",
    "more_of_way",
    "network_record",
    "record_of_network",
    "way_record",
    "with_more",
]

PATIENCE_S = 5.0
"""How long an answer of the lab is waited for, in seconds."""
_MOST_SPREAD_PS = 5 * 10**9
"""A look whose moment is known less well shows no rates."""
_LEAST_PS = 10**9
"""Of a shorter time there are no rates: where the virtual clock goes on by less, they are those since a look before."""
_VERDICT_EVERY_PS = 10**12
_STATE = ("up", "lossy", "rate_bps", "backlog_frames")
"""What is told of a direction that carries nothing."""
_PLAIN = 6
"""What each direction has, without what is behind it."""
_CLASSES_EVERY_PS = 5 * 10**12
"""So seldom it is asked which ports have classes: that takes an answer about all ports."""
DROPS = {reason: counter for reason, counter in DROP_COUNTERS.items() if reason != "loop"}
"""Counters of frames that a port was to send and that did not arrive, by reason."""

Row = Mapping[str, Any]


def network_record(lab: Lab, chosen: Mapping[str, Place] | None = None) -> dict[str, Any]:
    """Return the network as the page draws it: ``lab``, ``title``, ``nodes`` with places in cells, ``links`` with
    their ports, and ``controllers``, each with its ``target`` and ``switches``. The same network has the same places,
    but for the `chosen` ones.

    Raises
    ------
    BadValue
        It has so many nodes that they could not be told apart.
    """
    now = lab.links()
    picture = picture_of_running(lab.layout.nodes, lab.layout.links, now, MOST_LIVE_NODES, chosen)
    ends = [(link["a"], link["b"], link["ab"]["port"], link["ba"]["port"]) for link in now]
    controllers = [{"target": target, "switches": names} for target, names in _controllers(lab).items()]
    return record_of_network(lab.name, picture, ends) | {"controllers": controllers}


def _controllers(lab: Lab) -> dict[str, list[str]]:
    """The controllers that the switches were described with, each with the names of its switches."""
    found: dict[str, list[str]] = {}
    for name, node in lab.layout.nodes.items():
        for target in node.get("controllers") or ():
            found.setdefault(str(target), []).append(name)
    return found


def record_of_network(name: str, picture: Picture, ends: Iterable[tuple[str, str, str, str]]) -> dict[str, Any]:
    """Return the network called `name` as the page draws it.

    Parameters
    ----------
    name, picture
        What it is called, and its picture.
    ends
        Of each link: its two nodes and the names of its two ports.
    """
    nodes = [
        {"name": node.name, "kind": node.kind, "x": node.place[0], "y": node.place[1], "note": node.note}
        for node in picture.nodes
    ]
    links = [dict(zip(("a", "b", "a_port", "b_port"), one, strict=True)) for one in ends]
    return {"lab": name, "title": picture.caption, "nodes": nodes, "links": links}


def waiting_by_class(classes: Iterable[Row]) -> list[int]:
    """Return the frames that wait in each class of a port, in the form of the lab protocol (``ports``); of a class that
    has classes inside, those of each of them."""
    return [
        frames
        for one in classes
        for frames in (waiting_by_class(one["classes"]) if one.get("classes") else [int(one["backlog"]["frames"])])
    ]


def way_record(before: Row, after: Row, elapsed_s: float) -> list[Any]:
    """Return what one direction of a link did: its rate in bit/s (Ethernet frames from their header on), its load (the
    share of the time for which the line was busy; ``None`` without a line rate), the frames that wait, the frames that
    were dropped or lost since, whether it is up, its line rate in bit/s, and :func:`more_of_way` where there is more.

    Parameters
    ----------
    before, after
        The direction at two moments: the numbers that the lab protocol (``links.counters``) has by these names.
    elapsed_s
        The time between them in seconds.
    """
    line_bps = after["rate_bps"] or None
    rate_bps = (after["link_bytes"] - before["link_bytes"]) * 8 / elapsed_s
    load = (after["wire_bytes"] - before["wire_bytes"]) * 8 / elapsed_s / line_bps if line_bps else None
    load = None if load is None else round(load, 4)
    reasons = {reason: after[name] - before[name] for reason, name in DROPS.items()}
    plain = [round(rate_bps), load, after["backlog_frames"], sum(reasons.values()), bool(after["up"]), line_bps]
    return with_more(plain, more_of_way(reasons, after["marked"] - before["marked"], bool(after["lossy"])))


def more_of_way(reasons: Mapping[str, float], marks: float, lossy: bool = False) -> dict[str, Any]:
    """Return what is behind the numbers of a direction, as far as there is something: ``drops`` by reason, as
    :data:`~twinnet.results.port_samples.DROP_REASONS` names them, ``marks``, the frames that were marked for congestion
    instead, and ``lossy`` where loss is set. Where the port has classes, `LabWatch` adds ``classes``."""
    drops = {reason: count for reason, count in reasons.items() if count}
    found = {"drops": drops, "marks": marks, "lossy": lossy}
    return {name: value for name, value in found.items() if value}


def with_more(plain: list[Any], more: Mapping[str, Any]) -> list[Any]:
    """Return a direction with what is behind its numbers, if there is something."""
    return [*plain, more] if more else plain


def is_lossy(settings: Mapping[str, Any]) -> bool:
    """Return whether a direction with these settings, in the form of the lab protocol, loses frames by chance."""
    loss = settings.get("loss")
    return bool(loss) and loss.get("probability", 1) > 0


def _ways(
    columns: Sequence[str],
    before: Sequence[Sequence[int]],
    after: Sequence[Sequence[int]],
    elapsed_s: float,
) -> list[list[Any]]:
    """The record of each direction from its rows at two moments."""
    state = itemgetter(*(columns.index(name) for name in _STATE))
    idle: dict[Any, list[Any]] = {}
    ways: list[list[Any]] = []
    for then, now in zip(before, after, strict=True):
        # Most ports of a large network are idle, in few states, and all of them are looked at often.
        way = idle.get(state(now)) if then == now else None
        if way is None:
            here = dict(zip(columns, now, strict=True))
            way = way_record(here if then == now else dict(zip(columns, then, strict=True)), here, elapsed_s)
            if then == now:
                idle[state(now)] = way
        ways.append([*way])
    return ways


class LabWatch:
    """Looks at a lab again and again. One thread at a time uses it.

    Attributes
    ----------
    stands
        True if the lab's clock has stood still since the look before, as the virtual clock does.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._before: tuple[int, Sequence[Sequence[int]]] | None = None
        self._earlier: tuple[int, Sequence[Sequence[int]]] | None = None
        self._seen_ps: int | None = None
        self._verdict: tuple[int, dict[str, Any]] | None = None
        self._lateness = 0
        self._classes_ps: int | None = None
        self._has_classes = False
        self._ports: Sequence[str] = ()
        self._controllers = _controllers(lab)
        self._connected: list[list[bool]] = []
        self.stands: bool = False

    def rest(self) -> None:
        """Forget the last look: nobody watches for a while."""
        self._before = self._earlier = self._seen_ps = None

    def look(self) -> dict[str, Any] | None:
        """Return what happened since the last look; ``None`` for the first one, which has nothing to compare with, and
        for one whose moment is not known well enough, because the lab was held up between two answers.

        ``now_s`` and ``elapsed_s`` are of the lab's clock, ``ways`` has :func:`way_record` of each link there and back
        (behind it ``lossy`` where loss is set, and ``classes``, :func:`waiting_by_class`, where the port has them), and
        ``verdict`` the fidelity verdict, its reasons, the time that it covers and what was changed by hand, looked up
        once a second: ``at_s`` says when, and ``late_s`` is the time since the look-up before if the lab was late in
        it, and 0 if not. Where there are controllers, ``controllers`` has for each of :func:`network_record` which of
        its switches are connected, looked up as often.

        Raises
        ------
        LabClosed
            The lab has ended.
        TimeoutError
            It does not answer.
        """
        # Asked for together, so that the moment of the counters lies between two that are close.
        lab = self._lab.connection
        before_them, asked, after_them = lab.now_later(), lab.links_counters_later(), lab.now_later()
        ports = lab.ports_later() if self._has_classes else None
        early, told, late = before_them.result(PATIENCE_S), asked.result(PATIENCE_S), after_them.result(PATIENCE_S)
        rows = told["rows"]
        spread_ps = int(late["now_ps"]) - int(early["now_ps"])
        self.stands = False
        if spread_ps > _MOST_SPREAD_PS:
            return None
        now_ps = int(early["now_ps"]) + spread_ps // 2
        seen_ps, self._seen_ps = self._seen_ps, now_ps
        self.stands = spread_ps == 0 and now_ps == seen_ps
        last = self._before
        if last is None or now_ps - last[0] >= _LEAST_PS:
            self._before, self._earlier = (now_ps, rows), last
            before = last
        else:
            before = self._earlier or last
        if before is None or seen_ps is None or now_ps <= seen_ps:
            return None
        elapsed_s = max(now_ps - before[0], _LEAST_PS) / 1e12
        ways = _ways(told["columns"], before[1], rows, elapsed_s)
        if ports is not None:
            self._divide(ways, ports.result(PATIENCE_S))
        self._look_for_classes(now_ps)
        seen = {"now_s": now_ps / 1e12, "elapsed_s": elapsed_s, "ways": ways, "verdict": self._judged(now_ps)}
        return seen | ({"controllers": self._connected} if self._controllers else {})

    def _divide(self, ways: Sequence[list[Any]], ports: Iterable[Row]) -> None:
        waiting = {row["port"]: waiting_by_class(row["classes"]) for row in ports if row.get("classes")}
        if not self._ports:
            self._ports = [link[way]["port"] for link in self._lab.links() for way in ("ab", "ba")]
        for name, way in zip(self._ports, ways, strict=True):
            if name in waiting:
                behind: dict[str, Any] = way[_PLAIN] if len(way) > _PLAIN else {}
                way[_PLAIN:] = [behind | {"classes": waiting[name]}]

    def _look_for_classes(self, now_ps: int) -> None:
        if self._classes_ps is None or now_ps - self._classes_ps >= _CLASSES_EVERY_PS:
            self._classes_ps = now_ps
            self._has_classes = any(row.get("classes") for row in self._lab.ports())

    def _look_for_controllers(self) -> None:
        rows: Iterable[Row] = self._lab.connection.controllers()
        joined = {(row["switch"], row["target"]) for row in rows if row.get("version")}
        for name in dict.fromkeys(name for names in self._controllers.values() for name in names):
            if is_open_vswitch(self._lab.layout.nodes[name]):
                # It answers for itself, and may have ended.
                with contextlib.suppress(TwinnetError):
                    rows = self._lab.switch(name).controller_state
                    joined |= {(name, row["target"]) for row in rows if row.get("version")}
        self._connected = [[(name, target) in joined for name in names] for target, names in self._controllers.items()]

    def _judged(self, now_ps: int) -> dict[str, Any]:
        if self._verdict is None or now_ps - self._verdict[0] >= _VERDICT_EVERY_PS:
            record = self._lab.fidelity()
            verdict = record.verdict()
            judged = {"state": verdict.state, "reasons": verdict.reasons, "covers_s": record.elapsed_ps / 1e12}
            judged["by_hand"] = verdict.by_hand
            since_ps = min(now_ps - self._verdict[0] if self._verdict else record.elapsed_ps, record.elapsed_ps)
            # Frames that were late, and the time for which lines and the loop stood still: of a record that began anew
            # all is new.
            lateness = record.lateness_ns.late + record.slipped_ps + record.pauses_ps.get("total", 0)
            was_late = lateness > (0 if since_ps == record.elapsed_ps else self._lateness)
            self._lateness = lateness
            judged |= {"at_s": now_ps / 1e12, "late_s": since_ps / 1e12 if was_late else 0}
            self._verdict = (now_ps, judged)
            if self._controllers:
                self._look_for_controllers()
        return self._verdict[1]
