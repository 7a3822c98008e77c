"""The queues of a study's networks, port by port, so that one on the wrong port is seen before the runs."""

from __future__ import annotations

from collections.abc import Mapping

from twinnet.network.named_ports import peers
from twinnet.qos.queue import Queue
from twinnet.settings import settings_of
from twinnet.study.network_of import network_of
from twinnet.study.resolution import Study

__all__ = ["queues_told"]

_MOST_PORTS = 12


def queues_told(study: Study) -> list[str]:
    """Return a line for each port that has a queue under the first levels or one other level of a factor: the port,
    where it sends to, the queue and the levels. Policies put theirs in when a run begins, and are not among them."""
    levels_run = study.specification.levels_run()
    usual = {name: levels[0] for name, levels in levels_run.items()}
    cases: list[tuple[tuple[str, str] | None, Mapping[str, str]]] = [(None, usual)]
    for name, levels in levels_run.items():
        changing = [one for one in levels if _changes_queues(study, name, one)]
        if changing:
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
        for port, queues in list(found.items())[:_MOST_PORTS]
    ]
    left = len(found) - _MOST_PORTS
    return [*lines, *([f"Queues at {left} more ports."] if left > 0 else [])]


def _under(levels: list[tuple[str, str]]) -> str:
    """The levels under which a port has a queue; empty where no level changes it."""
    factors = dict.fromkeys(name for name, _ in levels)
    said = [f"{name}: {', '.join(level for own, level in levels if own == name)}" for name in factors]
    return f" ({'; '.join(said)})" if said else ""


def _changes_queues(study: Study, factor: str, level: str) -> bool:
    one = study.specification.factors[factor].levels[level]
    return bool(one.queues) or any(
        {"queue", "queue_a", "queue_b"} & link.model_fields_set for link in one.links.values()
    )


def _words(queue: Queue) -> str:
    """The discipline with what differs from its defaults."""
    usual = {name: field.default for name, field in type(queue).__dataclass_fields__.items()}
    given = {name: getattr(queue, name) for name in settings_of(type(queue))}
    said = [
        f"{name} {value}" for name, value in given.items() if value != usual.get(name) and not isinstance(value, list)
    ]
    return " ".join([queue.discipline, *said])
