"""What ``tc qdisc show`` and ``tc class show`` print of a line: the tree in its words, with the line's counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, log2
from typing import Any

from twinnet.mininet.tc_queues import USUAL_LIMIT, red_probability
from twinnet.mininet.tc_tree import ONE_CLASS, Discipline, TcClass, Tree
from twinnet.mininet.tc_words import (
    TICKS_PER_US,
    Settings,
    kept_bytes,
    rate_text,
    red_weight,
    share_text,
    size_text,
    ticks_shown,
    time_text,
)

__all__ = ["Counts", "classes_shown", "disciplines_shown"]

_USUAL_BURST_BYTES = 1600
_LEAST_QUANTUM_BYTES, _MOST_QUANTUM_BYTES = 1000, 200_000
_DEPTH = 8


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


def disciplines_shown(
    tree: Tree,
    line: Counts | None,
    classes: Sequence[Mapping[str, Any]],
    asked: Mapping[str, str],
    details: bool,
) -> str:
    """Return what ``tc qdisc show`` prints of those with the parent and the handle that are `asked` for; with the
    counts of the line, what ``tc -s qdisc show`` prints, and with `details` what ``tc -d`` prints."""
    lines: list[str] = []
    for one in tree.listed() or [Discipline("noqueue", "0:", "root", [])]:
        if asked.get("parent", one.parent) != one.parent or asked.get("handle", one.handle) != one.handle:
            continue
        place = "root refcnt 2" if one.parent == "root" else f"parent {one.parent}"
        lines.append(f"qdisc {one.kind} {one.handle} {place} {_words_of(one, details)}\n")
        if line is not None:
            lines.append(counts_at(tree.places.get(one.parent), line, classes).shown())
    return "".join(lines)


def classes_shown(
    tree: Tree,
    line: Counts | None,
    classes: Sequence[Mapping[str, Any]],
    asked: Mapping[str, str],
    details: bool,
) -> str:
    """Return what ``tc class show`` prints of the class that is `asked` for, or of those of the parent's discipline;
    with the counts of the line, what ``tc -s class show`` prints, and with `details` what ``tc -d`` prints."""
    lines: list[str] = []
    for owner in tree.listed():
        if asked.get("parent", owner.handle).split(":")[0] != owner.major:
            continue
        for one in _classes_of(owner):
            if asked.get("classid", one.classid) != one.classid:
                continue
            inside = tree.at(one.classid) or (tree.at(owner.handle) if owner.kind in ONE_CLASS else None)
            if inside is None and owner.kind == "netem":
                continue
            leaf = f" leaf {inside.handle}" if inside is not None else ""
            lines.append(_class_line(owner, one, leaf, details))
            if line is not None:
                lines.append(counts_at(tree.places.get(one.classid), line, classes).shown())
                if owner.kind == "htb":
                    lines.append(" lended: 0 borrowed: 0 giants: 0\n tokens: 0 ctokens: 0\n")
                lines.append("\n")
    return "".join(lines)


def _classes_of(owner: Discipline) -> list[TcClass]:
    if owner.kind == "prio":
        return [TcClass(f"{owner.major}:{band:x}", owner.handle, 0, 0) for band in range(1, owner.bands() + 1)]
    if owner.kind == "hfsc":
        return _as_hashed([TcClass(owner.handle, "", 0, 0), *owner.classes.values()])
    if owner.kind in ONE_CLASS:
        return [TcClass(f"{owner.handle}1", owner.handle, 0, 0)]
    return _as_hashed(list(owner.classes.values()))


def _as_hashed(classes: list[TcClass]) -> list[TcClass]:
    """Return the classes as the kernel goes through them: by their hash, and those of one hash the newest first. Its
    table grows before it is full to three quarters (Linux ``net/sched/sch_api.c``, `qdisc_class_hash_grow`)."""
    buckets: list[list[TcClass]] = [[] for _ in range(4)]
    for count, one in enumerate(classes, 1):
        buckets[_hash(one.classid) % len(buckets)].insert(0, one)
        if count * 4 > len(buckets) * 3:
            there = [each for bucket in buckets for each in bucket]
            buckets = [[] for _ in range(2 * len(buckets))]
            for each in there:
                buckets[_hash(each.classid) % len(buckets)].insert(0, each)
    return [each for bucket in buckets for each in bucket]


def _hash(classid: str) -> int:
    major, _, low = classid.partition(":")
    number = (int(major or "0", 16) << 16) + int(low or "0", 16)
    number ^= number >> 8
    return number ^ number >> 4


def _class_line(owner: Discipline, one: TcClass, leaf: str, details: bool) -> str:
    above = f"parent {one.parent}" if one.parent.split(":")[-1] else "root"
    if owner.kind in ("prio", *ONE_CLASS):
        return f"class {owner.kind} {one.classid} parent {one.parent}{leaf} \n"
    if owner.kind == "hfsc":
        curves = "".join(f"{name} m1 0bit d 0us m2 {rate_text(rate)} " for name, rate in one.curves.items())
        above = f"parent {one.parent}" if one.parent else "root"
        return f"class hfsc {one.classid} {above}{leaf} {curves}\n"
    inner = any(each.parent == one.classid for each in owner.classes.values())
    priority = "" if inner else f" prio {min(one.priority, 7)}"
    burst = size_text(kept_bytes(one.burst_bytes or _USUAL_BURST_BYTES, one.rate_bps))
    ceil_burst = size_text(kept_bytes(one.ceil_burst_bytes or _USUAL_BURST_BYTES, one.ceil_bps))
    rates = f"rate {rate_text(one.rate_bps)} ceil {rate_text(one.ceil_bps)}"
    bursts, level = f"burst {burst} cburst {ceil_burst}", ""
    if details:
        priority += "" if inner else f" quantum {_quantum(owner, one)}"
        bursts = f"linklayer ethernet burst {burst}/1 mpu 0b cburst {ceil_burst}/1 mpu 0b"
        level = f" level {_level(owner, one) if inner else 0}"
    return f"class htb {one.classid} {above}{leaf}{priority} {rates} {bursts}{level} \n"


def _quantum(owner: Discipline, one: TcClass) -> int:
    """Return what a class may send in its turn, in bytes (Linux ``net/sched/sch_htb.c``, `htb_change_class`)."""
    share = int(one.rate_bps / 8) // owner.settings.get("r2q", 10)
    return one.quantum_bytes or min(max(share, _LEAST_QUANTUM_BYTES), _MOST_QUANTUM_BYTES)


def _level(owner: Discipline, one: TcClass) -> int:
    """Return the level of a class with others below it; that of the topmost is 7."""
    above = owner.classes.get(one.parent)
    return (_DEPTH if above is None else _level(owner, above)) - 1


def _words_of(one: Discipline, details: bool) -> str:
    """The settings in the order and the words of iproute2, some with a space at their end."""
    said = one.settings
    if one.kind == "htb":
        usual = f"{said['default']:#x}" if said.get("default") else "0"
        queue = said.get("direct_qlen", USUAL_LIMIT)
        version = " ver 3.17" if details else ""
        return f"r2q {said.get('r2q', 10)} default {usual} direct_packets_stat 0{version} direct_qlen {queue}"
    if one.kind in _DETAILED:
        return _DETAILED[one.kind](said, details)
    if one.kind in _SHOWN:
        return _SHOWN[one.kind](said)
    if one.kind in ("prio", "pfifo_fast"):
        return f"bands {one.bands()} priomap {' '.join(map(str, one.map()))}"
    return " ".join(one.words)


def _tbf(said: Settings, details: bool) -> str:
    rate, burst = said["rate"], kept_bytes(said["burst"], said["rate"], by_kernel=True)
    limit = said.get("limit") or said["latency"] * rate / 8e12 + said["burst"]
    waiting_ps = limit * 8e12 / rate - burst * 8e12 / rate
    cell, peak = "/1 mpu 0b" if details else "", ""
    if "peakrate" in said:
        name = "mtu" if details else "minburst"
        peak = f" peakrate {rate_text(said['peakrate'])} {name} {size_text(said['mtu'])}{cell}"
    layer = "linklayer ethernet " if details else ""
    return f"rate {rate_text(rate)} burst {size_text(burst)}{cell}{peak} lat {time_text(waiting_ps)} {layer}"


def _netem(said: Settings) -> str:
    words = [f"limit {said.get('limit', USUAL_LIMIT)}"]
    if said.get("delay"):
        # A space more stands before the jitter.
        words.append(f"delay {ticks_shown(said['delay'])}")
        words += [f" {ticks_shown(said['jitter'])}"] if said.get("jitter") else []
    words += [f"loss {share_text(said['loss'])}"] if said.get("loss") else []
    for name, parts in (("state", ("p13", "p31", "p32", "p23", "p14")), ("gemodel", ("p", "r", "1-h", "1-k"))):
        if name in said:
            shares = " ".join(f"{part} {share_text(one)}" for part, one in zip(parts, said[name], strict=True))
            words.append(f"loss {name} {shares}")
    words += [f"{name} {share_text(said[name])}" for name in ("duplicate", "reorder", "corrupt") if said.get(name)]
    words += [f"rate {rate_text(said['rate'])}"] if said.get("rate") else []
    words += ["gap 1"] if said.get("reorder") else []
    return " ".join(words)


def _red(said: Settings, details: bool) -> str:
    limits = "".join(f"{name} {size_text(said[name])} " for name in ("limit", "min", "max"))
    limits += "ecn " if said.get("ecn") else ""
    if not details:
        return limits
    halvings = round(-log2(red_weight(said["min"], said["max"], said["avpkt"], said.get("burst") or None)))
    return f"{limits}ewma {halvings} probability {red_probability(said):g} Scell_log {_cell(said, halvings)}"


def _cell(said: Settings, halvings: int) -> int:
    """Return the logarithm of the step of RED's table for idle times, as ``tc`` chooses it."""
    frame_ticks = int(int(10**6 * (said["avpkt"] / int(said["bandwidth"] / 8))) * TICKS_PER_US)
    longest = 31 / (-log(1 - 2.0**-halvings) / frame_ticks)
    return next(step for step in range(32) if longest / (1 << step) < 512)


