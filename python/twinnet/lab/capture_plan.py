"""The settings of a capture, checked before a file is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

from twinnet.errors import BadQuantity, BadValue
from twinnet.ranges import counting_interval_ps, is_whole
from twinnet.units import Size, format_size, size_bytes

__all__ = ["CapturePlan"]

_LEAST_FILE_BYTES = 4096
_SNAP_BYTES = (14, 262_144)
_RING_FILES = (2, 10_000)


class CapturePlan:
    """A capture that is to be started.

    Parameters
    ----------
    path, limit, snap, ring, direction
        As for :meth:`twinnet.Lab.capture`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | IO[bytes],
        limit: Size | None,
        snap: Size | None,
        ring: object,
        direction: str,
    ) -> None:
        given = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
        self.stream: IO[bytes] | None = None if isinstance(path, (str, os.PathLike)) else path
        self.path: Path = Path(given if given is not None else str(getattr(path, "name", "stream")))
        if direction not in ("both", "in", "out"):
            raise BadValue(f"the direction is {direction!r}; allowed are 'both', 'in' and 'out'")
        if limit is not None and ring is not None:
            raise BadValue("a capture has a limit or a ring", "leave limit out: a ring is bounded by its files")
        if self.stream is not None and ring is not None:
            raise BadValue("a ring needs the path of its files, not a stream", "leave ring out, or give a path")
        snap_bytes = size_bytes(snap, "snap") if snap is not None else None
        least, most = _SNAP_BYTES
        if snap_bytes is not None and not least <= snap_bytes <= most:
            raise BadQuantity(f"the snap {snap!r} is out of range; allowed are {least} B to {format_size(most)}")
        self.ring: dict[str, Any] | None = None if ring is None else _ring_spec(ring)
        self.settings: dict[str, Any] = {
            "limit_bytes": None if limit is None else _file_bytes(limit, "limit"),
            "snap": snap_bytes,
            "ring": self.ring,
            "direction": direction,
        }

    @property
    def name(self) -> str:
        """The file's name in its folder."""
        return self.path.name

    def open(self) -> int:
        """Return a descriptor of the file (empty), of the stream, or of the folder of a ring's files; raises
        `BadValue`."""
        if self.stream is not None:
            return self._duplicate(self.stream)
        try:
            if self.ring is None:
                return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            self._refuse_earlier_ring()
            return os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise BadValue(f"the capture file {str(self.path)!r} cannot be written: {error.strerror}") from None

    @staticmethod
    def _duplicate(stream: IO[bytes]) -> int:
        try:
            stream.flush()
            return os.dup(stream.fileno())
        except (OSError, ValueError) as error:
            raise BadValue(
                f"the stream cannot take a capture: {error}", "give a path, or a binary file or pipe that is open"
            ) from None

    def _refuse_earlier_ring(self) -> None:
        dot = self.path.suffix
        pattern = re.compile(re.escape(self.path.name.removesuffix(dot)) + r"-[0-9]{8,}" + re.escape(dot))
        earlier = sorted(one.name for one in self.path.parent.iterdir() if pattern.fullmatch(one.name))
        if earlier:
            raise BadValue(
                f"{earlier[0]} is there already, of an earlier ring", "remove its files, or choose another name"
            )


def _file_bytes(text: Size, what: str) -> int:
    found = size_bytes(text, what)
    if found < _LEAST_FILE_BYTES:
        raise BadQuantity(f"the {what} {text!r} is too small for a capture", f"give at least {_LEAST_FILE_BYTES} B")
    return found


def _ring_spec(ring: object) -> dict[str, Any]:
    pair = tuple(cast("Sequence[object]", ring)) if isinstance(ring, (tuple, list)) else ()
    if len(pair) != 2 or not isinstance(pair[1], str):
        raise BadValue(
            f"the ring is {ring!r}", 'give how many files, and when one is full: (10, "50 MB") or (24, "1 h")'
        )
    files, full = pair[0], str(pair[1])
    least, most = _RING_FILES
    if not is_whole(files, least, most):
        raise BadValue(f"the ring has {files!r} files; allowed are {least} to {most}")
    if re.search(r"[0-9.\s](?:[kKMGT]i?)?B\s*\Z", full):
        return {"files": files, "bytes": _file_bytes(full, "ring"), "duration_ps": None}
    return {"files": files, "bytes": None, "duration_ps": counting_interval_ps(full, "ring")}
