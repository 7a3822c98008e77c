"""Completion at the prompt: commands, nodes, programs of hosts and files."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from twinnet.cli.prompt.session import COMMANDS
from twinnet.lab.lab import Lab
from twinnet.network.link_settings import SETTINGS
from twinnet.qos import Queue

__all__ = ["candidates"]

_OUTSIDE = ("sh", "!", "x")
_WORDS = {"flow": ("add", "del"), "dpctl": ("add-flow", "del-flows", "dump-flows"), "learnt": ("fdb/show", "fdb/flush")}
"""Words that may follow some commands."""


def candidates(lab: Lab, before: str) -> list[str]:
    """Return what can follow the line `before`, its last word as it is typed so far."""
    words = before.split(" ")
    typed, earlier = words[-1], [word for word in words[:-1] if word]
    if earlier[:1] == ["time"]:
        return candidates(lab, before.lstrip().removeprefix("time").lstrip())
    if not earlier:
        found = [*COMMANDS, *lab.layout.names("host")]
    elif earlier[0] in lab.layout.names("host") or earlier[0] in _OUTSIDE:
        first = len(earlier) == 1 or earlier[-1] in ("|", "&&", ";", "sudo")
        found = _runnable(typed) if first else [*lab.layout.nodes, *_files(typed)]
        if earlier == ["x"]:
            found = lab.layout.names("host")
    elif earlier[0] in COMMANDS:
        kinds = COMMANDS[earlier[0]].follows
        found = _of_kind(lab, kinds[min(len(earlier) - 1, len(kinds) - 1)], typed) if kinds else []
    else:
        found = list(lab.layout.nodes)
    return sorted({one for one in found if one.startswith(typed)})


def _of_kind(lab: Lab, kind: str, typed: str) -> list[str]:
    if kind in ("interface", "port"):
        names = [port["name"] for node in lab.layout.nodes.values() for port in node.get("ports", ())]
        return ["stop", *names] if kind == "interface" else names
    if kind == "queue":
        return list(Queue.kinds())
    if kind == "setting":
        return [*SETTINGS, "down", "direction", "queue"]
    if kind in _WORDS:
        return list(_WORDS[kind])
    if kind == "file":
        return _files(typed)
    if kind == "command":
        return list(COMMANDS)
    return list(lab.layout.nodes) if kind == "node" else lab.layout.names(kind)


def _runnable(typed: str) -> list[str]:
    """Programs: those of the path, and files where a path is typed."""
    return _files(typed) if "/" in typed else list(_programs(os.environ.get("PATH", os.defpath)))


@cache
def _programs(path: str) -> frozenset[str]:
    found: set[str] = set()
    for folder in filter(None, path.split(os.pathsep)):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        found.update(one.name for one in entries if os.access(one.path, os.X_OK) and not one.is_dir())
    return frozenset(found)


def _files(typed: str) -> list[str]:
    """Files whose path begins as `typed`, folders with a stroke behind; hidden ones only when their dot is typed."""
    folder, stroke, name = typed.rpartition("/")
    place = Path(folder + stroke).expanduser() if stroke else Path()
    try:
        entries = list(os.scandir(place))
    except (OSError, RuntimeError):
        return []
    shown = [one for one in entries if not one.name.startswith(".") or name.startswith(".")]
    return [f"{folder}{stroke}{one.name}{'/' if one.is_dir() else ''}" for one in shown]
