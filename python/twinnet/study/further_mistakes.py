"""Mistakes of a study file that is wrong already: what can be checked by itself is, so that all are shown at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from pydantic import ValidationError

from twinnet.errors import UsageError, did_you_mean
from twinnet.network.named_ports import link_named, ports_named
from twinnet.network.network import Network
from twinnet.network.nodes import Host
from twinnet.network.sound_parts import mistakes_between_parts
from twinnet.network.topology_file import build_network
from twinnet.network.topology_schema import NetworkModel
from twinnet.study.dimensions import ANY
from twinnet.study.host_ranges import expand_hosts
from twinnet.study.measurement import Measurement, unknown_selection
from twinnet.study.network_of import switch_named
from twinnet.study.predicate import Names, parse_check
from twinnet.study.quantity import Quantity
from twinnet.study.specification import Statement
from twinnet.yaml_source import Document, Problem, SourceError

__all__ = ["further_mistakes", "torn_checks"]


def further_mistakes(
    document: Document,
    data: Mapping[str, Any],
    parameters: Mapping[str, Quantity],
    unreadable: Collection[str],
) -> list[Problem]:
    """Return what is wrong in the networks, names and statements of `data`, the file with its parameters put in.

    A part that is wrong in its form is passed over: that is shown already. Whatever else is wrong with a measurement, a
    statement may name it, and is not blamed for its unit. Likewise with `unreadable`, the parameters whose default is a
    mistake.
    """
    networks: list[Network] = []
    return [
        *_of_networks(document, data, networks),
        *_of_hosts(document, data, networks),
        *_of_levels(document, data, {*parameters, *unreadable}),
        *_of_level_names(document, data, networks),
        *_of_selections(document, data),
        *_of_statements(document, data, parameters, unreadable),
    ]


def torn_checks(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    """Return the statements whose check has no quotes between braces, so that YAML ends it at its first comma."""
    statements = data.get("statements")
    problems: list[Problem] = []
    for index, given in enumerate(cast(list[Any], statements) if isinstance(statements, list) else []):
        statement = _mapping(given)
        check = statement.get("check")
        beyond = [key for key in statement if key not in Statement.model_fields]
        if (
            isinstance(check, str)
            and beyond
            and (check.count("(") > check.count(")") or "[" in check.rpartition("]")[2])
        ):
            message = f'the comma ends it after {check!r}; put the whole check in quotes: check: "{check}, ..."'
            problems.append(document.problem(("statements", index, "check"), message))
    return problems


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _of_networks(document: Document, data: Mapping[str, Any], built: list[Network]) -> list[Problem]:
    places: list[tuple[str, ...]] = [("network",)] if "network" in data else []
    places += [("networks", name) for name in _mapping(data.get("networks"))]
    problems: list[Problem] = []
    for place in places:
        given: Any = data
        for key in place:
            given = given[key]
        try:
            built.append(build_network(NetworkModel.model_validate(given), document, place))
        except ValidationError as error:
            problems += mistakes_between_parts(document, given, error, place, built)
        except SourceError as error:
            problems += error.problems
    return problems


def _of_hosts(document: Document, data: Mapping[str, Any], networks: list[Network]) -> list[Problem]:
    """Hosts that traffic names and no network has; nothing where a network could not be built."""
    if not _all_built(data, networks):
        return []
    known = {name for network in networks for name, node in network.nodes.items() if isinstance(node, Host)}
    traffic = data.get("traffic")
    problems: list[Problem] = []
    for index, given in enumerate(cast(list[Any], traffic) if isinstance(traffic, list) else []):
        entry = _mapping(given)
        named: list[tuple[tuple[str | int, ...], Any]] = []
        sources = entry.get("from")
        for place, given_name in enumerate(cast(list[Any], sources) if isinstance(sources, list) else []):
            try:
                named += [(("from", place), name) for name in cast(list[Any], expand_hosts([given_name]))]
            except ValueError:
                continue
        for path, name in [*named, (("to",), entry.get("to"))]:
            if isinstance(name, str) and name and name not in known:
                message = f"the network has no host {name!r}; {did_you_mean(name, known)}"
                problems.append(document.problem(("traffic", index, *path), message))
    return problems


def _all_built(data: Mapping[str, Any], networks: list[Network]) -> bool:
    sections = len(_mapping(data.get("networks"))) + ("network" in data)
    return bool(networks) and len(networks) == sections


def _of_level_names(document: Document, data: Mapping[str, Any], networks: list[Network]) -> list[Problem]:
    """Ports, switches and links that levels change and no network has; nothing where one could not be built."""
    if not _all_built(data, networks):
        return []
    ask: dict[str, Callable[[Network, str], object]] = {
        "queues": ports_named,
        "flows": switch_named,
        "links": link_named,
    }
    problems: list[Problem] = []
    for factor, given in _mapping(data.get("factors")).items():
        for level, changes in _mapping(_mapping(given).get("levels")).items():
            for key, find in ask.items():
                for name in _mapping(_mapping(changes).get(key)):
                    mistakes = [why for network in networks if (why := _refusal(find, network, name)) is not None]
                    if len(mistakes) == len(networks):
                        path = ("factors", factor, "levels", level, key, name)
                        problems.append(document.problem(path, mistakes[0], key=True))
    return problems


def _refusal(find: Callable[[Network, str], object], network: Network, name: str) -> str | None:
    try:
        find(network, name)
    except UsageError as error:
        return str(error)
    return None


def _of_selections(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    """Traffic that measurements select by `only` and the study does not have."""
    traffic = data.get("traffic")
    entries = cast(list[Any], traffic) if isinstance(traffic, list) else []
    known = [name for entry in entries if isinstance(name := _mapping(entry).get("name"), str)]
    problems: list[Problem] = []
    for name, given in _mapping(data.get("measurements")).items():
        only = _mapping(given).get("only")
        for place, wanted in enumerate(cast(list[Any], only) if isinstance(only, list) else []):
            if isinstance(wanted, str) and known and wanted not in known:
                message = unknown_selection(name, wanted, known)
                problems.append(document.problem(("measurements", name, "only", place), message))
    return problems


def _of_levels(document: Document, data: Mapping[str, Any], parameters: Collection[str]) -> list[Problem]:
    """Parameters that levels set and the study does not have."""
    problems: list[Problem] = []
    for factor, given in _mapping(data.get("factors")).items():
        for level, changes in _mapping(_mapping(given).get("levels")).items():
            for name in _mapping(_mapping(changes).get("set")):
                if name not in parameters:
                    path = ("factors", factor, "levels", level, "set", name)
                    message = f"unknown parameter; {did_you_mean(name, parameters)}"
                    problems.append(document.problem(path, message, key=True))
    return problems


def _of_statements(
    document: Document, data: Mapping[str, Any], parameters: Mapping[str, Quantity], unreadable: Collection[str]
) -> list[Problem]:
    units: dict[str, str] = {}
    for name, given in _mapping(data.get("measurements")).items():
        try:
            units[name] = Measurement.model_validate(given).unit
        except ValidationError:
            units[name] = ANY
    factors = {
        name: tuple(_mapping(_mapping(factor).get("levels"))) for name, factor in _mapping(data.get("factors")).items()
    }
    names = Names(parameters, units, factors)
    # A number may be one whose unit was forgotten, which is shown where it stands.
    passed_over = {name for name, one in parameters.items() if one.kind == "number"} | set(unreadable)
    statements = data.get("statements")
    problems: list[Problem] = []
    for index, statement in enumerate(cast(list[Any], statements) if isinstance(statements, list) else []):
        check = _mapping(statement).get("check")
        if isinstance(check, str) and not passed_over & set(re.findall(r"\w+", check)):
            try:
                parse_check(check, names)
            except ValueError as error:
                problems.append(document.problem(("statements", index, "check"), str(error)))
    return problems
