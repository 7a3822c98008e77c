"""The store of results: `results/<study>/<run>/` with `run.json` and Parquet tables; a run lands whole or not at
all."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl

from twinnet.errors import BadValue, TwinnetError
from twinnet.given_files import given_json, open_given, read_given_text
from twinnet.results.tables import TABLES, table
from twinnet.study.kept_captures import capture_paths, captures_in
from twinnet.study.partial_files import partial_name, remove_partial, sync_folder, write_synced
from twinnet.study.plan import PlannedRun
from twinnet.study.record_shape import check_shape, without_nan
from twinnet.study.resolution import Study, read_study, reader_in
from twinnet.yaml_source import SIZE_LIMIT_BYTES, parse_yaml

__all__ = ["FORMAT", "Fidelity", "Measured", "ResultStore", "StoreError", "StoredRun", "as_parquet", "stored_table"]

FORMAT = 1
"""The version of the layout and of the tables; it grows when a column changes its meaning."""


_OF_THE_TRACE = ("trace_hash", "events")
_FIRST_TABLES = ("flows", "intervals", "port_samples")
"""Tables that every finished run has."""
_COPIED_AT_ONCE_BYTES = 1 << 20
_MOST_RECORD_BYTES = 512 << 20
_MOST_CELLS = 1 << 30
"""Of a table: 8 GB of numbers."""
_ANEW = "remove the run's folder and run the study again"


class StoreError(TwinnetError):
    """Results could not be written or read."""


@dataclass(frozen=True)
class Fidelity:
    """The accuracy with which a run kept its schedule.

    Attributes
    ----------
    verdict
        `valid`, `doubtful` or `invalid`.
    reasons
        Which thresholds were passed and by how much, as sentences.
    record
        The lab's fidelity record.
    """

    verdict: str
    reasons: tuple[str, ...]
    record: Mapping[str, Any]


def _read_record(path: Path) -> dict[str, Any]:
    """Return the record at `path`; raises `OSError` or `ValueError`."""
    record: object = given_json(read_given_text(path, _MOST_RECORD_BYTES))
    if not isinstance(record, dict):
        raise ValueError("run.json is no JSON object")
    return cast("dict[str, Any]", record)


@dataclass(frozen=True)
class Measured:
    """The measurements of a run: its tables, its fidelity, and notes such as the versions of programs."""

    flows: pl.DataFrame
    intervals: pl.DataFrame
    port_samples: pl.DataFrame
    fidelity: Fidelity
    notes: Mapping[str, Any]
    fidelity_samples: pl.DataFrame = field(default_factory=lambda: table("fidelity", []))
    packets: pl.DataFrame = field(default_factory=lambda: table("packets", []))
    tcp: pl.DataFrame = field(default_factory=lambda: table("tcp", []))
    parquet: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Tables by name as Parquet, where another process has written them so; the others are written here."""
    captures: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read back."""

    id: str
    folder: Path
    record: Mapping[str, Any]

    def on_disk(self) -> StoredRun:
        """The same run with a record that is read from its file when it is looked at, and takes no memory until
        then."""
        return StoredRun(self.id, self.folder, _RecordOnDisk(self.folder / "run.json"))

    @property
    def levels(self) -> dict[str, str]:
        """The level of each factor."""
        return dict(self.record["levels"])

    @property
    def repetition(self) -> int:
        """Counted from 1."""
        return int(self.record["repetition"])

    @property
    def verdict(self) -> str:
        """The fidelity verdict: valid, doubtful or invalid."""
        return str(self.record["fidelity"]["verdict"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The forecast made before the run: the frames a second that it needs, what the machine carries, and whether
        it exceeds the machine. Empty for runs without a forecast."""
        forecast: Mapping[str, Any] | None = self.record.get("forecast")
        return forecast or {}

    def table(self, name: str) -> pl.DataFrame:
        """One of the run's tables: `flows`, `intervals`, `packets`, `port_samples`, `tcp` or `fidelity`."""
        path = self.folder / f"{name}.parquet"
        if name in ("fidelity", "packets", "tcp") and not path.exists():
            # Runs of versions that did not have it.
            return table(name, [])
        return stored_table(path, name)


def stored_table(path: Path, name: str) -> pl.DataFrame:
    """Return the table `name` that stands at `path`; those of older versions may lack columns.

    Raises
    ------
    StoreError
        It cannot be read, has columns that the table has not, or is too large.
    """
    try:
        with open_given(path) as file:
            return _read_table(file, name)
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise StoreError(f"{path} cannot be read: {error}", _ANEW) from None


def _read_table(file: BinaryIO, name: str) -> pl.DataFrame:
    schema = pl.read_parquet_schema(file)
    for column, kind in schema.items():
        known = TABLES[name].get(column)
        if known is None or kind != known:
            raise ValueError(f"its column {column!r:.80} is of the type {kind!s:.80}, and not {known}")
    # One row more than may be, so that a small file that claims billions of rows takes no memory.
    file.seek(0)
    most_rows = _MOST_CELLS // max(len(schema), 1)
    frame = pl.read_parquet(file, n_rows=most_rows + 1)
    if frame.height > most_rows:
        raise ValueError(f"it has more than {most_rows} rows")
    return frame


