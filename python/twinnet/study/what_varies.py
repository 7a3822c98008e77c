"""What chance there is in a run: without any, repetitions on the virtual clock are one run made again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from twinnet.study.network_of import network_of
from twinnet.study.plan import PlannedRun

__all__ = ["NOTHING_VARIES", "nothing_varies", "what_varies"]

NOTHING_VARIES = (
    "Nothing in this study is random, so on the virtual clock repetitions do not differ, or only by which of two "
    "frames goes first that arrive at one moment: one is enough, and it speaks for these very settings only. Let what "
    "is not known vary: 'vary_starts: 100 ms' moves the start of each source by chance; 'process: poisson' or a "
    "distribution of gaps, and jitter of links and hosts, vary the rest."
)


def nothing_varies(plan: Sequence[PlannedRun]) -> bool:
    """Return whether the repetitions of `plan` differ in nothing, or in what seeds decide of frames that arrive at one
    moment."""
    one_of_each = {tuple(run.levels.items()): run for run in plan}
    return len(one_of_each) < len(plan) and not any(map(what_varies, one_of_each.values()))


def what_varies(run: PlannedRun) -> list[str]:
    """Name what differs between repetitions of `run`, each thing once; empty where nothing does.

    What a policy's queues draw is not known before they are built, so a policy counts.
    """
    specification = run.specification
    if specification.clock != "virtual":
        return ["the machines' timing"]
    found: dict[str, None] = {}
    if specification.vary_starts_ps:
        found["the start of traffic"] = None
    if any(entry.part for entry in specification.traffic):
        found["which hosts send what"] = None
    if specification.policy is not None:
        found["the policy"] = None
    network = network_of(specification, run.levels, run.seed)
    for thing in _drawn(network.to_spec()):
        found[thing] = None
    for entry in specification.traffic:
        flow: Any = entry.between(entry.sources[0], 10**12)
        for end in (flow,) if not hasattr(flow, "sender") else (flow.sender, flow.receiver):
            for thing in (*_drawn(end.fields), *(["probes"] if entry.protocol == "bandwidth" else [])):
                found[f"{thing} of {entry.name}"] = None
    return list(found)


def _drawn(spec: Any) -> Iterator[str]:
    """What of a specification in the form of the lab protocol is drawn by chance."""
    if isinstance(spec, Mapping):
        for key, value in cast("Mapping[str, Any]", spec).items():
            thing = _chance(key, value)
            if thing:
                yield thing
            yield from _drawn(value)
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        for one in cast("Sequence[Any]", spec):
            yield from _drawn(one)


def _chance(key: str, value: Any) -> str:
    """Name the chance that one field brings in; empty for none."""
    match key, value:
        case "process", "poisson":
            return "exponential gaps"
        case "distribution", str() if value != "constant":
            return f"the {value} distribution"
        case (("loss" | "duplicate" | "corrupt"), _) if value:
            return key
        case "variation", int() | float() if value > 0:
            return "sizes of frames"
        case "kind", "red" | "pie" | "sfq":
            return f"the discipline {value}"
        case "congestion_control", "bbr":
            return "the phase of BBR's cycle"
        case _:
            return ""
