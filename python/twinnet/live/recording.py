"""What a lab did while it was watched, as one file: HTML that a browser shows without twinnet and without a network, or
a table in Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinnet.errors import BadValue
from twinnet.live.page_text import page_with, put, read_page_file, script_of
from twinnet.shown_text import shown_json

__all__ = ["Recording"]

_MOST_BYTES = 64 * 1024 * 1024
_TICKS_AT_ONCE = 1000
_COLUMNS = {
    "time_s": float,
    "port": str,
    "to": str,
    "rate_bps": float,
    "load": float,
    "queue_frames": int,
    "drops_per_s": float,
    "marks_per_s": float,
    "up": bool,
}
"""Of the table; as those of the page's CSV."""


class Recording:
    """The looks at a lab, for the file `out`: a table if its name ends in ``.parquet``, and else HTML.

    Parameters
    ----------
    network
        The network as :func:`~twinnet.live.watch.network_record` gives it.
    out
        Where :meth:`write` puts the file; ``None`` for a page that is only served.

    Raises
    ------
    BadValue
        No file can be written there.
    """

    def __init__(self, network: Mapping[str, Any], out: str | os.PathLike[str] | None) -> None:
        self._network = network
        self._out = Path(os.devnull if out is None else os.fspath(out))
        self._ticks: list[str] = []
        self._bytes = 0
        self._cut_s: float | None = None
        if out is not None and (self._out.is_dir() or not os.access(self._out.parent, os.W_OK)):
            raise BadValue(f"no file can be written at {self._out}", "name a file in a folder that is there: run.html")

    @property
    def is_page(self) -> bool:
        """True if it is to be a page, and no table."""
        return self._out.suffix != ".parquet"

    def know(self, **more: Any) -> None:
        """Take what is known besides of the network: ``traffic``, as :mod:`~twinnet.live.kept_traffic` gives it, and
        ``followed``, the ways of flows: ``words``, ``at_s`` and ``way`` of each."""
        self._network = {**self._network, **more}

    def add(self, tick: Mapping[str, Any]) -> None:
        """Keep a look of :class:`~twinnet.live.watch.LabWatch`; beyond 64 MB of them none is kept."""
        text = shown_json(tick)
        if self._cut_s is None and self._bytes + len(text) > _MOST_BYTES:
            self._cut_s = float(tick["now_s"])
        if self._cut_s is None:
            self._ticks.append(text)
            self._bytes += len(text)

    def write(self, acts: Sequence[Mapping[str, Any]] = (), beside: Mapping[str, Any] | None = None) -> None:
        """Write the file, in the place of one that is there. A table has the looks alone.

        Parameters
        ----------
        acts
            What the page has changed.
        beside
            Another recording of a network with the same links, to be seen with this one: ``name`` and ``ticks``.
        """
        partial = self._out.with_name(f".{self._out.name}.partial")
        if self.is_page:
            partial.write_text(self._whole_page(acts, beside), encoding="utf-8")
        else:
            self._write_table(partial)
        partial.replace(self._out)

    def _whole_page(self, acts: Sequence[Mapping[str, Any]], beside: Mapping[str, Any] | None) -> str:
        return put(
            self._page(acts, beside, f'<script type="module">\n{script_of("replay")}</script>'),
            ('<link rel="icon" href="icon.svg">', ""),
            ('<link rel="stylesheet" href="page.css">', f"<style>\n{read_page_file('page.css')}</style>"),
        )

    def _write_table(self, path: Path) -> None:
        """Write a row for each port and look, with the columns of the page's CSV."""
        import polars as pl

        links = self._network["links"]
        ends = [(link[f"{here}_port"], link[there]) for link in links for here, there in ("ab", "ba")]
        # Some looks at a time: as rows they take many times what their texts do.
        frames = [pl.DataFrame(schema=_COLUMNS)]
        for first in range(0, len(self._ticks), _TICKS_AT_ONCE):
            rows = [
                (
                    tick["now_s"],
                    *end,
                    rate,
                    load,
                    queue,
                    dropped / tick["elapsed_s"],
                    _marks(rest) / tick["elapsed_s"],
                    up,
                )
                for tick in map(json.loads, self._ticks[first : first + _TICKS_AT_ONCE])
                for end, (rate, load, queue, dropped, up, *rest) in zip(ends, tick["ways"], strict=True)
            ]
            frames.append(pl.DataFrame(rows, schema=_COLUMNS, orient="row"))
        pl.concat(frames).write_parquet(path)

    def served(self) -> str:
        """The page for a server that has the page's files, too."""
        return self._page((), None, '<script type="module" src="replay.js"></script>')

    def _page(self, acts: Sequence[Mapping[str, Any]], beside: Mapping[str, Any] | None, script: str) -> str:
        rest = shown_json({"network": self._network, "cut_s": self._cut_s, "acts": list(acts), "beside": beside})
        content = f'{rest[:-1]},"ticks":[{",".join(self._ticks)}]}}'
        return page_with("recording", content, script)


def _marks(rest: Sequence[Any]) -> float:
    """The marks of a direction, of which `rest` has the line rate and what is behind it."""
    return rest[1].get("marks", 0) if len(rest) > 1 else 0
