"""Where the nodes of a page stand: kept in one file, which whoever started the page has named."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinnet.drawing.positions import keep_position
from twinnet.errors import UnknownNode, did_you_mean

__all__ = ["Places"]


class Places:
    """The places of the nodes of `network`, which is told to browsers, kept in `file`. Threads may share it."""

    def __init__(self, network: dict[str, Any], file: Path) -> None:
        network["keeps_places"] = True
        self._nodes: dict[str, dict[str, Any]] = {node["name"]: node for node in network["nodes"]}
        self._file = file
        self._lock = threading.Lock()

    def keep(self, asked: Mapping[str, Any]) -> None:
        """Keep the place ``x``, ``y`` (in cells) of the ``node`` that was dragged.

        Raises
        ------
        UnknownNode, BadValue
            There is no such node, it cannot stand there, or the file cannot be written.
        """
        name = str(asked.get("node"))
        if name not in self._nodes:
            raise UnknownNode(f"the network has no node {name!r}", did_you_mean(name, self._nodes))
        with self._lock:
            x, y = keep_position(self._file, name, asked.get("x"), asked.get("y"))
            self._nodes[name] |= {"x": x, "y": y}
