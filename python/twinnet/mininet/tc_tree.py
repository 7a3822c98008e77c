"""The disciplines, classes and filters that ``tc`` has set at an interface, and what they mean for its line.

A line has a rate, a delay, losses and a queue. Where one class has all frames, its rate is the line's. Where filters or
several classes choose, the queue is one with classes (:class:`twinnet.qos.Htb` or :class:`twinnet.qos.Priority`)
behind rules (:class:`twinnet.qos.Classify`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinnet.mininet.shaping import Shaping
from twinnet.mininet.tc_filters import Filter
from twinnet.mininet.tc_grammar import read_discipline
from twinnet.mininet.tc_queues import (
    SHALLOWEST_BURST_BYTES,
    USUAL_LIMIT,
    bucket_queue,
    delay_queue,
    impairments,
    plain_queue,
    tbf_queue,
)
from twinnet.mininet.tc_words import LineRefused, Settings

__all__ = ["KINDS", "ONE_CLASS", "WITHOUT_EFFECT", "Discipline", "TcClass", "Tree"]

ONE_CLASS = ("netem", "red", "tbf")
"""What has one discipline inside, whose class's number does not count."""

_CLASSFUL = ("htb", "hfsc", "prio")
KINDS = ("pfifo", "bfifo", "codel", "fq_codel", "sfq", "red", "netem", "tbf", *_CLASSFUL)
"""The disciplines that our lines have."""
WITHOUT_EFFECT = ("noqueue", "pfifo_fast", "fq", "mq")
_USUAL_MAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
_HIGHEST_RATE_BPS = 10**15
_FRAME_AFTER_FRAME_BYTES = 3200
"""Up to this burst of a class, two frames, its frames follow each other at its rate, as those of a line do."""
_GOLDEN_RATIO = 0x61C88647
_KEPT = {
    "codel": ("limit", "target", "interval", "ecn"),
    "fq_codel": ("limit", "flows", "quantum", "target", "interval", "memory_limit", "ecn"),
    "netem": ("rate", "corrupt", "distribution"),
}


@dataclass
class TcClass:
    """A class of a discipline with classes: its rates in bit/s, its bursts in bytes at both, its priority, what it
    may send in its turn where that is given, and the rates of the curves of an ``hfsc`` as they are shown."""

    classid: str
    parent: str
    rate_bps: float
    ceil_bps: float
    burst_bytes: int | None = None
    priority: int = 0
    ceil_burst_bytes: int | None = None
    quantum_bytes: int = 0
    curves: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Discipline:
    """A queueing discipline: `words` are its settings in the words of ``tc``, which are read once."""

    kind: str
    handle: str
    parent: str
    words: list[str]
    classes: dict[str, TcClass] = field(default_factory=dict[str, TcClass])
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.settings = read_discipline(self.kind, self.words)

    @property
    def major(self) -> str:
        """The number before the colon of its handle."""
        return self.handle.split(":")[0]

    def owns(self, classid: str) -> bool:
        """Return whether `classid` is one of its classes' names."""
        return classid not in ("", "root") and classid.split(":")[0] == self.major

    def bands(self) -> int:
        """Return how many bands a ``prio`` has."""
        return self.settings.get("bands", 3)

    def class_names(self) -> list[str]:
        """Return the names of its classes."""
        if self.kind == "prio":
            return [f"{self.major}:{band:x}" for band in range(1, self.bands() + 1)]
        return list(self.classes)

    def changed(self, words: list[str]) -> Discipline:
        """Return it with other words; what these do not say stays where the kernel keeps it."""
        made = Discipline(self.kind, self.handle, self.parent, words, self.classes)
        kept = {name: self.settings[name] for name in _KEPT.get(self.kind, ()) if name in self.settings}
        made.settings = kept | made.settings
        return made

    def map(self) -> tuple[int, ...]:
        """Return the bands of the priorities of a ``prio``."""
        given = tuple(self.settings.get("priomap", ()))
        return given + _USUAL_MAP[len(given) :]

    def usual_class(self) -> str | None:
        """Return the class of frames that no filter chooses; ``None``: they pass all classes by."""
        if self.kind == "prio":
            # Frames that a switch forwards have the priority 0.
            return f"{self.major}:{self.map()[0] + 1:x}"
        wanted = self.settings.get("default", 0)
        return next((name for name in self.classes if minor(name) == wanted), None)


