"""The plan of a study: one run for each combination of factor levels and each repetition, each with its own seed."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from twinnet.errors import BadValue
from twinnet.network.topology_schema import SwitchModel
from twinnet.study.guest_settings import GuestSettings
from twinnet.study.mixes import drawn_traffic
from twinnet.study.resolution import Study
from twinnet.study.specification import QUEUES_OF_LINKS, StudySpecification
from twinnet.study.virtual_hosts import has_programs

__all__ = ["MOST_RUNS", "PlannedRun", "plan_study", "planned_run"]

MOST_RUNS = 100_000
_WITHOUT_EFFECT_ON_A_RUN = frozenset(
    {
        "title",
        "question",
        "answer",
        "text",
        "sources",
        "parameters",
        "presets",
        "wall_presets",
        "repetitions",
        "seed",
        "seeds",
        "order",
        "levels",
    }
    | {"statements", "contradictions", "trim", "capture"}
    | {"published", "confidence", "factors", "fidelity", "twin", "reference", "claims"}
    # Every entry of traffic carries the one that it uses.
    | {"congestion_control"}
)

_AS_WITHOUT = (("apart_ps", 0), ("receiver", "ffmpeg"))
"""Settings of traffic that do what is done without them."""
_USUAL_SWITCH = SwitchModel(flows=[]).model_dump(mode="json")
"""A switch all of whose settings are as they would be without them."""


@dataclass(frozen=True)
class PlannedRun:
    """One planned run.

    Attributes
    ----------
    id
        Readable and stable: the levels, the repetition, and a hash of everything that affects the run. A change of what
        the run does changes the id; a change of the study's wording does not.
    levels
        The level of each factor.
    repetition
        Counted from 1.
    seed
        Derived from the study's seed, the levels and the repetition.
    digest
        The hash in full.
    specification
        The study with this run's parameters.
    """

    id: str
    levels: Mapping[str, str]
    repetition: int
    seed: int
    digest: str
    specification: StudySpecification


def plan_study(study: Study) -> list[PlannedRun]:
    """The runs of `study`, in the order in which they will be made.

    In the order `listed`, repetitions are the outer loop, so that an interrupted study has all levels equally often; in
    the order `random`, all runs are shuffled by the study's seed.
    """
    specification = study.specification
    factors = specification.levels_run()
    count = specification.repetitions
    for levels in factors.values():
        count *= len(levels)
    if count > MOST_RUNS:
        raise BadValue(f"the study {study.name} has {count} runs; at most {MOST_RUNS} are planned", "use fewer levels")
    combinations = [dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())]
    repetitions = range(1, specification.repetitions + 1)
    of_levels = [_planned(study, levels, study.at(levels), repetitions) for levels in combinations]
    runs = [run for of_repetition in zip(*of_levels, strict=True) for run in of_repetition]
    if specification.order == "random":
        random.Random(f"{specification.seed}/order").shuffle(runs)
    return runs


def planned_run(study: Study, levels: Mapping[str, str], repetition: int) -> PlannedRun:
    """One run of `study`, as it stands in the plan.

    Raises
    ------
    BadValue
        The study does not have these levels or this repetition.
    """
    factors = study.specification.factors
    known = list(levels) == list(factors) and all(levels[one] in factors[one].levels for one in factors)
    if not known or not 1 <= repetition <= study.specification.repetitions:
        raise BadValue(f"the study {study.name} has no run {dict(levels)}, repetition {repetition}")
    return _planned(study, dict(levels), study.at(levels), [repetition])[0]


def _planned(
    study: Study, levels: dict[str, str], specification: StudySpecification, repetitions: Iterable[int]
) -> list[PlannedRun]:
    """The repetitions of one combination of levels."""
    # Common random numbers: the same traffic meets all levels, so that only what they change differs.
    drawn_by = levels if study.specification.seeds == "run" else {}
    content = _content(specification, levels)
    runs: list[PlannedRun] = []
    for repetition in repetitions:
        seed = derived_seed(study.specification.seed, drawn_by, repetition)
        text = json.dumps(content | _captured(specification, repetition) | {"seed": seed}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        here, traffic = specification, drawn_traffic(specification.mixes, specification.traffic, seed)
        if here.vary_starts_ps:
            traffic = [one.with_starts_moved(here.vary_starts_ps, seed) for one in traffic]
        if traffic is not here.traffic:
            here = here.model_copy(update={"traffic": traffic})
        words = [*levels.values(), f"{repetition:02d}", digest[:8]]
        runs.append(PlannedRun("-".join(words), levels, repetition, seed, digest, here))
    return runs


def _captured(specification: StudySpecification, repetition: int) -> dict[str, Any]:
    """What a run keeps beside its tables, where it does: one that was made without it is made again."""
    asked = specification.capture
    if asked is None or repetition > asked.repetitions:
        return {}
    return {"capture": asked.model_dump(mode="json", exclude={"repetitions"})}


def derived_seed(study_seed: int, levels: Mapping[str, str], repetition: int) -> int:
    """The seed of one run: 63 bits of a hash, the same on every machine and in every version of Python."""
    text = json.dumps([study_seed, sorted(levels.items()), repetition])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _content(specification: StudySpecification, levels: Mapping[str, str]) -> dict[str, Any]:
    """What affects the runs with these levels, beside their seeds."""
    content: dict[str, Any] = specification.model_dump(mode="json", exclude=set(_WITHOUT_EFFECT_ON_A_RUN))
    for entry in [*content["traffic"], *content["measurements"].values()]:
        entry.pop("text", None)
    for measurement in content["measurements"].values():
        measurement.pop("title")
    for name, one in specification.measurements.items():
        if one.is_own:
            # It is made of what others measure.
            del content["measurements"][name]
    for measurement in content["measurements"].values():
        for key in ("minimum_after", "describe", "bounds", "show", "during", "after", "own_unit"):
            measurement.pop(key)
    # Only the network of these levels has an effect, and a setting that is left out has none.
    content.pop("networks")
    content["network"] = _network_content(specification, levels)
    asked = content.pop("guest")
    if specification.clock == "virtual" and has_programs(specification):
        # How long programs may compute ends runs, and changes none.
        usual = GuestSettings().model_dump(exclude={"patience_ps"})
        content |= {f"guest.{name}": asked[name] for name in usual if asked[name] != usual[name]}
    if content["policy"] is None:
        del content["policy"]
    dealt = {entry.part.partition(".")[0] for entry in specification.traffic if entry.part is not None}
    content["mixes"] = {name: weights for name, weights in content["mixes"].items() if name in dealt}
    if not content["mixes"]:
        del content["mixes"]
    if not content["vary_starts_ps"]:
        del content["vary_starts_ps"]
    for entry in content["traffic"]:
        if entry["using"] == "apps":
            del entry["tool"]
        for key in [key for key, value in entry.items() if value is None or (key, value) in _AS_WITHOUT]:
            del entry[key]
    content["levels"] = {
        factor: specification.factors[factor]
        .levels[level]
        .model_dump(mode="json", exclude={"text", "network", "needs"})
        for factor, level in sorted(levels.items())
    }
    for factor, level in levels.items():
        for name, link in specification.factors[factor].levels[level].links.items():
            for key in set(QUEUES_OF_LINKS) - link.model_fields_set:
                del content["levels"][factor]["links"][name][key]
    return content


def _network_content(specification: StudySpecification, levels: Mapping[str, str]) -> dict[str, Any]:
    network: dict[str, Any] = specification.network_at(levels)[0].model_dump(mode="json")
    # The network does the same on any number of threads.
    network.pop("fabric_threads")
    # What is as it would be without the setting has no effect either.
    if network["ip6"]:
        del network["ip6"]
    for name, switch in network["switches"].items():
        if switch == _USUAL_SWITCH:
            network["switches"][name] = None
            continue
        for key in ("vlans", "mirrors", "spanning_tree"):
            if switch and not switch[key]:
                del switch[key]
    for node in [*network["hosts"].values(), *network["routers"].values()]:
        for key in ("image", "volumes", "environment", "command", "processors", "memory"):
            if node and not node[key]:
                del node[key]
    for link in network["links"]:
        link.pop("name")
    machines = network.pop("machines")
    if machines:
        if specification.clock != "real":
            # Which machine it is, and how it is reached, has an effect on the real clock only.
            machines = {
                name: {key: value for key, value in one.items() if key not in ("ssh", "interface", "command")}
                for name, one in machines.items()
            }
        network["machines"] = machines
    return network
