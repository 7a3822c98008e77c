"""Hosts with files and limits of their own: images are looked for, and control groups made, before a lab is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinnet.errors import BadValue, NotAvailable
from twinnet.lab_process.control_groups import ControlGroups

__all__ = ["commands_of", "limit_programs", "look_for_images", "refuse_own"]

_KINDS = {"image": "the files of an image", "limits": "limits for its programs"}
_PERIOD_US = 100_000


def look_for_images(nodes: Iterable[dict[str, Any]]) -> None:
    """Put into `nodes` where their images are, unpacked, and what these say of programs.

    Raises
    ------
    BadValue
        An image or the source of a volume is not here.
    """
    for node in nodes:
        wanted = node.get("image")
        if wanted is None:
            continue
        # Most labs have no container, and archives take time to import.
        from twinnet.lab_process.images import find_image

        image = find_image(wanted["name"])
        node["image"] = {
            **wanted,
            "name": str(Path(wanted["name"]).resolve()) if Path(wanted["name"]).exists() else wanted["name"],
            "root": str(image.root),
            "folder": image.folder,
            "variables": image.variables(),
            "volumes": [{**one, "source": _here(one["source"])} for one in wanted["volumes"]],
        }


def _here(source: str) -> str:
    path = Path(source).expanduser()
    if not path.exists():
        raise BadValue(f"the volume's source {source} is not here", "make it first")
    return str(path.resolve())


def limit_programs(nodes: Iterable[dict[str, Any]], groups: ControlGroups) -> None:
    """Make the groups that limit the programs of `nodes`, and put into these where they are.

    Raises
    ------
    NotAvailable
        That is not permitted.
    """
    for node in nodes:
        limits = node.get("limits")
        if limits is None:
            continue
        made: list[Path] = []
        try:
            if (processors := limits["processors"]) is not None:
                made.append(groups.processors(node["name"], round(processors * _PERIOD_US), _PERIOD_US))
            if (memory := limits["memory_bytes"]) is not None:
                made.append(groups.memory(node["name"], memory))
        except OSError as refused:
            raise NotAvailable(
                f"the programs of {node['name']} cannot be limited: {refused.strerror}: {refused.filename}",
                "run twinnet as root where control groups may be made, or leave processors and memory away",
            ) from None
        node["limits"] = {**limits, "groups": list(dict.fromkeys(str(one) for one in made))}


def refuse_own(nodes: Iterable[Mapping[str, Any]], where: str) -> None:
    """Raise `NotAvailable` when a host has an image or limits: there are none in the labs that `where` names."""
    for node in nodes:
        for key, what in _KINDS.items():
            if node.get(key) is not None:
                raise NotAvailable(
                    f"{node['name']} has {what}, which hosts {where} cannot have",
                    "leave that away, or use net.emulate() on one machine",
                )


def commands_of(nodes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Hosts of `nodes` and the programs that run in them from the start."""
    for node in nodes:
        if (image := node.get("image")) is not None and image["command"]:
            yield node["name"], image["command"]
