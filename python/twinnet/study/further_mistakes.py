"""Mistakes of a study file that is wrong already: what can be checked by itself is, so that all are told at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from twinnet.network.topology_file import build_network
from twinnet.network.topology_schema import NetworkModel
from twinnet.study.dimensions import ANY
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Names, parse_check
from twinnet.study.quantity import Quantity
from twinnet.yaml_source import Document, Problem, SourceError

__all__ = ["further_mistakes"]


def further_mistakes(document: Document, data: Mapping[str, Any], parameters: Mapping[str, Quantity]) -> list[Problem]:
    """Return what is wrong in the network and in the statements of `data`, the file with its parameters put in.

    A part that is wrong in its form is passed over: that is told already. Whatever else is wrong with a measurement, a
    statement may name it, and is not blamed for its unit.
    """
    return [*_of_networks(document, data), *_of_statements(document, data, parameters)]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _of_networks(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    places: list[tuple[str, ...]] = [("network",)] if "network" in data else []
    places += [("networks", name) for name in _mapping(data.get("networks"))]
    problems: list[Problem] = []
    for place in places:
        given: Any = data
        for key in place:
            given = given[key]
        try:
            build_network(NetworkModel.model_validate(given), document, place)
        except ValidationError:
            continue
        except SourceError as error:
            problems += error.problems
    return problems


def _of_statements(document: Document, data: Mapping[str, Any], parameters: Mapping[str, Quantity]) -> list[Problem]:
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
    bare = {name for name, one in parameters.items() if one.kind == "number"}
    statements = data.get("statements")
    problems: list[Problem] = []
    for index, statement in enumerate(cast(list[Any], statements) if isinstance(statements, list) else []):
        check = _mapping(statement).get("check")
        # A number may be one whose unit was forgotten, which is told where it stands.
        if isinstance(check, str) and not bare & set(re.findall(r"\w+", check)):
            try:
                parse_check(check, names)
            except ValueError as error:
                problems.append(document.problem(("statements", index, "check"), str(error)))
    return problems
