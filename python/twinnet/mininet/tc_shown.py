"""What ``tc qdisc show`` and ``tc class show`` print of a line: the tree in its words, with the line's counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinnet.mininet.tc_tree import USUAL_LIMIT, Discipline, TcClass, Tree
from twinnet.mininet.tc_words import after, rate_text, size_text

__all__ = ["Counts", "classes_shown", "disciplines_shown"]

_USUAL_BURST_BYTES = 1600


@dataclass(frozen=True)
class Counts:
    """What a discipline or class has sent and dropped, and what waits in it.

    Parameters
    ----------
    sent_bytes, sent_frames
        What has left.
    dropped_frames
        What was dropped, losses of the line among them where it is the whole line.
    waiting_bytes, waiting_frames
        What waits.
    """

    sent_bytes: int = 0
    sent_frames: int = 0
    dropped_frames: int = 0
    waiting_bytes: int = 0
    waiting_frames: int = 0

    @classmethod
    def of_line(cls, counters: Mapping[str, int]) -> Counts:
        """Return those of the counters of a port, in the form of the lab protocol."""
        dropped = sum(value for name, value in counters.items() if name.startswith("dropped_"))
        return cls(
            counters.get("link_bytes", 0),
            counters.get("frames", 0),
            dropped + counters.get("lost", 0),
            counters.get("backlog_bytes", 0),
            counters.get("backlog_frames", 0),
        )

    @classmethod
    def of_class(cls, row: Mapping[str, Any]) -> Counts:
        """Return those of a class, in the form of the lab protocol."""
        waiting = row["backlog"]
        return cls(row["bytes"], row["frames"], sum(row["drops"].values()), waiting["bytes"], waiting["frames"])

    def shown(self) -> str:
        """Return the two lines of ``tc -s``."""
        return (
            f" Sent {self.sent_bytes} bytes {self.sent_frames} pkt "
            f"(dropped {self.dropped_frames}, overlimits 0 requeues 0) \n"
            f" backlog {self.waiting_bytes}b {self.waiting_frames}p requeues 0\n"
        )


def counts_at(place: Sequence[int] | None, line: Counts, classes: Sequence[Mapping[str, Any]]) -> Counts:
    """Return the counts of the class at `place` of the line's `classes`; those of the line where there is none."""
    found, rows = line, classes
    for number in place or ():
        row = next((row for row in rows if row["class"] == number), None)
        if row is None:
            return Counts()
        found, rows = Counts.of_class(row), row.get("classes", [])
    return found


def disciplines_shown(tree: Tree, line: Counts | None, classes: Sequence[Mapping[str, Any]]) -> str:
    """Return what ``tc qdisc show`` prints; with the counts of the line, what ``tc -s qdisc show`` prints."""
    lines: list[str] = []
    for one in tree.disciplines or [Discipline("noqueue", "0:", "root", [])]:
        place = "root refcnt 2" if one.parent == "root" else f"parent {one.parent}"
        lines.append(f"qdisc {one.kind} {one.handle} {place} {_words_of(one)}".rstrip() + " \n")
        if line is not None:
            lines.append(counts_at(tree.places.get(one.parent), line, classes).shown())
    return "".join(lines)


def classes_shown(tree: Tree, line: Counts | None, classes: Sequence[Mapping[str, Any]]) -> str:
    """Return what ``tc class show`` prints; with the counts of the line, what ``tc -s class show`` prints."""
    lines: list[str] = []
    for owner in tree.disciplines:
        for one in _classes_of(owner):
            inside = tree.at(one.classid)
            leaf = f" leaf {inside.handle}" if inside is not None else ""
            lines.append(_class_line(owner.kind, one, leaf))
            if line is not None:
                lines.append(counts_at(tree.places.get(one.classid), line, classes).shown())
                if owner.kind == "htb":
                    lines.append(" lended: 0 borrowed: 0 giants: 0\n tokens: 0 ctokens: 0\n")
                lines.append("\n")
    return "".join(lines)


def _classes_of(owner: Discipline) -> list[TcClass]:
    if owner.kind == "prio":
        return [TcClass(f"{owner.major}:{band:x}", owner.handle, 0, 0) for band in range(1, owner.bands() + 1)]
    return list(owner.classes.values())


def _class_line(kind: str, one: TcClass, leaf: str) -> str:
    above = f"parent {one.parent}" if one.parent.split(":")[-1] else "root"
    if kind == "prio":
        return f"class prio {one.classid} parent {one.parent}{leaf} \n"
    if kind == "hfsc":
        curve = f"sc m1 0bit d 0us m2 {rate_text(one.rate_bps)} ul m1 0bit d 0us m2 {rate_text(one.ceil_bps)}"
        return f"class hfsc {one.classid} {above}{leaf} {curve} \n"
    burst = size_text(one.burst_bytes or _USUAL_BURST_BYTES)
    rates = f"rate {rate_text(one.rate_bps)} ceil {rate_text(one.ceil_bps)}"
    return f"class htb {one.classid} {above}{leaf} prio {one.priority} {rates} burst {burst} cburst {burst} \n"


def _words_of(one: Discipline) -> str:
    if one.kind == "htb":
        usual = (after(one.words, "default") or "0").removeprefix("0x")
        return f"r2q 10 default 0x{usual} direct_packets_stat 0 direct_qlen {USUAL_LIMIT}"
    if one.kind == "netem" and "limit" not in one.words:
        return f"limit {USUAL_LIMIT} " + " ".join(one.words)
    if one.kind == "prio" and not one.words:
        return "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"
    if one.kind == "pfifo" and not one.words:
        return f"limit {USUAL_LIMIT}p"
    return " ".join(one.words)