def minor(classid: str) -> int:
    """Return the number behind the colon."""
    return int(classid.partition(":")[2] or "0", 16)


@dataclass
class Tree:
    """What ``tc`` has set at an interface.

    Parameters
    ----------
    disciplines
        Its disciplines, in the order in which they were made.
    filters
        Its filters.
    places
        Where the classes stand in the counters of the port: the numbers to go by. :meth:`shaping` finds them.
    """

    disciplines: list[Discipline] = field(default_factory=list[Discipline])
    filters: list[Filter] = field(default_factory=list[Filter])
    places: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def at(self, parent: str) -> Discipline | None:
        """Return the discipline at `parent`: ``root``, a class or a discipline's handle."""
        return next((one for one in self.disciplines if one.parent == parent), None)

    def listed(self) -> list[Discipline]:
        """Return its disciplines as the kernel goes through them: the root, then the others by the hash of their
        handles, those of one hash the newest first (Linux ``net/sched/sch_api.c``, `qdisc_hash_add`)."""
        others = [one for one in reversed(self.disciplines) if one.parent != "root"]
        others.sort(key=lambda one: (int(one.major, 16) << 16) * _GOLDEN_RATIO % 2**32 >> 28)
        return [one for one in self.disciplines if one.parent == "root"] + others

    def owner(self, classid: str) -> Discipline | None:
        """Return the discipline that the class belongs to."""
        return next((one for one in self.disciplines if one.owns(classid)), None)

    def without(self, gone: Discipline) -> Tree:
        """Return the tree without `gone`, those below it and their filters."""
        left = [one for one in self.disciplines if one is not gone]
        tree = Tree(left, [one for one in self.filters if not gone.owns(one.parent)])
        for below in left:
            if gone.owns(below.parent):
                tree = tree.without(below)
        return tree

    def shaping(self) -> Shaping:
        """Return what the tree means for a line; raises :class:`LineRefused` for what no line can do."""
        self.places = {}
        bw: float | None = None
        queue: dict[str, Any] | None = None
        netem: Settings = {}
        bucket: tuple[float, int] | None = None
        one, place = self.at("root"), "root"
        while one is not None:
            if one.kind == "netem":
                netem = one.settings
                place = one.handle
            elif one.kind == "tbf":
                # Between the bucket and the wire there is the peak's: that of the line, where one frame has tokens.
                bw, place = one.settings.get("peakrate", 0) / 1e6 or bw, one.handle
                bucket, queue = (one.settings["rate"], one.settings["burst"]), tbf_queue(one.settings)
            elif one.kind in ("htb", "hfsc") and not (self._filters_of(one) and one.classes):
                place = one.usual_class() or ""
                place = "" if _children(one, place) else place
                burst = self._burst_of(one, one.classes[place]) if place else 0
                if burst > _FRAME_AFTER_FRAME_BYTES:
                    bucket = (self._rate_of(one, one.classes[place]), burst)
                else:
                    bw = self._rate_of(one, one.classes[place]) / 1e6 if place else bw
            else:
                queue = None if one.kind in WITHOUT_EFFECT else self._queue_of(one, ())
                one = None if one.kind in _CLASSFUL else self._netem_inside(one)
                continue
            one = self._inside(one, place)
        if queue is None and "limit" in netem:
            queue = {"kind": "fifo", "limit_frames": netem["limit"]}
        if bucket is not None:
            queue = bucket_queue(*bucket, queue)
        if netem.get("rate"):
            bw = min(bw or netem["rate"] / 1e6, netem["rate"] / 1e6)
        loss = round(netem["loss"] * 100, 10) if "loss" in netem else None
        delay, jitter = netem.get("delay_text"), netem.get("jitter_text")
        return Shaping(bw, delay, jitter, loss, queue, impairments=impairments(netem))

    def _netem_inside(self, one: Discipline) -> Discipline | None:
        """The ``netem`` inside of a queue: the line's delay, as Mininet puts it below RED."""
        inside = self._inside(one, one.handle)
        if inside is not None and inside.kind != "netem":
            raise LineRefused(f"{inside.kind} inside of {one.kind} is not there; netem is")
        return inside

    def _inside(self, one: Discipline, place: str) -> Discipline | None:
        """The discipline in `place`: a class of `one`, or its handle, when it has but one class."""
        if place != one.handle:
            return self.at(place)
        return next((other for other in self.disciplines if one.owns(other.parent)), None)

    def _filters_of(self, one: Discipline) -> list[Filter]:
        """The filters of `one`, those first that are tried first."""
        root = self.at("root") is one
        found = [each for each in self.filters if one.owns(each.parent) or (root and not each.parent)]
        return sorted(found, key=lambda each: (each.priority, each.number))

    def _rate_of(self, one: Discipline, wanted: TcClass) -> float:
        """What a class may send at most, in bit/s. One without a class above it has nobody to borrow from, so that its
        ceiling does not count (Linux ``net/sched/sch_htb.c``, `htb_activate_prios`)."""
        above = one.classes.get(wanted.parent)
        if above is None:
            return wanted.rate_bps
        return max(min(wanted.ceil_bps, self._rate_of(one, above)), wanted.rate_bps)

    def _burst_of(self, one: Discipline, wanted: TcClass) -> int:
        """What a class may send at once, in bytes: it has to have tokens of its ceiling, and of its own rate or of one
        above it that lends."""
        most = wanted.ceil_burst_bytes or 0
        above = one.classes.get(wanted.parent)
        if above is None or self._rate_of(one, wanted) <= wanted.rate_bps:
            return min(most, wanted.burst_bytes or 0)
        return min(most, self._burst_of(one, above))

    def _queue_of(self, one: Discipline, place: tuple[int, ...]) -> dict[str, Any]:
        """The queue that `one` is, in the form of the lab protocol; its classes stand at `place` in the counters."""
        if one.kind == "prio":
            return self._priority(one, place)
        if one.kind in ("htb", "hfsc"):
            return self._shared(one, place)
        inside = self._inside(one, one.handle)
        if one.kind == "tbf":
            queue = tbf_queue(one.settings) if inside is None else self._queue_of(inside, (*place, 0))
            bucket = bucket_queue(one.settings["rate"], one.settings["burst"], queue)
            if "peakrate" not in one.settings:
                return bucket
            # The inner bucket is the peak's: frames have to have tokens of both.
            peak = bucket_queue(one.settings["peakrate"], one.settings["mtu"], queue)
            return {**bucket, "queue": peak}
        if one.kind == "netem":
            if inside is not None:
                said = f"{inside.kind} inside of netem in one of several classes is not there"
                raise LineRefused(f"{said}; write them the other way round, netem inside of {inside.kind}")
            return delay_queue(one.settings)
        return plain_queue(one.kind, one.settings)

    def _inner_queue(self, classid: str, place: tuple[int, ...]) -> dict[str, Any] | None:
        inside = self.at(classid)
        return None if inside is None or inside.kind in WITHOUT_EFFECT else self._queue_of(inside, place)

    def _priority(self, one: Discipline, place: tuple[int, ...]) -> dict[str, Any]:
        names = [f"{one.major}:{band:x}" for band in range(1, one.bands() + 1)]
        self.places |= {name: (*place, band) for band, name in enumerate(names)}
        usual: dict[str, Any] = {"kind": "fifo", "limit_frames": USUAL_LIMIT}
        bands = [self._inner_queue(name, (*place, band)) or usual for band, name in enumerate(names)]
        otherwise = one.map()[0]
        # Of a class only the number counts, and one without a band is as none (Linux net/sched/sch_prio.c).
        chosen = [(each, minor(each.flowid) - 1) for each in self._filters_of(one)]
        rules = [each.rule(band if 0 <= band < len(bands) else otherwise) for each, band in chosen]
        return {
            "kind": "classify",
            "rules": rules,
            "otherwise": otherwise,
            "queue": {"kind": "priority", "bands": bands},
        }

    def _shared(self, one: Discipline, place: tuple[int, ...]) -> dict[str, Any]:
        """The queue of an ``htb`` or ``hfsc``. Frames without a class go before all others, at no rate."""
        usual = one.usual_class()
        if usual is not None and _children(one, usual):
            usual = None
        inner = place if usual is not None else (*place, 1)
        tops = [each for each in one.classes.values() if each.parent not in one.classes]
        rate = sum(each.rate_bps for each in tops)
        if len(tops) == 1 and (below := _children(one, tops[0].classid)):
            self.places[tops[0].classid] = inner
            tops = below
        queue = self._level(one, tops, rate, inner, usual)
        if usual is not None:
            return queue
        leaves = [name for name in one.classes if not _children(one, name)]
        rules = [each.rule(1 if each.flowid in leaves else 0) for each in self._filters_of(one)]
        bands = [{"kind": "fifo", "limit_frames": USUAL_LIMIT}, queue]
        return {"kind": "classify", "rules": rules, "otherwise": 0, "queue": {"kind": "priority", "bands": bands}}

    def _level(
        self, one: Discipline, members: Sequence[TcClass], rate: float, place: tuple[int, ...], usual: str | None
    ) -> dict[str, Any]:
        """The classes that share `rate`, those below them inside."""
        whole = min(max(rate, *(each.rate_bps for each in members)), _HIGHEST_RATE_BPS)
        queues: dict[str, Any] = {}
        number_of: dict[str, int] = {}
        for number, each in enumerate(members):
            here = (*place, number)
            self.places[each.classid] = here
            if each.ceil_burst_bytes not in (None, each.burst_bytes):
                said = "write the same burst and cburst, or burst alone, where several classes share"
                raise LineRefused(f"cburst {each.ceil_burst_bytes} of the class {each.classid} is not there; {said}")
            number_of |= dict.fromkeys(_leaves(one, each.classid), number)
            most = min(self._rate_of(one, each), whole)
            below = _children(one, each.classid)
            inside = self._level(one, below, most, here, usual) if below else self._inner_queue(each.classid, here)
            queues[str(number)] = {
                "min_rate_bps": round(min(each.rate_bps, most)),
                "max_rate_bps": round(most),
                "burst_bytes": max(each.burst_bytes, SHALLOWEST_BURST_BYTES) if each.burst_bytes else None,
                "priority": min(each.priority, 7),
                "queue": inside,
            }
        # A filter that chooses no class that sends is as none (Linux net/sched/sch_htb.c, htb_classify).
        sending = {name for name in one.classes if not _children(one, name)}
        chosen = [(each, each.flowid if each.flowid in sending else usual) for each in self._filters_of(one)]
        rules = [each.rule(number_of[name]) for each, name in chosen if name in number_of]
        shared = {"kind": "htb", "rate_bps": round(whole), "queues": queues}
        return {"kind": "classify", "rules": rules, "otherwise": number_of.get(usual or "", 0), "queue": shared}


def _children(one: Discipline, classid: str) -> list[TcClass]:
    return [each for each in one.classes.values() if each.parent == classid]


def _leaves(one: Discipline, classid: str) -> Iterator[str]:
    """The classes without others below them, at and below `classid`."""
    below = _children(one, classid)
    if not below:
        yield classid
    for each in below:
        yield from _leaves(one, each.classid)
