"""The network of one run: the study's own, changed by the levels of its factors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from twinnet.errors import UnknownNode, UsageError, did_you_mean
from twinnet.network.link_settings import direction_spec
from twinnet.network.named_ports import link_named, port_named, ports_named
from twinnet.network.network import Network
from twinnet.network.nodes import Host, Switch
from twinnet.network.topology_file import build_network
from twinnet.study.path_mtu import PathMtus
from twinnet.study.policy_of import policy_unless_own
from twinnet.study.specification import QUEUES_OF_LINKS, Level, StudySpecification
from twinnet.yaml_source import Document, Problem, SourceError

__all__ = ["check_networks", "network_of"]

Place = tuple[str | int, ...]

MOST_COMBINATIONS = 10_000
NO_FILE = Document("<study>", {}, {(): (1, 1)}, {})
"""For networks that were checked when the study was read: their mistakes have no place any more."""


def network_of(specification: StudySpecification, levels: Mapping[str, str], seed: int) -> Network:
    """The network under `levels`, not started; raises `SourceError` or `BadTopology`."""
    return _build(specification, levels, seed, NO_FILE)


def _build(specification: StudySpecification, levels: Mapping[str, str], seed: int, document: Document) -> Network:
    model, place = specification.network_at(levels)
    network = build_network(model, document, place)
    network.seed = seed
    problems: list[Problem] = []
    for factor, name in levels.items():
        place = ("factors", factor, "levels", name)
        _apply(network, specification.factors[factor].levels[name], place, document, problems)
    if not problems:
        try:
            policy_unless_own(specification, network)
        except UsageError as error:
            problems.append(document.problem(("policy",), str(error), key=True))
    if problems:
        raise SourceError(document.file, problems)
    return network


def _apply(network: Network, level: Level, place: Place, document: Document, problems: list[Problem]) -> None:
    def attempt(key: str, name: str, change: Callable[[], None]) -> None:
        try:
            change()
        except UsageError as error:
            problems.append(document.problem((*place, key, name), str(error), key=True))

    for name in level.queues:
        attempt("queues", name, lambda name=name: _set_queue(network, name, level))
    for name in level.flows:
        attempt("flows", name, lambda name=name: _add_flows(network, name, level))
    for name in level.links:
        attempt("links", name, lambda name=name: _set_link(network, name, level))


def _set_queue(network: Network, name: str, level: Level) -> None:
    for port in ports_named(network, name):
        port.queue = level.queues[name]


def switch_named(network: Network, name: str) -> Switch:
    """Return the switch of `network` that a level names; `UnknownNode` where there is none."""
    switch = network.nodes.get(name)
    if not isinstance(switch, Switch):
        known = [one.name for one in network.switches]
        raise UnknownNode(f"the network has no switch {name!r}", did_you_mean(name, known))
    return switch


def _add_flows(network: Network, name: str, level: Level) -> None:
    switch = switch_named(network, name)
    switch.flows = (*switch.flows, *level.flows[name])


def _set_link(network: Network, name: str, level: Level) -> None:
    """Set both directions of the link that `name` means, and the queues at its ends."""
    link, given = link_named(network, name), level.links[name]
    change = direction_spec(given.model_dump(exclude_unset=True, exclude=set(QUEUES_OF_LINKS)))
    link.ab.update(change)
    link.ba.update(change)
    for key, ports in {"queue": (link.a, link.b), "queue_a": (link.a,), "queue_b": (link.b,)}.items():
        for port in ports if key in given.model_fields_set else ():
            port.queue = getattr(given, key)


def check_networks(
    document: Document, specification: StudySpecification, at: Callable[[Mapping[str, str]], StudySpecification]
) -> None:
    """Build the network under every combination of levels and look up every name that traffic and measurements use.

    Raises
    ------
    SourceError
        With the place of each mistake.
    """
    factors = {name: list(factor.levels) for name, factor in specification.factors.items()}
    combinations = itertools.islice(itertools.product(*factors.values()), MOST_COMBINATIONS)
    for chosen in combinations:
        levels = dict(zip(factors, chosen, strict=True))
        here = at(levels)
        network = _build(here, levels, 1, document)
        problems = [*_unknown_hosts(document, here, network), *_unknown_ports(document, here, network)]
        problems += _unequal_paths(document, here, network) if not problems else []
        if problems:
            raise SourceError(document.file, problems)


def _unknown_hosts(document: Document, specification: StudySpecification, network: Network) -> list[Problem]:
    problems: list[Problem] = []
    known = [host.name for host in network.hosts]
    for index, entry in enumerate(specification.traffic):
        named: list[tuple[Place, str]] = [(("from", place), name) for place, name in enumerate(entry.sources)]
        for path, name in [*named, (("to",), entry.to)]:
            if not isinstance(network.nodes.get(name), Host):
                message = f"the network has no host {name!r}; {did_you_mean(name, known)}"
                problems.append(document.problem(("traffic", index, *path), message))
    return problems


def _unequal_paths(document: Document, specification: StudySpecification, network: Network) -> list[Problem]:
    """Find the receivers that would have to count frames by several MTUs at once."""
    named = [
        name for name, one in specification.measurements.items() if one.of == "throughput" and one.layer != "payload"
    ]
    if not named:
        return []
    paths = PathMtus(link.to_spec() for link in network.links)
    problems: list[Problem] = []
    for target in sorted({entry.to for entry in specification.traffic}):
        mtus = sorted(paths.to_receiver(specification.traffic, target))
        if len(mtus) > 1:
            given = ", ".join(map(str, mtus))
            message = (
                f"datagrams reach {target} over paths with MTUs of {given} bytes, and its receiver counts what carries"
                " them by one; measure at layer 'payload', or send to different hosts"
            )
            problems.append(document.problem(("measurements", named[0], "layer"), message))
    return problems


def _unknown_ports(document: Document, specification: StudySpecification, network: Network) -> list[Problem]:
    problems: list[Problem] = []
    for name, measurement in specification.measurements.items():
        for index, port in enumerate(measurement.ports or ()):
            try:
                port_named(network, port)
            except UsageError as error:
                problems.append(document.problem(("measurements", name, "ports", index), str(error)))
    if specification.capture is not None:
        try:
            specification.capture.ports(network)
        except UsageError as error:
            problems.append(document.problem(("capture", "at"), str(error)))
    return problems
