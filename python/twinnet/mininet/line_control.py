"""``tc`` in a script's machine: disciplines at the ends of lines, shown and set in its words.

The line of an interface is shaped by the fabric; what ``tc`` says of it is read from its shaping, and what ``tc`` sets
changes it. Interfaces that are no ends of lines are left to the kernel's ``tc``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.shaping import Shaping, netem_time_ps

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["Discipline", "LineControl", "LineRefused", "NoLine"]

_RATE = re.compile(r"([0-9.]+)([kmgt]?i?)(bit|bps)?", re.IGNORECASE)
_SIZE = re.compile(r"([0-9.]+)([kmg]?)(b|bit|bits)?", re.IGNORECASE)
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SIZE_PREFIXES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_USUAL_LIMIT = 1000
_QUEUES = ("pfifo", "bfifo", "codel", "fq_codel", "sfq", "red")


class NoLine(Exception):
    """The interface is no end of a line, or the command is of no concern here: the kernel's ``tc`` is to do it."""


class LineRefused(Exception):
    """A command that cannot be done; its text is what ``tc`` tells."""


@dataclass
class Discipline:
    """A queueing discipline: `words` are its settings in the words of ``tc``, `classes` the rates of its classes."""

    kind: str
    handle: str
    parent: str
    words: list[str]
    classes: dict[str, float] = field(default_factory=dict[str, float])

    def after(self, word: str) -> str | None:
        """Return the word that follows `word`."""
        return self.words[self.words.index(word) + 1] if word in self.words[:-1] else None


@dataclass
class LineControl:
    """What ``tc`` shows and sets.

    Parameters
    ----------
    fabric
        The fabric whose lines are meant.
    trees
        The disciplines of interfaces that ``tc`` has set, and the shaping that they made.
    """

    fabric: Fabric
    trees: dict[str, tuple[list[Discipline], Shaping]] = field(
        default_factory=dict[str, tuple[list[Discipline], Shaping]]
    )

    def run(self, arguments: list[str]) -> str:
        """Do a command line and return what it prints; raises :class:`NoLine` and :class:`LineRefused`."""
        options = [word for word in arguments if word.startswith("-")]
        words = [word for word in arguments if not word.startswith("-")]
        if not words or "dev" not in words[:-1] or any(option not in ("-s", "-d", "-p") for option in options):
            raise NoLine
        action = words[1] if len(words) > 1 and words[1] != "dev" else "show"
        at = words.index("dev")
        intf = self.fabric.line_end(words[at + 1])
        if intf is None:
            raise NoLine
        rest = words[2:at] + words[at + 2 :]
        if words[0] == "qdisc" and action in ("show", "list", "ls"):
            return self._shown(intf, statistics="-s" in options)
        if words[0] == "class" and action in ("show", "list", "ls"):
            rates = [pair for one in self._tree(intf) for pair in one.classes.items()]
            return "".join(
                f"class htb {name} root prio 0 rate {_rate_text(bps)} ceil {_rate_text(bps)} burst 15Kb cburst 1600b \n"
                for name, bps in rates
            )
        if words[0] == "qdisc":
            self._qdisc(intf, action, rest)
        elif words[0] == "class":
            self._class(intf, action, rest)
        elif action in ("show", "list", "ls"):
            return ""
        else:
            raise LineRefused("filters at the ends of our lines are not there; one class has all frames")
        return ""

    def _tree(self, intf: Intf) -> list[Discipline]:
        """The disciplines that ``tc`` has set, or those that the interface's shaping stands for."""
        shaping: Shaping = intf.shaping
        kept = self.trees.get(intf.name)
        if kept is not None and kept[1] == shaping:
            return kept[0]
        tree: list[Discipline] = []
        parent = "root"
        if shaping.bw:
            tree.append(Discipline("htb", "5:", "root", ["default", "1"], {"5:1": shaping.bw * 1e6}))
            parent = "5:1"
        if shaping.red:
            tree.append(
                Discipline("red", "6:", parent, ["limit", "1000000", *(["ecn"] if shaping.red == "ECN" else [])])
            )
            parent = "6:"
        limit = (shaping.queue or {}).get("limit_frames")
        if shaping.delay or shaping.loss or limit is not None:
            words = ["limit", str(limit or _USUAL_LIMIT)]
            words += ["delay", str(shaping.delay), *([str(shaping.jitter)] if shaping.jitter else [])] * bool(
                shaping.delay
            )
            words += ["loss", f"{shaping.loss:g}%"] if shaping.loss else []
            tree.append(Discipline("netem", "10:", parent, words))
        return tree

    def _shown(self, intf: Intf, statistics: bool) -> str:
        counters = self.fabric.counters(intf)
        dropped = sum(value for name, value in counters.items() if name.startswith("dropped_")) + counters.get(
            "lost", 0
        )
        told = (
            f" Sent {counters.get('link_bytes', 0)} bytes {counters.get('frames', 0)} pkt "
            f"(dropped {dropped}, overlimits 0 requeues 0) \n"
            f" backlog {counters.get('backlog_bytes', 0)}b {counters.get('backlog_frames', 0)}p requeues 0\n"
        )
        lines: list[str] = []
        for one in self._tree(intf) or [Discipline("noqueue", "0:", "root", [])]:
            place = "root refcnt 2" if one.parent == "root" else f"parent {one.parent}"
            lines.append(f"qdisc {one.kind} {one.handle} {place} {_words_of(one)}".rstrip() + " \n")
            lines.append(told if statistics else "")
        return "".join(lines)

    def _qdisc(self, intf: Intf, action: str, words: list[str]) -> None:
        parent, handle, rest = _place(words)
        tree = list(self._tree(intf))
        there = next((one for one in tree if one.parent == parent), None)
        if action in ("del", "delete"):
            if there is None:
                raise LineRefused("Error: Cannot delete qdisc with handle of zero.")
            tree = _without(tree, there)
        elif action not in ("add", "replace", "change"):
            raise LineRefused(f'Command "{action}" is unknown, try "tc qdisc help".')
        else:
            if there is not None and action == "add":
                raise LineRefused("Error: Exclusivity flag on, cannot modify.")
            if there is None and action == "change":
                raise LineRefused("Error: Qdisc not found. To create specify NLM_F_CREATE flag.")
            kind = rest[0] if rest else ""
            made = Discipline(kind, handle or (there.handle if there else f"{0x8001 + len(tree):x}:"), parent, rest[1:])
            if there is not None and there.kind == kind:
                made.classes = there.classes
                tree[tree.index(there)] = made
            else:
                tree = [*(tree if there is None else _without(tree, there)), made]
        self._apply(intf, tree)

    def _class(self, intf: Intf, action: str, words: list[str]) -> None:
        tree = list(self._tree(intf))
        classid = words[words.index("classid") + 1] if "classid" in words[:-1] else ""
        owner = next((one for one in tree if one.handle.split(":")[0] == classid.split(":")[0]), None)
        if owner is None:
            raise LineRefused("Error: Failed to find qdisc with specified handle.")
        if action in ("del", "delete"):
            owner.classes.pop(classid, None)
        else:
            rates = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("rate", "ceil", "ul")]
            if not rates:
                raise LineRefused(f'the class {classid} needs "rate"')
            # A class may borrow up to its ceiling, and nobody else is there.
            owner.classes[classid] = max(_rate_bps(rate) for rate in rates if rate != "rate")
        self._apply(intf, tree)

    def _apply(self, intf: Intf, tree: list[Discipline]) -> None:
        shaping = _shaping_of(tree)
        self.trees[intf.name] = (tree, shaping)
        intf.shaping = shaping
        self.fabric.shaping_changed(intf)


