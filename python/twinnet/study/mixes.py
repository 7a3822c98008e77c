"""Mixes of levels over hosts: which hosts of a mix are in which of its parts, and so send what."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

from twinnet.errors import did_you_mean
from twinnet.study.measurement import Measurement
from twinnet.study.traffic import Traffic

__all__ = ["drawn_traffic", "part_in_words", "without_empty_parts"]

Mixes = Mapping[str, Mapping[str, float]]
"""The weight of each part of each mix."""


def without_empty_parts(
    mixes: Mixes, traffic: Sequence[Traffic], measurements: dict[str, Measurement]
) -> list[Traffic]:
    """Return `traffic` without the entries of parts that have no weight, and without a part where one has it all; take
    the names of such entries from `measurements`. A mix of one part is none.

    Raises
    ------
    ValueError
        An entry's part is of no mix, a mix has no weight at all, or a measurement is of parts without weight only.
    """
    kept: list[Traffic] = []
    for one in traffic:
        weight, whole = _weight(mixes, one)
        if weight:
            kept.append(one.model_copy(update={"part": None}) if weight == whole else one)
    left = {one.name for one in traffic} - {one.name for one in kept}
    for name, measurement in measurements.items():
        if measurement.only is not None and left.intersection(measurement.only):
            only = [one for one in measurement.only if one not in left]
            if not only:
                raise ValueError(f"the measurement {name} is of {measurement.only[0]} only, whose part has no weight")
            measurements[name] = measurement.model_copy(update={"only": only})
    return kept


def drawn_traffic(mixes: Mixes, traffic: list[Traffic], seed: int) -> list[Traffic]:
    """Return the traffic of the run with `seed`, in which each host of a mix is in one part: as many as its weight
    says, to the nearest host, and which ones by chance. Each begins when it would if all hosts of its entry sent."""
    if not any(one.part for one in traffic):
        return traffic
    parts: dict[str, dict[str, str]] = {}
    for mix, weights in mixes.items():
        members = [one.sources for one in traffic if one.part is not None and one.part.partition(".")[0] == mix]
        parts[mix] = _dealt(list(dict.fromkeys(itertools.chain(*members))), weights, random.Random(f"{seed}/mix/{mix}"))
    found: list[Traffic] = []
    for one in traffic:
        mix, _, part = (one.part or "").partition(".")
        chosen = one.sources if one.part is None else [host for host in one.sources if parts[mix][host] == part]
        if chosen:
            found.append(one.with_sources(chosen))
    return found


def part_in_words(mixes: Mixes, entry: Traffic) -> str:
    """The share of its hosts that send `entry` in a run, in words; empty where all do."""
    if entry.part is None:
        return ""
    weight, whole = _weight(mixes, entry)
    return f" ({weight / whole:.3g} of them in each run, by chance: {entry.part})"


def _weight(mixes: Mixes, entry: Traffic) -> tuple[float, float]:
    """The weight of the part that `entry` is of, and that of the whole mix."""
    if entry.part is None:
        return 1.0, 1.0
    mix, _, part = entry.part.partition(".")
    known = [f"{name}.{one}" for name, weights in mixes.items() for one in weights]
    if entry.part not in known:
        raise ValueError(f"the traffic {entry.name} is of the part {entry.part!r}; {did_you_mean(entry.part, known)}")
    whole = sum(mixes[mix].values())
    if not whole:
        raise ValueError(f"no part of the mix {mix} has a weight above 0")
    return mixes[mix][part], whole


def _dealt(hosts: list[str], weights: Mapping[str, float], draw: random.Random) -> dict[str, str]:
    """Return the part of each host."""
    draw.shuffle(hosts)
    ends = [round(len(hosts) * end / sum(weights.values())) for end in itertools.accumulate(weights.values())]
    return {
        host: part
        for part, (begin, end) in zip(weights, itertools.pairwise([0, *ends]), strict=True)
        for host in hosts[begin:end]
    }
