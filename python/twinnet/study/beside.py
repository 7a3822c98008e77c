"""The files beside a study's that it names: published figures, traces of datagrams and of deliveries, sizes of
frames, own metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from twinnet.deliveries import DeliveryTrace
from twinnet.errors import BadFile
from twinnet.study.own_clip import bring_clip
from twinnet.traffic.files import parse_frame_sizes, parse_trace

__all__ = ["FILES_OF_TRAFFIC", "Beside"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.(csv|txt|trace|up|down|py)")
FILES_OF_TRAFFIC: dict[str, Callable[[str, str], list[Any]]] = {
    "trace": parse_trace,
    "frame_sizes": parse_frame_sizes,
}
"""Keys of traffic that may name a file, and what reads it."""
_READERS: dict[str, Callable[[str, str], list[Any]]] = {
    **FILES_OF_TRAFFIC,
    "delivery_trace": lambda text, name: DeliveryTrace.parse(text, name).to_spec(),
}
"""The same of all keys."""


class Beside(Mapping[str, str]):
    """The texts of files by their names, each read when it is first asked for.

    Parameters
    ----------
    read
        Reads a file by its name; raises `ValueError` or `KeyError` where that cannot be. `None` for a study that stands
        in no folder.
    """

    def __init__(self, read: Callable[[str], str] | None) -> None:
        self._read = read
        self._texts: dict[str, str] = {}
        self._entries: dict[tuple[str, str], list[Any]] = {}

    def __getitem__(self, name: str) -> str:
        """The text of the file `name`; raises `ValueError` with the reason when it cannot be read."""
        if name not in self._texts:
            if self._read is None:
                raise ValueError("a study that stands in no folder has no files beside it")
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name[:120]!r} is no name of a file beside the study's: letters, digits, - and _, and .csv,"
                    " .txt, .trace, .up, .down or .py at the end"
                )
            try:
                self._texts[name] = self._read(name)
            except KeyError:
                raise ValueError(f"there is no file {name!r} beside the study's") from None
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the files that were read."""
        return iter(self._texts)

    def __len__(self) -> int:
        """Return the number of files that were read."""
        return len(self._texts)

    def clip(self, given: str) -> str:
        """Return the name by which runs know the clip `given`, a file beside the study's or a path; raises `ValueError`
        with the reason where there is none."""
        if self._read is None:
            raise ValueError("a study that stands in no folder has no files beside it")
        known, self._texts[Path(given).name] = bring_clip(given, self._read)
        return known

    def entries(self, key: str, name: str) -> list[Any]:
        """Return the entries of the file `name` for the key `key`; raises `ValueError` with the place of
        a mistake."""
        if (key, name) not in self._entries:
            try:
                self._entries[key, name] = _READERS[key](self[name], name)
            except BadFile as error:
                raise ValueError(str(error)) from None
        return self._entries[key, name]
