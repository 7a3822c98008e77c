"""Traces of datagrams: a gap and a payload on each line."""

from __future__ import annotations

from pathlib import Path

from twinnet.errors import BadFile, BadValue
from twinnet.units import duration_ps, size_bytes

__all__ = ["read_trace"]

_MOST_ENTRIES = 1_000_000


def read_trace(path: Path) -> list[tuple[str, str]]:
    """Return the entries of a trace: each line has the time since the datagram before and the payload, such as
    ``2 ms, 1000 B``; empty lines and what follows ``#`` are left out.

    Raises
    ------
    BadFile
        It cannot be read; the message names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} cannot be read: {error}") from None
    found: list[tuple[str, str]] = []
    for number, line in enumerate(lines, 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        parts = [part.strip() for part in content.split(",")]
        if len(parts) != 2:
            raise BadFile(f"{path}, line {number}: {content!r} is no gap and payload; write for example 2 ms, 1000 B")
        try:
            duration_ps(parts[0], "gap")
            size_bytes(parts[1], "payload")
        except BadValue as error:
            raise BadFile(f"{path}, line {number}: {error}") from None
        found.append((parts[0], parts[1]))
        if len(found) > _MOST_ENTRIES:
            raise BadFile(f"{path} has more than {_MOST_ENTRIES} entries")
    if not found:
        raise BadFile(f"{path} has no entries")
    return found
