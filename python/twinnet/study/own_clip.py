"""Video clips of a study's own: files that are too large to be kept with the results, which have their hash instead."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from twinnet.errors import BadValue, reason
from twinnet.given_files import open_given

__all__ = ["OwnClip", "bring_clip", "clip_file", "described_clip", "is_clip"]

_FORMS = (".avi", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm", ".y4m")
_FIRST = "twinnet clip"
_MOST_DESCRIPTION_BYTES = 5000
_PATHS: dict[str, Path] = {}
"""Where the clips are that studies of this process name, by their hashes."""


@dataclass(frozen=True)
class OwnClip:
    """A clip, as results keep it.

    Attributes
    ----------
    sha256
        The hash of the file.
    path
        Where it was.
    """

    sha256: str
    path: Path

    @property
    def text(self) -> str:
        """What stands in results in the place of the file."""
        return f"{_FIRST}\nsha256 {self.sha256}\nfile {self.path}\n"

    @classmethod
    def parse(cls, text: str) -> OwnClip:
        """Read :attr:`text`; raises `ValueError` for anything else."""
        lines = text.splitlines()
        if len(lines) != 3 or lines[0] != _FIRST or lines[1][:7] != "sha256 " or lines[2][:5] != "file ":
            raise ValueError("it is no description of a clip")
        return cls(lines[1][7:], Path(lines[2][5:]))


def is_clip(name: str) -> bool:
    """True if a file of this name is a video clip."""
    return name.lower().endswith(_FORMS)


def described_clip(path: Path) -> str:
    """The description of the clip at `path`, which may be one itself; raises `OSError`."""
    with open_given(path) as file:
        first = file.read(_MOST_DESCRIPTION_BYTES)
        if first.startswith(f"{_FIRST}\n".encode()):
            return first.decode()
        digest = hashlib.sha256(first)
        while block := file.read(1 << 20):
            digest.update(block)
        return OwnClip(digest.hexdigest(), path.resolve()).text


def bring_clip(given: str, read: Callable[[str], str]) -> tuple[str, str]:
    """Return the name of the clip `given` with its hash, as runs know it, and its description.

    Parameters
    ----------
    given
        A file beside the study's, or a path.
    read
        Reads a description by a name or a path; raises `ValueError` or `KeyError` where there is none.

    Raises
    ------
    ValueError
        It is no clip, or there is none.
    """
    name = Path(given).name
    if not is_clip(name):
        raise ValueError(f"{given[:120]!r} is no name of a clip, which ends with {', '.join(_FORMS)}")
    try:
        text = read(name)
    except (ValueError, KeyError):
        try:
            text = read(given)
        except KeyError:
            raise ValueError(f"there is no clip {given!r}") from None
    found = OwnClip.parse(text)
    _PATHS[found.sha256] = found.path
    return f"{name}@{found.sha256}", text


def clip_file(known: str) -> Path:
    """The file of the clip that runs know as `known`; raises `BadValue` where it is gone or another."""
    name, _, sha256 = known.partition("@")
    path = _PATHS[sha256]
    remedy = "put it back, or name another in the study"
    try:
        found = OwnClip.parse(described_clip(path))
    except (OSError, ValueError) as error:
        raise BadValue(f"the clip {name} cannot be read at {path}: {reason(error)}", remedy) from None
    if found.sha256 != sha256:
        raise BadValue(f"the clip {path} is not the one that the study was read with", remedy)
    return path
