"""The parts of a wrong network file that are right by themselves: put together, they show the mistakes between parts
in the same round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from twinnet.network.network import Network
from twinnet.network.topology_file import build_network
from twinnet.network.topology_schema import NetworkModel
from twinnet.yaml_source import Document, Problem, SourceError

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["mistakes_between_parts"]

_NODES = ("hosts", "routers", "switches", "interfaces")
Place = tuple[str | int, ...]


def mistakes_between_parts(
    document: Document, given: Any, error: ValidationError, at: Place = (), built: list[Network] | None = None
) -> list[Problem]:
    """Return what is wrong between the parts of `given`, the network at `at`, that `error` has nothing against.

    A wrong node stands there with its name alone and a wrong link with its ends, so that they are judged; a wrong
    tunnel or change is left out. Where even so nothing can be built, there is nothing to tell; what could be is added
    to `built`.
    """
    from pydantic import ValidationError

    if not isinstance(given, dict):
        return []
    data = dict(cast(Mapping[str, Any], given))
    kept: dict[str, list[int]] = {}
    for section, places in _wrong_places(error).items():
        value = data.get(section)
        if isinstance(value, dict) and section in _NODES:
            data[section] = {name: None if name in places else one for name, one in cast(Any, value).items()}
        elif section == "machines" and isinstance(value, dict):
            # A machine has no place without its settings; what is right about it is that it is a host of that name.
            machines = cast("dict[str, Any]", value)
            stand_ins = {name: None for name in machines if name in places}
            data["hosts"] = {**cast("dict[str, Any]", data.get("hosts") or {}), **stand_ins}
            data[section] = {name: one for name, one in machines.items() if name not in places}
        elif isinstance(value, list) and None not in places:
            entries = cast(list[Any], value)
            if section == "links":
                ends = [_ends(one) if index in places else one for index, one in enumerate(entries)]
                places = {index for index, one in enumerate(ends) if one is None}
                entries = ends
            kept[section] = [index for index in range(len(entries)) if index not in places]
            data[section] = [entries[index] for index in kept[section]]
        else:
            del data[section]
    try:
        network = build_network(NetworkModel.model_validate(data), document, at)
    except ValidationError:
        return []
    except SourceError as found:
        return [_where_it_stands(document, problem, kept, at) for problem in found.problems]
    if built is not None:
        built.append(network)
    return []


def _ends(link: Any) -> dict[str, Any] | None:
    """`link` with nothing but its ends; `None` where they are wrong themselves."""
    between = cast(Mapping[str, Any], link).get("between") if isinstance(link, dict) else None
    ends = cast(list[Any], between) if isinstance(between, list) else []
    return {"between": ends} if len(ends) == 2 and all(isinstance(end, str) for end in ends) else None


def _wrong_places(error: ValidationError) -> dict[str, set[str | int | None]]:
    """By section its wrong entries; `None` stands for the section as a whole."""
    wrong: dict[str, set[str | int | None]] = {}
    for details in error.errors(include_url=False):
        loc = details["loc"]
        if loc:
            wrong.setdefault(str(loc[0]), set()).add(loc[1] if len(loc) > 1 else None)
    return wrong


def _where_it_stands(document: Document, problem: Problem, kept: Mapping[str, list[int]], at: Place) -> Problem:
    """`problem` with the index that its entry has in the file."""
    match problem.path[len(at) :]:
        case (str(section), int(index), *rest) if section in kept:
            return document.problem((*at, section, kept[section][index], *rest), problem.message, key=True)
        case _:
            return problem
