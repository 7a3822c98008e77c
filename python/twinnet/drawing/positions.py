"""Places of nodes that somebody chose, kept beside the network's file: ``network.yaml`` has its places in
``network.positions.json``, each as ``"s1": [x, y]`` in cells."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from twinnet.drawing.placing import Place
from twinnet.errors import BadValue
from twinnet.given_files import given_json, read_given

__all__ = ["keep_position", "positions_beside", "read_positions"]

_MOST_BYTES = 1_000_000
_MOST_CELLS = 100_000.0


def positions_beside(network_file: str | os.PathLike[str]) -> Path:
    """Return the file with the places of the network in `network_file`."""
    return Path(network_file).with_suffix(".positions.json")


def read_positions(file: str | os.PathLike[str]) -> dict[str, Place]:
    """Return the places in `file` by the names of nodes; none where there is no such file.

    Raises
    ------
    BadValue
        It holds something else.
    """
    path = Path(file)
    if not path.exists():
        return {}
    try:
        found: object = given_json(read_given(path, _MOST_BYTES))
        places = cast("Mapping[str, list[float]]", found)
        return {str(name): _place(*one) for name, one in places.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise BadValue(
            f"{path} holds no places of nodes",
            'write an object such as {"s1": [2.0, 0.0]}, in cells from 0; or remove the file',
        ) from None


def keep_position(file: str | os.PathLike[str], name: str, x: object, y: object) -> Place:
    """Put the place `x`, `y` of the node `name` into `file`, beside those that it has, and return it.

    Raises
    ------
    BadValue
        It is no place, the file holds something else, or it cannot be written.
    """
    path = Path(file)
    try:
        place = _place(x, y)
    except (ValueError, TypeError):
        raise BadValue(f"{name} cannot stand at {x!r}, {y!r}", "give two numbers of cells, from 0") from None
    places = read_positions(path) | {name: place}
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(json.dumps(places, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise BadValue(f"{path} cannot be written: {error.strerror}", "choose another file") from None
    return place


def _place(x: object, y: object) -> Place:
    for one in (x, y):
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one <= _MOST_CELLS:
            raise ValueError
    return round(cast(float, x), 3), round(cast(float, y), 3)