def _without(tree: list[Discipline], gone: Discipline) -> list[Discipline]:
    """Return the disciplines without `gone` and those below it."""
    left = [one for one in tree if one is not gone]
    for below in [
        one for one in left if one.parent.split(":")[0] == gone.handle.split(":")[0] and one.parent != "root"
    ]:
        left = _without(left, below) if below in left else left
    return left


def _place(words: list[str]) -> tuple[str, str, list[str]]:
    """Return parent, handle and what follows them."""
    parent, handle, rest = "", "", list(words)
    while rest and rest[0] in ("root", "parent", "handle", "ingress", "clsact"):
        word = rest.pop(0)
        if word == "root":
            parent = "root"
        elif word in ("ingress", "clsact"):
            raise LineRefused(f"{word} is not there at the ends of our lines")
        elif rest:
            value = rest.pop(0)
            if word == "parent":
                parent = value
            else:
                handle = value if ":" in value else value + ":"
                handle = handle.split(":")[0] + ":"
    if not parent:
        raise LineRefused("give root or parent")
    return parent, handle, rest


def _shaping_of(tree: list[Discipline]) -> Shaping:
    """Return what the disciplines mean for a line."""
    bw: float | None = None
    queue: dict[str, Any] | None = None
    netem: dict[str, Any] = {}
    for one in tree:
        if one.kind in ("htb", "hfsc"):
            wanted = f"{one.handle}{(one.after('default') or '0').removeprefix('0x')}"
            rate = one.classes.get(wanted) or next(iter(one.classes.values()), None)
            bw = rate / 1e6 if rate else bw
        elif one.kind == "tbf":
            rate = _rate_bps(one.after("rate") or "")
            bw = rate / 1e6
            waiting = _size_bytes(one.after("limit") or "0")
            if (latency := one.after("latency")) is not None:
                burst = _size_bytes(one.after("burst") or one.after("buffer") or one.after("maxburst") or "0")
                waiting = round((netem_time_ps(latency) or 0) * rate / 8e12) + burst
            queue = {"kind": "fifo", "limit_bytes": max(waiting, 1600)}
        elif one.kind == "netem":
            netem = _netem(one)
            if netem.get("limit"):
                queue = queue or {"kind": "fifo", "limit_frames": netem["limit"]}
        elif one.kind in _QUEUES:
            queue = _queue(one)
        elif one.kind not in ("noqueue", "pfifo_fast", "fq", "mq"):
            known = ", ".join((*_QUEUES, "netem", "tbf", "htb", "hfsc"))
            raise LineRefused(f"Error: Specified qdisc kind is unknown: {one.kind}; our lines have {known}.")
    return Shaping(bw, netem.get("delay"), netem.get("jitter"), netem.get("loss"), queue)


