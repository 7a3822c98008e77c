"""The files that a study's file names, put in the places of their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from twinnet.deliveries import named_traces
from twinnet.study.beside import FILES_OF_TRAFFIC, Beside
from twinnet.study.named_code import DISCIPLINE, name_metrics, own_name, own_queues
from twinnet.study.own_source import OWN_OF_TRAFFIC, bring_own
from twinnet.yaml_source import Document

__all__ = ["put_files_in"]

_REFERENCE = re.compile(r"\$\{[^}]*\}")


def put_files_in(document: Document, data: Mapping[str, Any], beside: Beside) -> None:
    """Put what a file holds in the place of its name."""

    def put(fields: dict[str, Any], place: tuple[str | int, ...], read: Callable[..., Any], *given: Any) -> None:
        try:
            fields[str(place[-1])] = read(*given)
        except ValueError as error:
            raise document.error(place, str(error)) from None

    traffic: Any = data.get("traffic")
    for index, entry in enumerate(cast(list[Any], traffic) if isinstance(traffic, list) else []):
        fields = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
        for key in FILES_OF_TRAFFIC:
            if isinstance(fields.get(key), str):
                put(fields, ("traffic", index, key), beside.entries, key, fields[key])
        if isinstance(fields.get("clip"), str):
            put(fields, ("traffic", index, "clip"), beside.clip, fields["clip"])
        for key, what in OWN_OF_TRAFFIC.items():
            if own := own_name(fields.get(key), what):
                put(fields, ("traffic", index, key), bring_own, own, beside, what)
    name_metrics(data.get("measurements"))
    for section in ("network", "factors"):
        for fields, place in named_traces(data.get(section), (section,)):
            key = str(place[-1])
            # A reference to nothing is reported later.
            if not _REFERENCE.search(fields[key]):
                put(fields, place, beside.entries, key, fields[key])
        for fields, place in own_queues(data.get(section), (section,)):
            put(fields, place, bring_own, own_name(fields["of"], DISCIPLINE), beside, DISCIPLINE)
