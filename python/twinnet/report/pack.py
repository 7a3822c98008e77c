"""Packs of results: one file that a reviewer checks with one command.

A pack is a ZIP archive of the results of a study (its file, the files beside it, each run's record and tables) with a
manifest: the hash of every file, the versions that made it, and what it came to. Captures that runs kept are in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from twinnet.errors import BadValue, TwinnetError
from twinnet.report.summary import summary_record
from twinnet.results.tables import TABLES
from twinnet.study.analysis import Analysis, analyse
from twinnet.study.kept_captures import captures_in
from twinnet.study.plan import PlannedRun
from twinnet.study.runner import Executor, Progress
from twinnet.study.store import ResultStore, StoredRun

__all__ = ["CheckedPack", "check_pack", "write_pack"]

MANIFEST = "MANIFEST.json"
FORMAT = 1
_MOST_FILES = 1_000_000
_MOST_BYTES = 64 << 30
_MOST_MANIFEST_BYTES = 256 << 20
_CHUNK = 1 << 20
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+ -]{0,199}")
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same results make the same pack."""


def write_pack(folder: Path, out: Path) -> Path:
    """Write the results in `folder` into the pack `out`.

    Raises
    ------
    BadValue
        There are no results, runs are missing, or `out` cannot be written.
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
        "twinnet": _version(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "came_to": _came_to(analysis),
        "files": {name: _hash(path) for name, path in sorted(files.items())},
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


def _came_to(analysis: Analysis) -> dict[str, Any]:
    """What the results come to, without the place where they stand."""
    record = cast("dict[str, Any]", json.loads(json.dumps(summary_record(analysis), default=str)))
    return {key: value for key, value in record.items() if key != "results"}


@dataclass
class CheckedPack:
    """The outcome of checking a pack.

    Attributes
    ----------
    study
        The study's name.
    made_by
        The version of twinnet that made the pack.
    files
        How many files have the hash that the manifest gives.
    runs
        How many runs are in it.
    again
        The runs that were made again and came to the same, event by event.
    wrong
        What is not as the pack says, in sentences; empty for a pack that holds.
    notes
        What could not be checked, in sentences.
    """

    study: str
    made_by: str
    files: int = 0
    runs: int = 0
    again: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


def check_pack(pack: Path, into: Path, sample: int, execute: Executor) -> CheckedPack:
    """Unpack `pack` into the empty folder `into` and check it: the hash of each file, what the results come to, and
    `sample` runs, made again by `execute`, that must do the same event by event.

    Runs on the wall clock never do the same twice, so that none of them is made again.

    Raises
    ------
    BadValue
        It is no pack, or one that this version cannot read.
    """
    manifest = _unpacked(pack, into)
    checked = CheckedPack(str(manifest["study"]), str(manifest["twinnet"]))
    for name, wanted in manifest["files"].items():
        if _hash(into / name) == wanted:
            checked.files += 1
        else:
            checked.wrong.append(f"{name} is not the file that was packed: its hash differs")
    if checked.wrong:
        return checked
    analysis = analyse(ResultStore(into))
    checked.runs = len(analysis.stored)
    _compare_outcome(manifest["came_to"], _came_to(analysis), checked)
    if checked.made_by != _version():
        checked.notes.append(f"made by twinnet {checked.made_by}; this is {_version()}, whose traces may differ")
    if analysis.specification.clock != "virtual":
        checked.notes.append(f"runs on the {analysis.specification.clock} clock differ each time; none was made again")
        return checked
    for run in _spread([one for one in analysis.planned if one.id in analysis.stored], sample):
        _make_again(run, analysis.stored[run.id], execute, checked)
    return checked


def _unpacked(pack: Path, into: Path) -> dict[str, Any]:
    if not pack.is_file():
        raise BadValue(f"there is no file {pack}", "name a pack that `twinnet pack RESULTS` wrote")
    try:
        with zipfile.ZipFile(pack) as archive:
            entries = archive.infolist()
            whole = sum(one.file_size for one in entries)
            if len(entries) > _MOST_FILES or whole > _MOST_BYTES:
                raise BadValue(
                    f"{pack} holds {len(entries)} files of {whole} bytes", "that is more than a pack may hold"
                )
            first = archive.getinfo(MANIFEST)
            if first.file_size > _MOST_MANIFEST_BYTES:
                raise BadValue(f"the manifest of {pack} has {first.file_size} bytes", "that is more than one may have")
            manifest = cast("dict[str, Any]", json.loads(archive.read(MANIFEST)))
            if manifest["format"] != FORMAT:
                raise BadValue(f"{pack} is of format {manifest['format']}", f"this version reads format {FORMAT}")
            names = {one.filename for one in entries} - {MANIFEST}
            if names != set(manifest["files"]):
                odd = sorted(names ^ set(manifest["files"]))[0]
                raise BadValue(f"{pack} and its manifest differ about {odd!r}", "ask for the pack again")
            for name in sorted(names):
                _extract(archive, name, into)
            return manifest
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, NotImplementedError) as error:
        raise BadValue(f"{pack} is no pack of results: {error}", "`twinnet pack RESULTS` writes one") from None


def _extract(archive: zipfile.ZipFile, name: str, into: Path) -> None:
    parts = PurePosixPath(name).parts
    if not 1 <= len(parts) <= 3 or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError(f"it holds {name!r:.200}, which no results have")
    target = into.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as source, target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            out.write(chunk)


def _compare_outcome(packed: dict[str, Any], found: dict[str, Any], checked: CheckedPack) -> None:
    for key in ("answer", "in_words", "runs", "fidelity"):
        if packed.get(key) != found.get(key):
            checked.wrong.append(f"{key}: the pack says {packed.get(key)!r}, its tables come to {found.get(key)!r}")
    now = {one["id"]: one for one in found["statements"]}
    for one in packed["statements"]:
        here = now.get(one["id"], {"verdict": "missing", "numbers": []})
        if (one["verdict"], one["numbers"]) != (here["verdict"], here["numbers"]):
            checked.wrong.append(
                f"statement {one['id']}: the pack says {one['verdict']} ({'; '.join(one['numbers'])}), its tables come "
                f"to {here['verdict']} ({'; '.join(here['numbers'])})"
            )
    if packed["means"] != found["means"]:
        checked.wrong.append("the means that the pack states are not those of its tables")


def _make_again(run: PlannedRun, stored: StoredRun, execute: Executor, checked: CheckedPack) -> None:
    try:
        made = execute(run, Progress(threading.Event()))
    except TwinnetError as error:
        checked.wrong.append(f"{run.id} could not be made again: {error}")
        return
    trace = made.fidelity.record.get("trace_hash")
    if trace != stored.record.get("trace_hash"):
        checked.wrong.append(f"{run.id} made again has the trace {trace}, and {stored.record.get('trace_hash')} packed")
        return
    frames = {"flows": made.flows, "intervals": made.intervals, "port_samples": made.port_samples}
    frames |= {"packets": made.packets, "tcp": made.tcp}
    for name, frame in frames.items():
        if name in TABLES and not frame.equals(stored.table(name)):
            checked.wrong.append(f"{run.id} made again has another table {name}")
            return
    checked.again.append(run.id)


def _spread(runs: Sequence[PlannedRun], sample: int) -> list[PlannedRun]:
    """`sample` of the runs, evenly from first to last."""
    count = min(sample, len(runs))
    return [runs[place * len(runs) // count] for place in range(count)]


def _hash(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _version() -> str:
    from twinnet import __version__

    return __version__
