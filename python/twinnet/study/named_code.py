"""Python of one's own by name: ``module:name``, or a name that an installed package gives it by an entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic import BaseModel

from twinnet.own_modules import brought_by_packages
from twinnet.study.own_source import OWN_NAME
from twinnet.study.quantities import QUANTITIES
from twinnet.traffic.bandwidth import METHODS
from twinnet.traffic.congestion import MODELLED
from twinnet.traffic.own_code import OwnCode, brought

__all__ = [
    "DISCIPLINE",
    "GROUPS",
    "name_metrics",
    "named_code",
    "own_disciplines",
    "own_name",
    "own_queues",
]

DISCIPLINE = "queue discipline"

GROUPS = {
    "application": "twinnet.applications",
    "congestion control": "twinnet.congestion_controls",
    "estimator": "twinnet.estimators",
    "metric": "twinnet.metrics",
    DISCIPLINE: "twinnet.disciplines",
}
"""What packages can bring, and the groups of their entry points: a name, and ``module:name``."""
_BUILT_IN = {"congestion control": MODELLED, "estimator": METHODS, "metric": tuple(QUANTITIES)}
"""The names that stay what they are."""


def named_code(what: str) -> dict[str, str]:
    """Return the names that installed packages give to a `what`, one of :data:`GROUPS`, with the ``module:name`` of
    each. No package is run."""
    found = {point.name: point.value for point in brought_by_packages(GROUPS[what])}
    return {name: value for name, value in found.items() if name not in _BUILT_IN.get(what, ())}


def own_name(text: object, what: str) -> str | None:
    """Return the ``module:name`` that `text` is, or that it names; `None` where it is neither."""
    if not isinstance(text, str) or text in _BUILT_IN.get(what, ()):
        return None
    return text if OWN_NAME.fullmatch(text) else named_code(what).get(text)


def name_metrics(measurements: object) -> None:
    """Put the ``module:name`` of own metrics in the place of the names that packages give them."""
    entries: Any = measurements
    for entry in entries.values() if isinstance(measurements, dict) else ():
        if isinstance(entry, dict):
            fields = cast("dict[str, Any]", entry)
            if own := own_name(fields.get("of"), "metric"):
                fields["of"] = own


def own_queues(data: object, place: tuple[str | int, ...]) -> Iterator[tuple[dict[str, Any], tuple[str | int, ...]]]:
    """Yield each queue in `data` that is of a class of one's own, with the place of the class's name."""
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        if fields.get("kind") == "own" and own_name(fields.get("of"), DISCIPLINE):
            yield fields, (*place, "of")
        for key, inner in fields.items():
            yield from own_queues(inner, (*place, key))
    elif isinstance(data, list):
        for index, inner in enumerate(cast("list[object]", data)):
            yield from own_queues(inner, (*place, index))


def own_disciplines(specification: BaseModel) -> list[OwnCode]:
    """Return the queue disciplines of one's own that a specification names, each once."""
    # A switch has a kind of that name, too.
    owned = (fields for fields in _mappings(specification.model_dump()) if fields.get("kind") == "own")
    named = (fields["of"] for fields in owned if "of" in fields)
    return [own for own in map(brought, dict.fromkeys(named)) if own is not None]


def _mappings(data: object) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield cast("dict[str, Any]", data)
    parts = list(cast("dict[str, object]", data).values()) if isinstance(data, dict) else data
    for inner in cast("list[object]", parts) if isinstance(parts, list) else ():
        yield from _mappings(inner)
