"""The words of ``netem`` of ``tc``: what they set, and what ``tc`` and our lines do not take.

Words may be cut short, as in iproute2. Shares are kept in 32 bits, and times in the kernel's ticks, as they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from twinnet.mininet.tc_words import (
    TICKS_PER_US,
    LineRefused,
    Settings,
    matching,
    number,
    rate_bps,
    share,
    size_bytes,
    taken,
    time_ps,
)

__all__ = ["netem_delay_ps", "read_netem"]

_Reader = Callable[[str], Any]
_SHAPES = ("uniform", "normal", "pareto", "paretonormal")
_FREELY = "our lines draw each frame anew"


def read_netem(words: list[str]) -> Settings:
    """Return what the words of a ``netem`` set, times in ps and shares of 0 to 1; raises :class:`LineRefused`."""
    found: Settings = {}
    given = list(words)
    while given:
        word = given.pop(0)
        name = matching(word, tuple(_NETEM))
        if name is None:
            said = "Our netem has delay, distribution, loss, duplicate, corrupt, reorder, rate and limit."
            raise LineRefused(f'What is "{word}"?\n{said}', 1)
        _NETEM[name](found, given)
    _check(found)
    return found


def _refuse(found: Settings, said: str) -> None:
    """Keep what ``tc`` takes and no line can do, until all words are read."""
    found.setdefault("refused", f"netem {said}")


def _read(given: list[str], reader: _Reader, what: str) -> Any:
    text = taken(given)
    try:
        return reader(text)
    except ValueError:
        raise LineRefused(f'Illegal "{what}"', 1) from None


def _number_follows(given: list[str], signed: bool = False) -> bool:
    return bool(given) and (given[0][:1].isdigit() or (signed and given[0].startswith("-")))


def _correlation(found: Settings, given: list[str], name: str) -> None:
    """Read the correlation that may follow a share. None of our lines has one."""
    if not _number_follows(given):
        return
    if _read(given, share, "loss correlation" if name == "loss" else name):
        remedy = "; loss gemodel has losses in bursts" if name == "loss" else ""
        _refuse(found, f"{name} with a correlation is not there: {_FREELY}{remedy}")


def netem_delay_ps(text: str) -> int:
    """Return the time in ps that `text` gives; raises `ValueError`, and :class:`LineRefused` where the kernel's 32 bits
    of ticks do not hold it."""
    negative = re.fullmatch(r"-([0-9.]+[a-z]*)", text)
    whole_us = (-1 if negative else 1) * (time_ps(negative[1] if negative else text) // 10**6) % 2**32
    if int(whole_us * TICKS_PER_US) >= 2**32:
        raise LineRefused(f'Illegal {whole_us} time (too large)\nIllegal "latency"', 1)
    return whole_us * 10**6


def _delay(found: Settings, given: list[str]) -> None:
    found["delay_text"] = given[0] if given else ""
    found["delay"] = _read(given, netem_delay_ps, "latency")
    if _number_follows(given):
        found["jitter_text"] = given[0]
        found["jitter"] = _read(given, netem_delay_ps, "latency")
        _correlation(found, given, "latency")


def _loss(found: Settings, given: list[str]) -> None:
    if found.get("loss") or {"state", "gemodel"} & found.keys():
        raise LineRefused('Illegal "duplicate loss argument\n"', 1)
    kind = taken(given)
    if kind == "state":
        found["state"] = _chain(given, "loss ", ("p13", "p31", "p32", "p23", "p14"), (0, None, 0, 1, 0))
        if found["state"][2] or found["state"][4]:
            _refuse(found, "loss state with p32 or p14 is not there: our chains have two states, p13 and p31")
    elif kind == "gemodel":
        found["gemodel"] = _chain(given, "loss gemodel ", ("p", "r", "h", "k"), (0, None, 1, 0))
    elif kind == "random" or kind[:1].isdigit():
        if kind != "random":
            given.insert(0, kind)
        found["loss"] = _read(given, share, "loss percent")
        _correlation(found, given, "loss")
    else:
        raise LineRefused(f"Unknown loss parameter: {kind}", 1)


def _chain(given: list[str], ahead: str, names: tuple[str, ...], usual: tuple[float | None, ...]) -> tuple[float, ...]:
    """Read the shares of a chain; the usual second one is what the first one lacks."""
    first = _read(given, share, f"{ahead}{names[0]}")
    shares = [first, *(1 - first if each is None else each for each in usual[1:])]
    for at, name in enumerate(names[1:], 1):
        if not _number_follows(given):
            break
        shares[at] = _read(given, share, f"{ahead}{name}")
    return tuple(shares)


def _share(name: str) -> Callable[[Settings, list[str]], None]:
    def read(found: Settings, given: list[str]) -> None:
        found[name] = _read(given, share, name)
        _correlation(found, given, name)

    return read


def _distribution(found: Settings, given: list[str]) -> None:
    name = taken(given)
    if name not in _SHAPES:
        raise LineRefused(f"No distribution data for {name}; our lines have {', '.join(_SHAPES)}", 1)
    found["distribution"] = name


def _rate(found: Settings, given: list[str]) -> None:
    found["rate"] = _read(given, rate_bps, "rate")
    for signed in (True, False, True):
        if _number_follows(given, signed):
            _read(given, lambda text: number(text.removeprefix("-") if signed else text), "rate")  # noqa: B023
            _refuse(found, "rate with a packet overhead or cells is not there: our lines count frames as they are")


def _slot(found: Settings, given: list[str]) -> None:
    _refuse(found, "slot is not there at the ends of our lines")
    if _number_follows(given):
        _read(given, time_ps, "slot min_delay")
        if _number_follows(given):
            _read(given, time_ps, "slot max_delay")
    elif (word := taken(given)) == "distribution":
        taken(given)
        for name in ("delay", "jitter"):
            _read(given, time_ps, f"slot {name}")
    else:
        raise LineRefused(f"Unknown slot parameter: {word}", 1)
    for name, reader in (("packets", number), ("bytes", size_bytes)):
        if given and name.startswith(given[0]):
            given.pop(0)
            _read(given or [""], reader, f"slot {name}")


def _ecn(found: Settings, _given: list[str]) -> None:
    found["ecn"] = True
    _refuse(found, "ecn is not there: our lines drop what is lost")


def _value(name: str, reader: _Reader) -> Callable[[Settings, list[str]], None]:
    def read(found: Settings, given: list[str]) -> None:
        found[name] = _read(given, reader, name)

    return read


def _check(found: Settings) -> None:
    if found.get("reorder") and not found.get("delay"):
        raise LineRefused("reordering not possible without specifying some delay", 1)
    if found.get("gap") and not found.get("reorder"):
        raise LineRefused("gap specified without reorder probability", 1)
    if "ecn" in found and not (found.get("loss") or {"state", "gemodel"} & found.keys()):
        raise LineRefused("ecn requested without loss model", 1)
    if "distribution" in found and not (found.get("delay") and found.get("jitter")):
        raise LineRefused("distribution specified but no latency and jitter values", 1)
    if "refused" in found:
        raise LineRefused(found["refused"])
    if found.get("limit") == 0:
        raise LineRefused("netem limit 0 is not there: a queue of nothing sends nothing")
    if (found.get("gap") or 1) != 1:
        raise LineRefused(f"netem gap {found['gap']} is not there: our lines have gap 1")
    if found.get("reorder") and found.get("jitter"):
        raise LineRefused("netem reorder beside jitter is not there; jitter reorders frames by itself")
    if found.get("jitter") and not found.get("delay"):
        raise LineRefused("netem jitter without delay is not there: a delay never falls below zero")


_NETEM: dict[str, Callable[[Settings, list[str]], None]] = {
    "limit": _value("limit", size_bytes),
    "latency": _delay,
    "delay": _delay,
    "loss": _loss,
    "drop": _loss,
    "ecn": _ecn,
    "reorder": _share("reorder"),
    "corrupt": _share("corrupt"),
    "gap": _value("gap", number),
    "duplicate": _share("duplicate"),
    "distribution": _distribution,
    "rate": _rate,
    "slot": _slot,
}
