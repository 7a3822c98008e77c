"""Files that tell traffic: traces of a gap and a payload on each line, and sizes of frames, one on each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twinnet.errors import BadFile, BadValue, reason
from twinnet.given_files import read_given_text
from twinnet.ranges import way_ps
from twinnet.units import size_bytes

__all__ = ["parse_frame_sizes", "parse_trace", "read_frame_sizes", "read_trace"]

_MOST_ENTRIES = 1_000_000
_MOST_BYTES = 50_000_000
_PAYLOADS = range(8, 65_508)
_FRAMES = range(1, 100_000_001)


def read_trace(path: Path) -> list[tuple[str, str]]:
    """Return the entries of a trace: each line has the time since the datagram before and the payload, such as
    ``2 ms, 1000 B``; empty lines and what follows ``#`` are left out.

    Raises
    ------
    BadFile
        It cannot be read; the message names the line.
    """
    return parse_trace(_text(path), str(path))


def parse_trace(text: str, name: str) -> list[tuple[str, str]]:
    """Return the entries of the trace `text`, which messages call `name`; raises as :func:`read_trace`."""
    found: list[tuple[str, str]] = []
    for place, content in _lines(text, name):
        parts = [part.strip() for part in content.split(",")]
        if len(parts) != 2:
            raise BadFile(f"{place}: {content[:60]!r} is no gap and payload; write for example 2 ms, 1000 B")
        try:
            way_ps(parts[0], "gap")
            size = size_bytes(parts[1], "payload")
        except BadValue as error:
            raise BadFile(f"{place}: {error}") from None
        if size not in _PAYLOADS:
            raise BadFile(f"{place}: the payload {parts[1]!r} is out of range; allowed are 8 B to 65507 B")
        found.append((parts[0], parts[1]))
    return found


def read_frame_sizes(path: Path) -> list[str]:
    """Return the sizes of frames, one on each line, such as ``5 kB``; empty lines and what follows ``#`` are left out.

    Raises
    ------
    BadFile
        It cannot be read; the message names the line.
    """
    return parse_frame_sizes(_text(path), str(path))


def parse_frame_sizes(text: str, name: str) -> list[str]:
    """Return the sizes in `text`, which messages call `name`; raises as :func:`read_frame_sizes`."""
    found: list[str] = []
    for place, content in _lines(text, name):
        try:
            size = size_bytes(content, "frame size")
        except BadValue as error:
            raise BadFile(f"{place}: {error}") from None
        if size not in _FRAMES:
            raise BadFile(f"{place}: the frame size {content!r} is out of range; allowed are 1 B to 100 MB")
        found.append(content)
    return found


def _text(path: Path) -> str:
    try:
        return read_given_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} cannot be read: {reason(error)}") from None


def _lines(text: str, name: str) -> Iterator[tuple[str, str]]:
    """The lines that say something, each with its place."""
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        count += 1
        if count > _MOST_ENTRIES:
            raise BadFile(f"{name} has more than {_MOST_ENTRIES} entries")
        yield f"{name}, line {number}", content
    if count == 0:
        raise BadFile(f"{name} has no entries")
