"""The grammar of ``tc``: what the words of each discipline and class mean, and what ``tc`` says of others.

Texts and exit statuses are those of iproute2: 1 for what it cannot read, 255 for a line that ends too early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twinnet.mininet.tc_words import LineRefused, number, rate_bps, seconds, share, size_bytes, time_ps

__all__ = ["Settings", "read_class", "read_discipline", "taken"]

Settings = dict[str, Any]
_Reader = Callable[[str], Any]
_UNREADABLE, _INCOMPLETE = 1, 255


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
    """

    values: Mapping[str, tuple[str, _Reader]]
    flags: Mapping[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    unknown: str = 'What is "{word}"?'
    illegal: str = 'Illegal "{word}"'
    twice: str = ""

    def read(self, kind: str, words: list[str]) -> Settings:
        """Return what `words` set."""
        found: Settings = {}
        given = list(words)
        while given:
            word = given.pop(0)
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
                known = ", ".join((*self.values, *self.flags)) or "no words"
                raise LineRefused(f"{self.unknown.format(word=word, kind=kind)}\nOur {kind} has {known}.", _UNREADABLE)
            found[name] = value
        return found


def taken(given: list[str]) -> str:
    """Take the next of the words `given`."""
    if not given:
        raise LineRefused('Command line is not complete. Try option "help"', _INCOMPLETE)
    return given.pop(0)


def read_discipline(kind: str, words: list[str]) -> Settings:
    """Return what the words of a discipline set; raises :class:`LineRefused` for what ``tc`` does not read, and for
    what no line can do."""
    if kind == "netem":
        return _netem(words)
    if kind == "prio":
        return _prio(words)
    if kind not in _DISCIPLINES:
        return {}
    found = _DISCIPLINES[kind].read(kind, words)
    if kind == "tbf":
        _check_tbf(found)
    if kind == "red" and not {"limit", "avpkt"} <= found.keys():
        raise LineRefused("RED: Required parameter (limit, avpkt) is missing", _UNREADABLE)
    if kind == "fq" and found:
        said = ", ".join(found)
        raise LineRefused(f"fq {said} is not there: our fq only keeps what the line does; use tbf or htb for a rate")
    return found


def read_class(kind: str, words: list[str]) -> Settings:
    """Return what the words of a class of ``htb`` or ``hfsc`` set; the rates of ``hfsc`` by the names of its curves."""
    if kind == "hfsc":
        return _curves(words)
    found = _HTB_CLASS.read(f"class of {kind}", words)
    if "rate" not in found:
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
        word = taken(given)
        if word in ("m1", "d", "umax", "dmax"):
            raise LineRefused(f"hfsc {name} {word} is not there: our curves have one rate; write {name} rate 1mbit")
        try:
            if word not in ("rate", "m2"):
                raise ValueError(word)
            found[name] = rate_bps(taken(given))
        except ValueError:
            raise LineRefused(f'HFSC: Illegal "{name}"', _UNREADABLE) from None
    if not {"sc", "rt", "ls"} & found.keys():
        raise LineRefused("HFSC: no scheduling parameters", _UNREADABLE)
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
    """``bands N`` and ``priomap`` with up to 16 bands, which take all numbers that follow."""
    found: Settings = {}
    given = list(words)
    while given:
        word = given.pop(0)
        try:
            if word == "bands":
                found["bands"] = number(taken(given))
            elif word == "priomap":
                found["priomap"] = [number(one) for one in given]
                given = []
            else:
                raise LineRefused(f'What is "{word}"?\nOur prio has bands, priomap.', _UNREADABLE)
        except ValueError:
            raise LineRefused(f'Illegal "{word}"{" element" if word == "priomap" else ""}', _UNREADABLE) from None
    bands = found.get("bands", 3)
    if not 2 <= bands <= 16 or any(band >= bands for band in found.get("priomap", ())):
        raise LineRefused("RTNETLINK answers: Invalid argument")
    return found


def _netem(words: list[str]) -> Settings:
    """What the words of a ``netem`` set: times in ps, shares of 0 to 1."""
    found: Settings = {}
    given = list(words)
    while given:
        word = given.pop(0)
        reader = _NETEM.get(word)
        if reader is None:
            said = "Our netem has delay, distribution, loss, duplicate, corrupt, reorder, rate and limit."
            raise LineRefused(f'What is "{word}"?\n{said}', _UNREADABLE)
        reader(found, given)
    _check_netem(found)
    return found


def _read(given: list[str], reader: _Reader, what: str) -> Any:
    text = taken(given)
    try:
        return reader(text)
    except ValueError:
        raise LineRefused(f'Illegal "{what}"', _UNREADABLE) from None


def _number_follows(given: list[str]) -> bool:
    return bool(given) and (given[0][:1].isdigit() or given[0][:1] in "-.")


def _correlation(found: Settings, given: list[str], name: str) -> None:
    """Read the correlation that may follow a share. None of our lines has one."""
    if not _number_follows(given):
        return
    if _read(given, share, "loss correlation" if name == "loss" else name):
        remedy = "; loss gemodel has losses in bursts" if name == "loss" else ""
        raise LineRefused(f"netem {name} with a correlation is not there: our lines draw each frame anew{remedy}")


def _delay(found: Settings, given: list[str]) -> None:
    found["delay_text"] = given[0] if given else ""
    found["delay"] = _read(given, time_ps, "latency")
    if _number_follows(given):
        found["jitter_text"] = given[0]
        found["jitter"] = _read(given, time_ps, "latency")
        _correlation(found, given, "latency")


def _loss(found: Settings, given: list[str]) -> None:
    kind = taken(given)
    if kind == "state":
        _chain(found, given)
    elif kind == "gemodel":
        p = _read(given, share, "loss gemodel p")
        rest = [1 - p, 1.0, 0.0]
        for at, name in enumerate(("r", "1-h", "1-k")):
            if not _number_follows(given):
                break
            rest[at] = _read(given, share, f"loss gemodel {name}")
        found["gemodel"] = (p, *rest)
    elif kind == "random" or kind[:1].isdigit() or kind[:1] == ".":
        if kind != "random":
            given.insert(0, kind)
        found["loss"] = _read(given, share, "loss percent")
        _correlation(found, given, "loss")
    else:
        raise LineRefused(f"Unknown loss parameter: {kind}", _UNREADABLE)


def _chain(found: Settings, given: list[str]) -> None:
    """``loss state P13 [P31 [P32 [P23 [P14]]]]``. With two of its states it is a chain of Gilbert and Elliott."""
    p13 = _read(given, share, "loss p13")
    rest = [1 - p13, 0.0, 1.0, 0.0]
    for at, name in enumerate(("p31", "p32", "p23", "p14")):
        if not _number_follows(given):
            break
        rest[at] = _read(given, share, f"loss {name}")
    if rest[1] or rest[3]:
        raise LineRefused("netem loss state with p32 or p14 is not there: our chains have two states, p13 and p31")
    found["state"] = (p13, *rest)


def _share(name: str) -> Callable[[Settings, list[str]], None]:
    def read(found: Settings, given: list[str]) -> None:
        found[name] = _read(given, share, name)
        _correlation(found, given, name)

    return read


def _distribution(found: Settings, given: list[str]) -> None:
    name = taken(given)
    if name not in _SHAPES:
        known = ", ".join(_SHAPES)
        raise LineRefused(f"No distribution data for {name}; our lines have {known}", _UNREADABLE)
    found["distribution"] = name


def _rate(found: Settings, given: list[str]) -> None:
    found["rate"] = _read(given, rate_bps, "rate")
    if _number_follows(given):
        raise LineRefused("netem rate with a packet overhead or cells is not there: our lines count frames as they are")


def _refused(word: str) -> Callable[[Settings, list[str]], None]:
    def refuse(_found: Settings, _given: list[str]) -> None:
        raise LineRefused(f"netem {word} is not there at the ends of our lines")

    return refuse


def _value(name: str) -> Callable[[Settings, list[str]], None]:
    def read(found: Settings, given: list[str]) -> None:
        found[name] = _read(given, number, name)

    return read


def _check_netem(found: Settings) -> None:
    if "distribution" in found and not (found.get("delay") and found.get("jitter")):
        raise LineRefused("distribution specified but no latency and jitter values", _UNREADABLE)
    if found.get("reorder") and not found.get("delay"):
        raise LineRefused("reordering not possible without specifying some delay", _UNREADABLE)
    if "gap" in found and not found.get("reorder"):
        raise LineRefused("gap specified without reorder probability", _UNREADABLE)
    if found.get("gap", 1) != 1:
        raise LineRefused(f"netem gap {found['gap']} is not there: our lines have gap 1")
    if found.get("reorder") and found.get("jitter"):
        raise LineRefused("netem reorder beside jitter is not there; jitter reorders frames by itself")
    if found.get("jitter") and not found.get("delay"):
        raise LineRefused("netem jitter without delay is not there: a delay never falls below zero")


_CURVES = ("sc", "rt", "ls", "ul")
_SHAPES = ("uniform", "normal", "pareto", "paretonormal")
_LEAST_BURST_BYTES = 1514
_MOST_PEAK_BYTES = 2000
_NETEM: dict[str, Callable[[Settings, list[str]], None]] = {
    **dict.fromkeys(("delay", "latency"), _delay),
    **dict.fromkeys(("loss", "drop"), _loss),
    **{name: _share(name) for name in ("duplicate", "corrupt", "reorder")},
    "distribution": _distribution,
    "rate": _rate,
    "gap": _value("gap"),
    "limit": _value("limit"),
    **{name: _refused(name) for name in ("slot", "ecn", "seed")},
}
_LIMIT = {"limit": ("limit", number)}
_FIFO_UNKNOWN = '{kind}: unknown parameter "{word}"'
_FIFO_ILLEGAL = '{kind}: Illegal value for "{word}": "{text}"'
_BURST = dict.fromkeys(("burst", "buffer", "maxburst"), ("burst", size_bytes))
_SIZES: dict[str, tuple[str, _Reader]] = {
    "mpu": ("mpu", size_bytes),
    "overhead": ("overhead", number),
    "linklayer": ("linklayer", str),
}
_DELAYS = {"target": ("target", time_ps), "interval": ("interval", time_ps)}
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
            "default": ("default", lambda text: int(text, 16)),
            "r2q": ("r2q", number),
            "direct_qlen": ("direct_qlen", number),
        }
    ),
    "hfsc": _Grammar(
        {"default": ("default", lambda text: int(text, 16))},
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
            "probability": ("probability", float),
        },
        _ECN,
    ),
    "codel": _Grammar({**_LIMIT, **_DELAYS}, _ECN),
    "fq_codel": _Grammar(
        {
            **_LIMIT,
            "flows": ("flows", number),
            "quantum": ("quantum", size_bytes),
            "memory_limit": ("memory_limit", size_bytes),
            **_DELAYS,
        },
        _ECN,
    ),
    "sfq": _Grammar(
        {**_LIMIT, "quantum": ("quantum", size_bytes), "perturb": ("perturb", seconds), "divisor": ("divisor", number)}
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