class _RecordOnDisk(Mapping[str, Any]):
    """A run's record, read from its file at each look: of ten thousand runs that were just made, most are never
    looked at again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _read(self) -> dict[str, Any]:
        try:
            return _read_record(self.path)
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path} cannot be read: {error}", "run the study again") from None

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class ResultStore:
    """The results of one study.

    Parameters
    ----------
    folder
        Where the runs' folders stand, such as `results/tcp-udp-queues`. Made when the first thing is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_study(self, study: Study, twin: bool = False) -> None:
        """Write down the study that the runs here belong to: its file as it was, the changes asked for, and whether it
        was made on both clocks."""
        record = {"format": FORMAT, "file": study.document.file, "changes": dict(study.changes), "twin": twin}
        with self._guarded():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._replace_file("study.yaml", study.text.encode())
            for name, content in study.beside.items():
                self._replace_file(name, content.encode())
            self._replace_file("study.json", _json_bytes(record))

    def read_study(self) -> Study:
        """The study that was written last."""
        try:
            text = read_given_text(self.folder / "study.yaml", SIZE_LIMIT_BYTES)
            record = given_json(read_given_text(self.folder / "study.json", SIZE_LIMIT_BYTES))
            changes = {str(key): str(value) for key, value in record["changes"].items()}
            file = str(record["file"])
        except FileNotFoundError as error:
            within = sorted(path.parent for path in self.folder.glob("*/study.json"))
            meant = within[0] if within else "results/tcp-udp-queues"
            raise BadValue(
                f"{self.folder} does not hold the results of a study: it has no {Path(error.filename).name}",
                f"give the folder that `twinnet run` wrote, such as {meant}",
            ) from None
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise BadValue(
                f"{self.folder} does not hold the results of a study: {error}",
                "give the folder that `twinnet run` wrote, such as results/tcp-udp-queues",
            ) from None
        return read_study(parse_yaml(text, file), changes, text=text, read_beside=reader_in(self.folder))

    @property
    def holds_twin(self) -> bool:
        """True if the last request was for a twin."""
        try:
            record = given_json(read_given_text(self.folder / "study.json", SIZE_LIMIT_BYTES))
        except (OSError, ValueError):
            return False
        return isinstance(record, dict) and bool(cast(dict[str, Any], record).get("twin"))

    def write_twin(self, frame: pl.DataFrame) -> Path:
        """Write the table `twin` and return its path."""
        content = as_parquet(frame)
        with self._guarded():
            self._replace_file("twin.parquet", content)
        return self.folder / "twin.parquet"

    def find(self, run: PlannedRun) -> StoredRun | None:
        """The finished run that matches `run`, if there is one.

        Raises
        ------
        StoreError
            Its record was altered: it lacks what belongs there.
        """
        stored = self._read(self.folder / run.id)
        if stored is None or stored.record.get("status") != "finished" or stored.record.get("digest") != run.digest:
            return None
        return _of_good_shape(stored)

    def read_strictly(self, run: PlannedRun) -> StoredRun | None:
        """Return the run stored in the place of `run`, finished or failed; `None` if there is none.

        Raises
        ------
        StoreError
            Something stands there that is not this run, is of another format, or cannot be read whole.
        """
        path = self.folder / run.id
        if not path.exists():
            return None
        remedy = "remove this folder and make the run again, or copy it once more from where it was made"
        try:
            record = _read_record(path / "run.json")
            stored = StoredRun(path.name, path, record)
            _check_record(stored, run)
            if stored.record["status"] == "finished":
                for name in TABLES:
                    # Tables that came later are absent from older runs.
                    if name in _FIRST_TABLES or (path / f"{name}.parquet").exists():
                        with open_given(path / f"{name}.parquet") as file:
                            pl.read_parquet_schema(file)
        except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise StoreError(f"the run in {path} cannot be read: {error}", remedy) from None
        return stored

    def copy_run(self, run: StoredRun) -> StoredRun:
        """Copy a run that stands in another store, whole or not at all; one of the same name is replaced.

        Raises
        ------
        StoreError
            The run cannot be read, or the disk is full or refuses; what was copied before is kept.
        """

        def fill(folder: Path) -> None:
            for name in TABLES:
                source = run.folder / f"{name}.parquet"
                if source.exists():
                    _copy_synced(source, folder / source.name)
            captures = {one.name: one.read_bytes() for one in captures_in(run.folder)}
            for path, content in capture_paths(folder, captures).items():
                write_synced(path, content)

        record = {key: value for key, value in run.record.items() if key not in ("format", "run")}
        return self._write_run(run.id, record, fill)

    def called(self, name: str) -> StoredRun | None:
        """Return the run in the folder `name`, finished or failed, of whichever specification; `None` if there is none.

        Raises
        ------
        StoreError
            Its record was altered: it lacks what belongs there.
        """
        stored = self._read(self.folder / name)
        return None if stored is None else _of_good_shape(stored)

    def all_runs(self) -> Iterator[StoredRun]:
        """Every run here, finished or failed, of whichever specification.

        Raises
        ------
        StoreError
            A record was altered: it lacks what belongs there.
        """
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            if path.is_dir() and not path.name.startswith("."):
                stored = self._read(path)
                if stored is not None:
                    yield _of_good_shape(stored)

    def write_finished(self, run: PlannedRun, record: Mapping[str, Any], measured: Measured) -> StoredRun:
        """Write a finished run whole.

        Raises
        ------
        StoreError
            The disk is full or refuses; what was finished before is kept.
        """
        tables = {
            "flows": measured.flows,
            "intervals": measured.intervals,
            "port_samples": measured.port_samples,
            "fidelity": measured.fidelity_samples,
            "packets": measured.packets,
            "tcp": measured.tcp,
        }
        for name, frame in tables.items():
            if frame.columns != list(TABLES[name]):
                raise ValueError(f"the table {name} has the columns {frame.columns}, not {list(TABLES[name])}")
        full = {
            **record,
            "status": "finished",
            **{key: measured.fidelity.record[key] for key in _OF_THE_TRACE if key in measured.fidelity.record},
            "fidelity": {
                "verdict": measured.fidelity.verdict,
                "reasons": list(measured.fidelity.reasons),
                "record": dict(measured.fidelity.record),
            },
            "notes": dict(measured.notes),
        }

        def fill(folder: Path) -> None:
            for name, frame in tables.items():
                # By way of memory: a full disk is then the operating system's word, not an error of the format's.
                content = measured.parquet.get(name) or as_parquet(frame)
                write_synced(folder / f"{name}.parquet", content)
            for path, content in capture_paths(folder, measured.captures).items():
                write_synced(path, content)

        return self._write_run(run.id, full, fill)

    def write_failed(self, run: PlannedRun, record: Mapping[str, Any], error: Mapping[str, str]) -> StoredRun:
        """Write down that a run failed and why; the next start of the study makes it again."""
        return self._write_run(run.id, {**record, "status": "failed", "error": dict(error)}, lambda _: None)

    def _write_run(self, run_id: str, record: Mapping[str, Any], fill: Callable[[Path], None]) -> StoredRun:
        partial = self.folder / partial_name(run_id)
        target = self.folder / run_id
        try:
            with self._guarded():
                partial.mkdir(parents=True)
                fill(partial)
                write_synced(partial / "run.json", _json_bytes({"format": FORMAT, "run": run_id, **record}))
                sync_folder(partial)
                if target.exists():
                    # Only a failed run, or one that cannot be read, is ever made again.
                    shutil.rmtree(target)
                partial.rename(target)
                sync_folder(self.folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return StoredRun(run_id, target, {"format": FORMAT, "run": run_id, **record})

    def remove_leftovers(self) -> list[Path]:
        """Remove the partial folders of writers that are dead; those of living writers and other machines stay."""
        return remove_partial(self.folder)

    def _read(self, path: Path) -> StoredRun | None:
        try:
            record = _read_record(path / "run.json")
        except (OSError, ValueError):
            return None
        return StoredRun(path.name, path, record)

    def _replace_file(self, name: str, content: bytes) -> None:
        partial = self.folder / partial_name(name)
        try:
            write_synced(partial, content)
            partial.replace(self.folder / name)
        finally:
            partial.unlink(missing_ok=True)

    def _guarded(self) -> _StoreGuard:
        return _StoreGuard(self.folder)


class _StoreGuard:
    """Turns the operating system's refusal into one clear message."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"no space is left for the results in {self.folder}"
            remedy = "finished runs are kept; make space and give the same command again"
        else:
            message = f"results cannot be written to {self.folder}: {error.strerror or error}"
            remedy = "finished runs are kept; choose another folder with --out or mend this one"
        raise StoreError(message, remedy) from error


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return a table as it is stored and sent."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    return content.getvalue()


def _of_good_shape(stored: StoredRun) -> StoredRun:
    try:
        check_shape(stored.record)
    except ValueError as error:
        raise StoreError(f"the run in {stored.folder} cannot be read: {error}", _ANEW) from None
    return stored


def _check_record(stored: StoredRun, run: PlannedRun) -> None:
    """Raise `ValueError` when the record is not that of `run`, or lacks what every reader needs."""
    record = stored.record
    if record.get("format") != FORMAT:
        raise ValueError(f"its format is {record.get('format')!r}, and this version reads format {FORMAT}")
    if record.get("digest") != run.digest:
        raise ValueError("its digest is not the one that its name stands for")
    check_shape(record)


def _copy_synced(source: Path, target: Path) -> None:
    with target.open("wb") as file:
        for block in _blocks_of(source):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def _blocks_of(source: Path) -> Iterator[bytes]:
    """The content of a file; what it refuses is reported as its own fault, not as that of the disk."""
    try:
        with open_given(source) as file:
            while block := file.read(_COPIED_AT_ONCE_BYTES):
                yield block
    except OSError as error:
        raise StoreError(f"{source} cannot be read: {error.strerror or error}", "mend it and gather again") from None


def _json_bytes(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(without_nan(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # A name of a file may be no text: JSON has a form for that, too.
    return text.encode(errors="backslashreplace")
