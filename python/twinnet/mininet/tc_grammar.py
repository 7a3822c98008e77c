"""The grammar of ``tc``: what the words of each discipline and class mean, and what ``tc`` says of others.

Texts and exit statuses are those of iproute2: 1 for what it cannot read, 255 for a line that ends too early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twinnet.mininet.tc_netem import read_netem
from twinnet.mininet.tc_words import (
    LineRefused,
    Settings,
    matching,
    number,
    rate_bps,
    red_weight,
    seconds,
    share,
    size_bytes,
    taken,
    time_ps,
)

__all__ = ["read_class", "read_discipline"]

_Reader = Callable[[str], Any]
_UNREADABLE = 1


@dataclass(frozen=True)
class _Grammar:
    """The words of a discipline or class.

    Parameters
    ----------
    values
        Words that a value follows, with what they are called and how the value is read.
    flags
        Words that stand alone, with what they mean.
    unknown, illegal
        What ``tc`` says of another word, and of a value that it cannot read.
    twice
        What ``tc`` says of a word that is there twice; empty: the last one counts.
    short
        Words that may be cut short, in the order in which ``tc`` looks for them.
    """

    values: Mapping[str, tuple[str, _Reader]]
    flags: Mapping[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    unknown: str = 'What is "{word}"?'
    illegal: str = 'Illegal "{word}"'
    twice: str = ""
    short: tuple[str, ...] = ()

    def read(self, kind: str, words: list[str]) -> Settings:
        """Return what `words` set."""
        found: Settings = {}
        given = list(words)
        while given:
            word = given.pop(0)
            if word not in self.values:
                word = matching(word, self.short) or word
            if word in self.flags:
                name, value = self.flags[word]
            elif word in self.values:
                name, reader = self.values[word]
                if name in found and self.twice:
                    raise LineRefused(self.twice.format(word=word), _UNREADABLE)
                text = taken(given)
                try:
                    value = reader(text)
                except ValueError:
                    raise LineRefused(self.illegal.format(word=word, text=text, kind=kind), _UNREADABLE) from None
            else:
                there = [name for name in (*self.values, *self.flags) if name not in _NOT_THERE.get(kind, ())]
                known = ", ".join(there) or "no words"
                raise LineRefused(f"{self.unknown.format(word=word, kind=kind)}\nOur {kind} has {known}.", _UNREADABLE)
            found[name] = value
        return found


def read_discipline(kind: str, words: list[str]) -> Settings:
    """Return what the words of a discipline set; raises :class:`LineRefused` for what ``tc`` does not read, and for
    what no line can do."""
    if kind == "netem":
        return read_netem(words)
    if kind == "prio":
        return _prio(words)
    if kind not in _DISCIPLINES:
        return {}
    found = _DISCIPLINES[kind].read(kind, words)
    if kind in _CHECKS:
        _CHECKS[kind](found)
    if given := [name for name in _NOT_THERE.get(kind, ()) if name in found]:
        raise LineRefused(f"{kind} {', '.join(given)} is not there at the ends of our lines{_REMEDIES.get(kind, '')}")
    return found


def _check_red(found: Settings) -> None:
    """Fill in what is not given, as ``tc`` does, and refuse what no average can follow."""
    if not (found.get("limit") and found.get("avpkt")):
        raise LineRefused("RED: Required parameter (limit, avpkt) is missing", _UNREADABLE)
    least, most, frame = found.get("min", 0), found.get("max", 0), found["avpkt"]
    most = most or (least * 3 if least else found["limit"] // 4)
    least = least or most // 3
    told = "" if found.get("bandwidth") else "RED: set bandwidth to 10Mbit\n"
    found |= {"min": least, "max": most, "bandwidth": found.get("bandwidth") or 10_000_000.0}
    try:
        red_weight(least, most, frame, found.get("burst") or None)
    except LineRefused as refused:
        raise LineRefused(f"{told}{refused}", _UNREADABLE) from None
    if most < least:
        raise LineRefused(f"{told}RED: failed to calculate probability.", _UNREADABLE)


def _check_codel(found: Settings) -> None:
    """Leave out what is 0, for which the kernel keeps what is usual."""
    for name in ("limit", "flows", "quantum", "target", "interval"):
        if name in found and not found[name]:
            del found[name]
    if "quantum" in found:
        found["quantum"] = max(found["quantum"], _LEAST_QUANTUM_BYTES)
    _check_limit(found)


def _check_limit(found: Settings) -> None:
    for name in ("limit", "memory_limit"):
        if found.get(name) == 0:
            raise LineRefused(f"{name} 0 is not there: a queue of nothing sends nothing")


def _check_sfq(found: Settings) -> None:
    for name in ("quantum", "divisor"):
        if found.get(name) == 0:
            del found[name]
    if found.get("limit", 2) < 2:
        raise LineRefused('Illegal "limit", must be > 1', _UNREADABLE)
    divisor = found.get("divisor", 1)
    if divisor & divisor - 1 or divisor > 65536:
        raise LineRefused("RTNETLINK answers: Invalid argument")
    if "limit" in found:
        found["limit"] = min(found["limit"], _SFQ_FRAMES)


def _check_htb(found: Settings) -> None:
    if "offload" in found:
        raise LineRefused("Error: hw-tc-offload ethtool feature flag must be on.")


def read_class(kind: str, words: list[str]) -> Settings:
    """Return what the words of a class of ``htb`` or ``hfsc`` set; the rates of ``hfsc`` by the names of its curves."""
    if kind == "hfsc":
        return _curves(words)
    found = _HTB_CLASS.read(f"class of {kind}", words)
    if found.get("rate", 0) < 8:
        raise LineRefused('"rate" is required.', _UNREADABLE)
    _check_sizes(kind, found)
    return found


def _curves(words: list[str]) -> Settings:
    found: Settings = {}
    given = list(words)
    while given:
        name = given.pop(0)
        if name not in _CURVES:
            raise LineRefused(f'HFSC: What is "{name}" ?\nOur hfsc has {", ".join(_CURVES)}.', _UNREADABLE)
        illegal = f'HFSC: Illegal "{name}"'
        word = taken(given)
        if word in ("m1", "d", "umax", "dmax"):
            raise LineRefused(f"hfsc {name} {word} is not there: our curves have one rate; write {name} rate 1mbit")
        if word not in ("rate", "m2"):
            raise LineRefused(illegal, _UNREADABLE)
        try:
            found[name] = rate_bps(taken(given))
        except ValueError:
            raise LineRefused(f'HFSC: Illegal "{word}"\n{illegal}', _UNREADABLE) from None
        if found[name] < 8:
            raise LineRefused(f"HFSC: Service Curve has two zero slopes\n{illegal}", _UNREADABLE)
    if not found:
        raise LineRefused("HFSC: no parameters given", _UNREADABLE)
    if "ul" in found and not {"sc", "ls"} & found.keys():
        raise LineRefused("HFSC: Upper-limit Service Curve without Link-Share Service Curve", _UNREADABLE)
    return found


def _check_sizes(kind: str, found: Settings) -> None:
    """Refuse what counts frames otherwise than as they are."""
    for name in ("mpu", "overhead"):
        if found.get(name):
            raise LineRefused(f"{kind} {name} is not there: our lines count the bytes of frames as they are")
    if found.get("linklayer", "ethernet") != "ethernet":
        raise LineRefused(f"{kind} linklayer {found['linklayer']} is not there: our lines have ethernet")


def _check_tbf(found: Settings) -> None:
    if {"latency", "limit"} <= found.keys():
        raise LineRefused('tbf: specifying both "latency" and "limit" is not allowed', _UNREADABLE)
    lacks = [f'tbf: the "{name}" parameter is mandatory.' for name in ("rate", "burst") if not found.get(name)]
    if found.get("peakrate") and not found.get("mtu"):
        lacks.append('tbf: when "peakrate" is specified, "mtu" must also be specified.')
    if not {"latency", "limit"} & found.keys():
        lacks.append('tbf: either "limit" or "latency" is required.')
    if lacks:
        raise LineRefused("\n".join(lacks), _UNREADABLE)
    _check_sizes("tbf", found)
    if found["burst"] < _LEAST_BURST_BYTES:
        said = f"tbf burst {found['burst']} is below a frame of {_LEAST_BURST_BYTES} bytes, which would never be sent"
        raise LineRefused(f"{said}; write burst 1600 or more")
    if found.get("peakrate") and found["mtu"] > _MOST_PEAK_BYTES:
        said = f"tbf minburst {found['mtu']} is not there: at the peak rate our lines send frame after frame"
        raise LineRefused(f"{said}; write minburst 1540")


def _prio(words: list[str]) -> Settings:
    """``bands N`` and ``priomap`` with up to 16 bands, which may be anywhere behind it."""
    found: Settings = {"bands": 3}
    given = list(words)
    while given:
        word = given.pop(0)
        name = word if word == "bands" or "priomap" not in found else "priomap"
        try:
            if name == "bands":
                found["bands"] = number(taken(given), 10)
            elif word == "priomap":
                found["priomap"] = []
            elif word == "multiqueue" or "priomap" not in found:
                raise LineRefused(f'What is "{word}"?\nOur prio has bands, priomap.', _UNREADABLE)
            else:
                found["priomap"] = [*found["priomap"], _band(number(word, 10), found)]
        except ValueError:
            said = 'bands"' if name == "bands" else 'priomap" element'
            raise LineRefused(f'Illegal "{said}', _UNREADABLE) from None
    if not 2 <= found["bands"] <= _MOST_BANDS or any(band >= found["bands"] for band in found.get("priomap", ())):
        raise LineRefused("RTNETLINK answers: Invalid argument")
    return found


def _band(band: int, found: Settings) -> int:
    if band >= found["bands"]:
        raise LineRefused('"priomap" element is out of bands', _UNREADABLE)
    if len(found["priomap"]) >= _MOST_BANDS:
        raise LineRefused('"priomap" index > TC_PRIO_MAX=15', _UNREADABLE)
    return band


def _probability(text: str) -> float:
    if not 0 < share(text) <= 0.01:
        raise ValueError(text)
    return float(text)


def _hexadecimal(text: str) -> int:
    return number(text, 16)


_CURVES = ("sc", "rt", "ls", "ul")
_LEAST_BURST_BYTES = 1514
_MOST_PEAK_BYTES = 2000
_MOST_BANDS = 16
_LEAST_QUANTUM_BYTES = 256
_SFQ_FRAMES = 127 * 128
"""``sfq`` has 128 flows of 127 frames at most (Linux ``net/sched/sch_sfq.c``)."""
_LIMIT = {"limit": ("limit", number)}
_FIFO_UNKNOWN = '{kind}: unknown parameter "{word}"'
_FIFO_ILLEGAL = '{kind}: Illegal value for "{word}": "{text}"'
_BURST = dict.fromkeys(("burst", "buffer", "maxburst"), ("burst", size_bytes))
_SIZES: dict[str, tuple[str, _Reader]] = {
    "mpu": ("mpu", size_bytes),
    "overhead": ("overhead", number),
    "linklayer": ("linklayer", str),
}
_DELAYS = {word: (word, time_ps) for word in ("target", "interval", "ce_threshold")}
_ECN = {"ecn": ("ecn", True), "noecn": ("ecn", False)}
_HTB_CLASS = _Grammar(
    {
        "rate": ("rate", rate_bps),
        "ceil": ("ceil", rate_bps),
        **_BURST,
        **dict.fromkeys(("cburst", "cbuffer", "cmaxburst"), ("cburst", size_bytes)),
        "prio": ("prio", number),
        "quantum": ("quantum", size_bytes),
        "mtu": ("mtu", number),
        **_SIZES,
    },
    twice='Double "{word}" spec',
    short=("prio", "mtu", "mpu", "overhead", "linklayer", "quantum", "burst", "cburst"),
)
_FQ_WORDS = (
    *("limit", "flow_limit", "quantum", "initial_quantum"),
    *("buckets", "refill_delay", "orphan_mask", "timer_slack"),
)
_DISCIPLINES: dict[str, _Grammar] = {
    "tbf": _Grammar(
        {
            "rate": ("rate", rate_bps),
            "peakrate": ("peakrate", rate_bps),
            **_BURST,
            **dict.fromkeys(("mtu", "minburst"), ("mtu", size_bytes)),
            "limit": ("limit", size_bytes),
            "latency": ("latency", time_ps),
            **_SIZES,
        },
        unknown='tbf: unknown parameter "{word}"',
        illegal='tbf: illegal value for "{word}": "{text}"',
        twice='tbf: duplicate "{word}" specification',
    ),
    "htb": _Grammar(
        {
            "default": ("default", _hexadecimal),
            "r2q": ("r2q", number),
            "debug": ("debug", str),
            "direct_qlen": ("direct_qlen", number),
        },
        {"offload": ("offload", True)},
        short=("r2q", "default", "debug", "direct_qlen", "offload"),
    ),
    "hfsc": _Grammar(
        {"default": ("default", _hexadecimal)},
        unknown='HFSC: What is "{word}" ?',
        illegal='HFSC: Illegal "{word}"',
    ),
    "pfifo": _Grammar({"limit": ("limit", size_bytes)}, unknown=_FIFO_UNKNOWN, illegal=_FIFO_ILLEGAL),
    "bfifo": _Grammar({"limit": ("limit", size_bytes)}, unknown=_FIFO_UNKNOWN, illegal=_FIFO_ILLEGAL),
    "red": _Grammar(
        {
            **{word: (word, size_bytes) for word in ("limit", "min", "max", "avpkt")},
            "burst": ("burst", number),
            "bandwidth": ("bandwidth", rate_bps),
            "probability": ("probability", _probability),
        },
        {word: (word, True) for word in ("ecn", "harddrop", "nodrop", "adaptive")},
    ),
    "codel": _Grammar({**_LIMIT, **_DELAYS}, _ECN),
    "fq_codel": _Grammar(
        {
            **_LIMIT,
            "flows": ("flows", number),
            "quantum": ("quantum", size_bytes),
            "memory_limit": ("memory_limit", size_bytes),
            "drop_batch": ("drop_batch", number),
            "ce_threshold_selector": ("ce_threshold_selector", str),
            **_DELAYS,
        },
        _ECN,
    ),
    "sfq": _Grammar(
        {
            **{word: (word, number) for word in ("limit", "divisor", "depth", "flows", "redflowlimit", "min", "max")},
            **{word: (word, size_bytes) for word in ("quantum", "avpkt")},
            "perturb": ("perturb", seconds),
            "burst": ("burst", number),
            "probability": ("probability", _probability),
        },
        {word: (word, True) for word in ("headdrop", "harddrop", "ecn")},
    ),
    "fq": _Grammar(
        {
            **{word: (word, str) for word in _FQ_WORDS},
            **{word: (word, rate_bps) for word in ("maxrate", "low_rate_threshold")},
            "ce_threshold": ("ce_threshold", time_ps),
        },
        {"pacing": ("pacing", True), "nopacing": ("nopacing", True)},
    ),
    **{kind: _Grammar({}) for kind in ("noqueue", "pfifo_fast", "mq")},
}
_CHECKS: dict[str, Callable[[Settings], None]] = {
    "tbf": _check_tbf,
    "pfifo": _check_limit,
    "bfifo": _check_limit,
    "red": _check_red,
    "codel": _check_codel,
    "fq_codel": _check_codel,
    "sfq": _check_sfq,
    "htb": _check_htb,
}
_NOT_THERE = {
    "red": ("adaptive", "harddrop", "nodrop"),
    "codel": ("ce_threshold",),
    "fq_codel": ("ce_threshold", "ce_threshold_selector", "drop_batch"),
    "sfq": (
        *("depth", "flows", "redflowlimit", "min", "max", "avpkt", "burst", "probability"),
        *("headdrop", "harddrop", "ecn"),
    ),
    "htb": ("debug",),
    "fq": (*_FQ_WORDS, "maxrate", "low_rate_threshold", "ce_threshold", "pacing", "nopacing"),
}
"""What ``tc`` takes and our lines do not have."""
_REMEDIES = {"fq": ": fq leaves a line as it is; use tbf or htb for a rate"}
