"""Files that somebody gave: opened without waiting, regular files only, and read up to a bound; and JSON in them.

A pipe has no end until its writer closes it, and a device may have none at all: neither is waited for.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

__all__ = ["given_json", "open_given", "read_given", "read_given_text"]

_DEEPEST = 100
_MOST_DIGITS = 40

_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def open_given(path: str | os.PathLike[str]) -> BinaryIO:
    """Open the regular file at `path` for reading.

    Raises
    ------
    OSError
        It cannot be opened, or is no regular file (`EISDIR`, else `EINVAL`).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            number = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
            raise OSError(
                number, f"it is {_KINDS.get(kind, 'something else')}, and not a regular file", os.fspath(path)
            )
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_given(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the content of the regular file at `path`, of at most `most_bytes` bytes.

    Raises
    ------
    OSError
        As :func:`open_given`; it cannot be read, or is larger (`EFBIG`).
    """
    with open_given(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes", os.fspath(path))
    return content


def read_given_text(path: str | os.PathLike[str], most_bytes: int, encoding: str = "utf-8-sig") -> str:
    """Return the text of the regular file at `path`, as ``Path.read_text`` does.

    Raises
    ------
    OSError
        As :func:`read_given`.
    UnicodeDecodeError
        It is no text in `encoding`.
    """
    with io.TextIOWrapper(io.BytesIO(read_given(Path(path), most_bytes)), encoding) as text:
        return text.read()


def given_json(text: str | bytes) -> Any:
    """Return what the JSON `text` says: nested at most 100 deep, with finite numbers, whole ones of at most 40 digits.

    Raises
    ------
    ValueError
        It is no such JSON.

    Examples
    --------
    >>> given_json('{"runs": [1, 2.5]}')
    {'runs': [1, 2.5]}
    >>> given_json("[1e999]")
    Traceback (most recent call last):
    ValueError: 1e999 is no number that is finite
    """
    try:
        found: object = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [found]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _parts(one)]
        if not level:
            break
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError(_TOO_DEEP)
    return found


_TOO_DEEP = f"it is nested more than {_DEEPEST} deep"


def _parts(value: object) -> Iterable[object]:
    """What is in an object or a list; nothing is in another value."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"{digits[:40]}... has more than {_MOST_DIGITS} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is no number that is finite")
    return number
