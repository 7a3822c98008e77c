"""A pack of somebody else, unpacked: names, number and sizes of what is in it have bounds, and nothing is written
outside the folder that was given."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from twinnet.errors import BadValue, reason
from twinnet.given_files import open_given
from twinnet.report.pack_manifest import MANIFEST, Manifest, read_manifest

__all__ = ["MOST_BYTES", "hash_of", "unpack"]

MOST_BYTES = 4 << 30
"""What a pack may unpack to where nobody allows more."""
_MOST_FILES = 1_000_000
_MOST_MANIFEST_BYTES = 256 << 20
_MOST_JSON_BYTES = 32 << 20
_LEAST_JSON_BYTES = 1 << 20
_MOST_RATIO = 50
"""How many times its own size a pack may unpack to: tables are compressed already, and records to a tenth."""
_SMALL_BYTES = 100_000_000
"""Up to this, the ratio does not matter."""
_CHUNK = 1 << 20
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+ -]{0,199}")
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)


def unpack(pack: Path, into: Path, most_bytes: int | None = None) -> Manifest:
    """Unpack `pack` into the empty folder `into`, and return its manifest.

    Parameters
    ----------
    pack, into
        The archive, and where its files go.
    most_bytes
        The most that it may unpack to; default: 4 GiB, and no more than 50 times the pack from 100 MB on.

    Raises
    ------
    BadValue
        It is no pack, is larger, or holds what no results have.
    """
    if not pack.is_file():
        raise BadValue(f"there is no file {pack}", "name a pack that `twinnet pack RESULTS` wrote")
    try:
        with open_given(pack) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_sizes(pack, entries, most_bytes)
            _check_names(entries)
            manifest = read_manifest(archive.read(MANIFEST))
            names = {one.filename for one in entries} - {MANIFEST}
            if names != set(manifest.files):
                odd = sorted(names ^ set(manifest.files))[0]
                raise ValueError(f"it and its manifest differ about {odd!r:.200}")
            for name in sorted(names):
                _extract(archive, name, into)
            return manifest
    except BadValue:
        raise
    except _UNREADABLE as error:
        said = reason(error) if isinstance(error, OSError) else error.args[0] if error.args else type(error).__name__
        raise BadValue(f"{pack} is no pack of results: {said}", "`twinnet pack RESULTS` writes one") from None


def _check_sizes(pack: Path, entries: list[zipfile.ZipInfo], most_bytes: int | None) -> None:
    whole, own = sum(one.file_size for one in entries), pack.stat().st_size
    told = f"{pack} ({_megabytes(own)}) unpacks to {len(entries)} files of {_megabytes(whole)}"
    if len(entries) > _MOST_FILES:
        raise BadValue(told, f"a pack may hold {_MOST_FILES}")
    if whole > (MOST_BYTES if most_bytes is None else most_bytes):
        raise BadValue(told, "if you trust who made it, allow that: --most SIZE")
    if most_bytes is None and whole > _SMALL_BYTES and whole > own * _MOST_RATIO:
        raise BadValue(
            f"{told}, {whole // max(own, 1)} times its size, where results have ten times at most",
            "if you trust who made it, allow that: --most SIZE",
        )
    for one in entries:
        # JSON takes many times its size in memory.
        most = min(_MOST_MANIFEST_BYTES, _LEAST_JSON_BYTES + _MOST_RATIO * own)
        if one.filename.endswith(".json") and one.file_size > (most if one.filename == MANIFEST else _MOST_JSON_BYTES):
            raise ValueError(f"{one.filename!r:.200} in it has {_megabytes(one.file_size)}")
    if (count := sum(one.filename == MANIFEST for one in entries)) != 1:
        raise ValueError(f"it has {count} files {MANIFEST}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.3g} MB"


def _check_names(entries: list[zipfile.ZipInfo]) -> None:
    """Each name once, whatever its case, of the kind that results have: files of runs, three folders deep at most."""
    seen: set[str] = set()
    for one in entries:
        parts = PurePosixPath(one.filename).parts
        plain = "/".join(parts) == one.filename and all(_PART.fullmatch(part) for part in parts)
        if not 1 <= len(parts) <= 3 or not plain or parts[-1].endswith((" ", ".")):
            raise ValueError(f"it holds {one.filename!r:.200}, which no results have")
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{one.filename!r:.200} in it is compressed in another way than results are")
        kind = stat.S_IFMT(one.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or one.is_dir():
            raise ValueError(f"{one.filename!r:.200} in it is no file")
        if one.filename.casefold() in seen:
            raise ValueError(f"it holds {one.filename!r:.200} twice")
        seen.add(one.filename.casefold())


def _extract(archive: zipfile.ZipFile, name: str, into: Path) -> None:
    target = into.joinpath(*PurePosixPath(name).parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x": no entry is written over another, nor through a link.
    with archive.open(name) as source, target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            out.write(chunk)


def hash_of(path: Path) -> str:
    """Return the SHA-256 of the file at `path`."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
