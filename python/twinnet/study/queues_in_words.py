"""The queues of a study's networks, port by port, so that one on the wrong port is seen before the runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twinnet.network.named_ports import peers, ports_named
from twinnet.qos.queue import Queue
from twinnet.settings import settings_of
from twinnet.study.network_of import network_of
from twinnet.study.specification import QUEUES_OF_LINKS, Level

if TYPE_CHECKING:
    from twinnet.study.filled_ports import StudyLoads
    from twinnet.study.resolution import Study

__all__ = ["queues_in_words", "queues_set_in_vain", "sets_queues"]

_MOST_PORTS = 12


def queues_in_words(study: Study, loads: StudyLoads) -> list[str]:
    """Return a line for each port that has a queue under the first levels or one other level of a factor: the port,
    where it sends to, the queue and the levels, and by its `loads` where it has little to do. Policies put theirs in
    when a run begins, and are not among them."""
    levels_run = study.specification.levels_run()
    little = loads.little
    usual = {name: levels[0] for name, levels in levels_run.items()}
    cases: list[tuple[tuple[str, str] | None, Mapping[str, str]]] = [(None, usual)]
    for name, levels in levels_run.items():
        if any(_queues_set(study.specification.factors[name].levels[one]) for one in levels):
            cases += [((name, one), {**usual, name: one}) for one in levels]
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    directions: dict[str, str] = {}
    for said, chosen in cases:
        network = network_of(study.at(chosen), chosen, 1)
        directions |= peers(network)
        for node in network.nodes.values():
            for port in node.ports:
                if port.queue is not None:
                    under = found.setdefault(port.name, {}).setdefault(_words(port.queue), [])
                    under += [said] if said is not None else []
    lines = [
        f"Queue at {port} ({directions[port]}): {'; '.join(queue + _under(said) for queue, said in queues.items())}"
        f"{_little_in_words(little.get(port))}"
        for port, queues in list(found.items())[:_MOST_PORTS]
    ]
    left = len(found) - _MOST_PORTS
    return [*lines, *([f"Queues at {left} more ports."] if left > 0 else [])]


def sets_queues(study: Study) -> bool:
    """Return True if a level sets a queue."""
    return any(
        _queues_set(level) for factor in study.specification.factors.values() for level in factor.levels.values()
    )


def queues_set_in_vain(study: Study, loads: StudyLoads) -> list[str]:
    """Return a warning for each factor some of whose levels set queues at no port that has anything to hold back."""
    warnings: list[str] = []
    little, filled = loads.little, [load.words for load, _ in loads.filled[:_MOST_PORTS]]
    levels_run = study.specification.levels_run()
    usual = {name: levels[0] for name, levels in levels_run.items()}
    for name, levels in levels_run.items():
        vain: dict[str, None] = {}
        ports: dict[str, None] = {}
        for level in levels:
            chosen = {**usual, name: level}
            set_here = _queues_set(study.specification.factors[name].levels[level])
            network = network_of(study.at(chosen), chosen, 1)
            names = [port.name for one in set_here for port in ports_named(network, one)]
            if names and all(port in little for port in names):
                vain[level] = None
                ports |= dict.fromkeys(names)
        if vain:
            where = f"; traffic fills {', '.join(filled)}" if filled else ""
            warnings.append(
                f"Warning: no traffic of the study fills {', '.join([*ports][:_MOST_PORTS])}, where {name}: "
                f"{', '.join(vain)} has its queue{where}."
            )
    return warnings


def _queues_set(level: Level) -> list[str]:
    """The names by which `level` sets queues."""
    of_links = [
        f"{link}.{key}"
        for link, given in level.links.items()
        for key in QUEUES_OF_LINKS
        if key in given.model_fields_set
    ]
    return [*level.queues, *of_links]


def _little_in_words(load: float | None) -> str:
    if load is None:
        return ""
    if load == 0:
        return ". No traffic is sent there, only answers: its queue has nothing to do."
    return f". At most {100 * load:.0f} % of its line are taken: its queue has little to do."


def _under(levels: list[tuple[str, str]]) -> str:
    """The levels under which a port has a queue; empty where no level changes it."""
    factors = dict.fromkeys(name for name, _ in levels)
    said = [f"{name}: {', '.join(level for own, level in levels if own == name)}" for name in factors]
    return f" ({'; '.join(said)})" if said else ""


def _words(queue: Queue) -> str:
    """The discipline with what differs from its defaults."""
    usual = {name: field.default for name, field in type(queue).__dataclass_fields__.items()}
    given = {name: getattr(queue, name) for name in settings_of(type(queue))}
    said = [
        f"{name} {value}" for name, value in given.items() if value != usual.get(name) and not isinstance(value, list)
    ]
    return " ".join([queue.discipline, *said])