def _delays(said: Settings) -> str:
    target, interval = said.get("target", 5 * 10**9), said.get("interval", 10**11)
    return f"target {time_text(target)} interval {time_text(interval)} "


def _codel(said: Settings) -> str:
    return f"limit {said.get('limit', USUAL_LIMIT)}p {_delays(said)}" + ("ecn " if said.get("ecn") else "")


def _fq_codel(said: Settings) -> str:
    head = f"limit {said.get('limit', 10_240)}p flows {said.get('flows', 1024)} quantum {said.get('quantum', 1514)} "
    memory = size_text(said.get("memory_limit", 32 << 20))
    return f"{head}{_delays(said)}memory_limit {memory} {'ecn ' if said.get('ecn', True) else ''}drop_batch 64 "


def _sfq(said: Settings, details: bool) -> str:
    words = f"limit {said.get('limit', 127)}p quantum {size_text(said.get('quantum', 1514))} "
    words += "depth 127 " + (f"flows {min(said.get('limit', 128), 128)} " if details else "")
    words += f"divisor {said.get('divisor', 1024)} "
    return words + (f"perturb {said['perturb'] // 10**12}sec " if said.get("perturb") else "")


_FQ = (
    "limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b "
    "low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop "
)
_SHOWN: dict[str, Callable[[Settings], str]] = {
    "netem": _netem,
    "hfsc": lambda said: f"default {said['default']:x} " if said.get("default") else "",
    "fq": lambda _said: _FQ,
    "pfifo": lambda said: f"limit {said.get('limit', USUAL_LIMIT)}p",
    "bfifo": lambda said: f"limit {size_text(said.get('limit', 1_514_000))}",
    "codel": _codel,
    "fq_codel": _fq_codel,
    "noqueue": lambda _said: "",
}
_DETAILED: dict[str, Callable[[Settings, bool], str]] = {"tbf": _tbf, "red": _red, "sfq": _sfq}
"""What shows more with ``-d``."""
