"""What a lab did while it was watched, as one HTML file that a browser shows without twinnet and without a network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinnet.errors import BadValue

__all__ = ["Recording"]

_PAGE = Path(__file__).parent / "page"
_SCRIPTS = ("units.js", "picture.js", "curves.js", "player.js", "view.js", "replay.js")
"""The page's modules, each behind those that it imports."""
_MOST_BYTES = 64 * 1024 * 1024
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


class Recording:
    """The looks at a lab, for the file `out`.

    Parameters
    ----------
    network
        The network as :func:`~twinnet.live.watch.network_told` gives it.
    out
        Where :meth:`write` puts the file.

    Raises
    ------
    BadValue
        No file can be written there.
    """

    def __init__(self, network: Mapping[str, Any], out: str | os.PathLike[str]) -> None:
        self._network = network
        self._out = Path(os.fspath(out))
        self._ticks: list[str] = []
        self._bytes = 0
        self._cut_s: float | None = None
        if self._out.is_dir() or not os.access(self._out.parent, os.W_OK):
            raise BadValue(f"no file can be written at {self._out}", "name a file in a folder that is there: run.html")

    def add(self, tick: Mapping[str, Any]) -> None:
        """Keep a look of :class:`~twinnet.live.watch.LabWatch`; beyond 64 MB of them none is kept."""
        text = json.dumps(tick, separators=(",", ":"))
        if self._cut_s is None and self._bytes + len(text) > _MOST_BYTES:
            self._cut_s = float(tick["now_s"])
        if self._cut_s is None:
            self._ticks.append(text)
            self._bytes += len(text)

    def write(self) -> None:
        """Write the file, in the place of one that is there."""
        network, cut = (json.dumps(one, separators=(",", ":")) for one in (self._network, self._cut_s))
        told = f'{{"network":{network},"cut_s":{cut},"ticks":[{",".join(self._ticks)}]}}'
        script = "\n".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in _SCRIPTS)
        page = _read("page.html")
        # Names of a network are text of whoever described it: no markup begins in them.
        told = told.replace("<", "\\u003c")
        data = f'<script id="recording" type="application/json">{told}</script>'
        for link, inline in (
            ('<link rel="icon" href="icon.svg">', ""),
            ('<link rel="stylesheet" href="page.css">', f"<style>\n{_read('page.css')}</style>"),
            ('<script type="module" src="page.js"></script>', f'{data}\n<script type="module">\n{script}</script>'),
        ):
            head, found, tail = page.partition(link)
            assert found, link
            page = head + inline + tail
        partial = self._out.with_name(f".{self._out.name}.partial")
        partial.write_text(page, encoding="utf-8")
        partial.replace(self._out)


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")
