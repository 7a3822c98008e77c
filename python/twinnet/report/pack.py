"""Packs of results: one file that a reviewer checks with one command.

A pack is a ZIP archive of the results of a study (its file, the files beside it, each run's record and tables) with a
manifest: the hash of every file, the versions that made it, and what it came to. Captures that runs kept are in it.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from twinnet.errors import BadValue
from twinnet.report.pack_manifest import FORMAT, MANIFEST
from twinnet.report.summary import summary_record
from twinnet.report.unpacked import hash_of
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.kept_captures import captures_in
from twinnet.study.store import ResultStore

__all__ = ["came_to", "version", "write_pack"]

_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same results make the same pack."""


def write_pack(folder: Path, out: Path) -> Path:
    """Write the results in `folder` into the pack `out`.

    Raises
    ------
    BadValue
        There are no results, runs are missing, or `out` cannot be written.
    CodeNotRun
        The study has metrics of its own that nobody has asked to be run here: the manifest has what they come to.
    """
    analysis = analyse(ResultStore(folder))
    missing = len(analysis.planned) - len(analysis.stored)
    if missing:
        raise BadValue(
            f"{missing} of {len(analysis.planned)} runs are not finished",
            f"make them first: twinnet run {folder}/study.yaml",
        )
    files = {path.relative_to(folder).as_posix(): path for path in _files(folder, analysis)}
    manifest = {
        "format": FORMAT,
        "study": analysis.study.name,
        "twinnet": version(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "came_to": came_to(analysis),
        "files": {name: hash_of(path) for name, path in sorted(files.items())},
    }
    try:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, MANIFEST, json.dumps(manifest, indent=1).encode())
            for name, path in sorted(files.items()):
                _add(archive, name, path.read_bytes())
    except OSError as error:
        raise BadValue(f"{out} cannot be written: {error}", "give another place with --out") from None
    return out


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _files(folder: Path, analysis: Analysis) -> Iterator[Path]:
    """The files that belong to the results: of other settings' runs, and of reports, there are none."""
    yield from (folder / name for name in ("study.yaml", "study.json", *analysis.study.beside))
    for run in analysis.stored:
        own = folder / run
        yield from sorted(path for path in own.iterdir() if path.name == "run.json" or path.suffix == ".parquet")
        yield from captures_in(own)


def came_to(analysis: Analysis) -> dict[str, Any]:
    """Return what the results come to, without the place where they stand; raises as what is evaluated does."""
    record = cast("dict[str, Any]", json.loads(json.dumps(summary_record(analysis), default=str)))
    return {key: value for key, value in record.items() if key != "results"}


def version() -> str:
    """Return the version of twinnet."""
    from twinnet import __version__

    return __version__