def _netem(one: Discipline) -> dict[str, Any]:
    found: dict[str, Any] = {}
    words = list(one.words)
    while words:
        word = words.pop(0)
        value = words.pop(0) if words else ""
        if word in ("delay", "latency"):
            found["delay"] = value
            if words and netem_time_ps(words[0]) is not None:
                found["jitter"] = words.pop(0)
                if words and words[0].endswith("%"):
                    words.pop(0)
        elif word in ("loss", "drop"):
            text = words.pop(0) if value == "random" and words else value
            found["loss"] = float(text.rstrip("%"))
            if words and words[0].endswith("%"):
                words.pop(0)
        elif word == "limit":
            found["limit"] = int(value)
        elif word == "rate":
            raise LineRefused("netem rate is not there; give the line its rate by tbf or htb")
        elif word != "distribution":
            raise LineRefused(f'What is "{word}"? Our lines have delay, loss and limit of netem.')
    for name in ("delay", "jitter"):
        if name in found and netem_time_ps(found[name]) is None:
            raise LineRefused(f'Illegal "latency": {found[name]}')
    return found


def _queue(one: Discipline) -> dict[str, Any]:
    limit = one.after("limit")
    if one.kind == "pfifo":
        return {"kind": "fifo", "limit_frames": int(limit or _USUAL_LIMIT)}
    if one.kind == "bfifo":
        return {"kind": "fifo", "limit_bytes": _size_bytes(limit or "1500000")}
    if one.kind == "red":
        least, most = _size_bytes(one.after("min") or "30000"), _size_bytes(one.after("max") or "90000")
        sizes = {"min_bytes": least, "max_bytes": most, "limit_bytes": _size_bytes(limit or "400000")}
        return {
            "kind": "red",
            **sizes,
            "max_probability": float(one.after("probability") or 0.02),
            "ecn": "ecn" in one.words,
        }
    said: dict[str, Any] = {"kind": one.kind}
    if limit is not None:
        said["limit_frames"] = int(limit.rstrip("p"))
    for word in ("target", "interval"):
        if one.kind != "sfq" and (text := one.after(word)) is not None:
            said[f"{word}_ps"] = netem_time_ps(text)
    return said


def _rate_bps(text: str) -> float:
    found = _RATE.fullmatch(text)
    if found is None:
        raise LineRefused(f'Illegal "rate": {text}')
    return float(found[1]) * _PREFIXES[found[2].lower()] * (8 if (found[3] or "").lower() == "bps" else 1)


def _size_bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise LineRefused(f"Illegal size: {text}")
    return int(
        float(found[1]) * _SIZE_PREFIXES[found[2].lower()] / (8 if (found[3] or "").lower().startswith("bit") else 1)
    )


def _rate_text(rate_bps: float) -> str:
    for unit, factor in (("Gbit", 1e9), ("Mbit", 1e6), ("Kbit", 1e3)):
        if rate_bps >= factor and rate_bps % factor == 0:
            return f"{rate_bps / factor:g}{unit}"
    return f"{rate_bps:g}bit"


def _words_of(one: Discipline) -> str:
    if one.kind == "htb":
        usual = (one.after("default") or "0").removeprefix("0x")
        return f"r2q 10 default 0x{usual} direct_packets_stat 0 direct_qlen 1000"
    if one.kind == "netem" and "limit" not in one.words:
        return f"limit {_USUAL_LIMIT} " + " ".join(one.words)
    return " ".join(one.words)
