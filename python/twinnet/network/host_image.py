"""The image of a container as the files of a host, in the form of the lab protocol."""

# What callers give is checked when the program runs, whatever its annotations promise.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from twinnet.errors import BadValue
from twinnet.network.host_settings import HostOptions

__all__ = ["image_spec", "read_volume"]

_OF_IMAGES = ("volumes", "environment", "command")


def image_spec(given: HostOptions) -> dict[str, Any] | None:
    """Return the image that `given` names, for which nobody has looked yet; ``None``: the host has the machine's
    files."""
    name = given.get("image")
    if name is None:
        if alone := next((setting for setting in _OF_IMAGES if given.get(setting)), None):
            raise BadValue(f"{alone} is given to a host without an image", f"give image too, or leave {alone} away")
        return None
    if not isinstance(name, str) or not name:
        raise BadValue(f"the image is {name!r}", 'name a folder, an archive or an image, such as image="image.tar"')
    if given.get("model"):
        raise BadValue("a model runs no programs, and has no image", "leave model or image away")
    volumes = given.get("volumes") or ()
    if isinstance(volumes, str):
        raise BadValue(f"the volumes are {volumes!r}", "give a list, such as ['data:/data']")
    return {
        "name": name,
        "root": None,
        "folder": None,
        "variables": {},
        "environment": _variables(given.get("environment") or {}),
        "volumes": [read_volume(one) for one in volumes],
        "command": _words(given.get("command") or ""),
    }


def read_volume(text: str) -> dict[str, Any]:
    """Return the volume ``SOURCE:TARGET`` or ``SOURCE:TARGET:ro`` (or ``:rw``) in the form of the lab protocol."""
    parts = text.split(":") if isinstance(text, str) else []
    source, target, way = (*parts, "rw")[:3] if len(parts) in (2, 3) else ("", "", "")
    if not source or not target.startswith("/") or way not in ("ro", "rw"):
        raise BadValue(
            f"the volume {text!r} is not SOURCE:TARGET or SOURCE:TARGET:ro", "write for example data:/data:ro"
        )
    return {"source": source, "target": target, "read_only": way == "ro"}


def _variables(given: Mapping[str, str | int]) -> dict[str, str]:
    for name in given:
        if not isinstance(name, str) or not name or "=" in name:
            raise BadValue(f"{name!r} is no name of a variable", "write names without =")
    return {name: str(value) for name, value in given.items()}


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except (ValueError, AttributeError) as fault:
        raise BadValue(f"the command {command!r} cannot be split into words: {fault}") from None
