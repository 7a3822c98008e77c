"""All that runs of a study would execute or reach that its author brings: Python, commands, programs, controllers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinnet.control.choice import SHIPPED
from twinnet.network.topology_schema import ControllerModel, NetworkModel
from twinnet.study.named_code import own_disciplines
from twinnet.study.own_source import OWN_OF_TRAFFIC
from twinnet.study.plan import PlannedRun
from twinnet.study.policy_of import own_policy
from twinnet.study.resolution import Study
from twinnet.study.specification import StudySpecification
from twinnet.traffic.own_code import brought

__all__ = ["BroughtCode", "brought_code"]


@dataclass(frozen=True)
class BroughtCode:
    """Something that a study brings and that runs of it, or its evaluation, execute.

    Attributes
    ----------
    file
        The file of Python, or in words what it is.
    sha256
        The hash of its text.
    measures
        Whether it evaluates results; the rest makes runs.
    """

    file: str
    sha256: str
    measures: bool = False

    @property
    def told(self) -> str:
        """What it is; of Python with its hash."""
        return f"{self.file} (SHA-256 {self.sha256})" if self.file.endswith(".py") else self.file


def brought_code(study: Study, plan: Sequence[PlannedRun]) -> list[BroughtCode]:
    """Return what `study`, whose runs are `plan`, brings, each once; nothing of it is run."""
    found = [BroughtCode(one.file, one.sha256, measures=True) for one in study.own_metrics().values()]
    for run in {tuple(run.levels.values()): run for run in plan}.values():
        found += _of_runs(run.specification)
    return list(dict.fromkeys(found))


def _of_runs(specification: StudySpecification) -> Iterator[BroughtCode]:
    named = [brought(entry.sends.get(key)) for entry in specification.traffic for key in OWN_OF_TRAFFIC]
    for one in (*named, *own_disciplines(specification)):
        if one is not None:
            yield BroughtCode(one.file, one.sha256)
    if specification.policy is not None and (policy := own_policy(specification.policy.use)) is not None:
        yield BroughtCode(policy.file, policy.sha256)
    programs = [entry.model_dump(mode="json") for entry in specification.traffic if entry.using == "programs"]
    if programs:
        names = ", ".join(entry.name for entry in specification.traffic if entry.using == "programs")
        yield _commands(f"real programs, for the traffic {names}", programs)
    networks: list[NetworkModel] = [*specification.networks.values()]
    networks += [] if specification.network is None else [specification.network]
    for network in networks:
        yield from _controllers(network)


def _controllers(network: NetworkModel) -> Iterator[BroughtCode]:
    if isinstance(network.controller, ControllerModel):
        given = network.controller.settings()
        run, connect, app = given.get("run"), network.controller.connect, network.controller.app
        for one in (run, connect, None if app in SHIPPED else app):
            if one is not None:
                yield _commands(f"the controller {one!s:.200}", one)
    for name, switch in network.switches.items():
        if targets := getattr(switch, "controllers", None):
            yield _commands(f"controllers of the switch {name}: {targets!s:.200}", targets)


def _commands(told: str, of: object) -> BroughtCode:
    return BroughtCode(told, hashlib.sha256(json.dumps(of, default=str).encode()).hexdigest())
