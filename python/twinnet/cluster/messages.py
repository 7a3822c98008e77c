"""Messages between client and worker: a run that is asked for, and a run that was made; data, never programs.

A message is a JSON object of known length, followed by Parquet tables whose lengths it gives. Both sides check lengths
before they read, and columns before they use them. The SHA-256 of the object and the tables stands in front: what was
damaged on its way never gets to the reader of Parquet, which ends the whole process for some bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from twinnet.cluster.engine import ClusterError
from twinnet.results.tables import TABLES
from twinnet.study.kept_captures import CAPTURE_NAME
from twinnet.study.plan import PlannedRun
from twinnet.study.record_shape import without_nan
from twinnet.study.resolution import Study
from twinnet.study.runner import Made
from twinnet.study.store import Fidelity, Measured, as_parquet

__all__ = [
    "LARGEST_MESSAGE_BYTES",
    "Asked",
    "apart",
    "asked",
    "made_from",
    "packed_made",
    "packed_together",
    "packed_trouble",
    "study_message",
]

LARGEST_MESSAGE_BYTES = 512 << 20
LARGEST_HEADER_BYTES = 64 << 20
MOST_ROWS = 50_000_000
_MAGIC = b"twinrun2"
_MAGIC_OF_MANY = b"twinmany"
_HEAD_OF_MANY = struct.Struct("<8sI")
_LENGTH = struct.Struct("<Q")
_HEAD = struct.Struct("<8sI32s")
_TABLES = {
    "flows": "flows",
    "intervals": "intervals",
    "port_samples": "port_samples",
    "fidelity": "fidelity_samples",
    "packets": "packets",
    "tcp": "tcp",
}
"""Tables of a run by their names, and where `Measured` has them."""
_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
"""The exceptions that reading a damaged message raises; some damaged Parquet makes its reader panic."""


@dataclass(frozen=True)
class Asked:
    """A run that a client asks for.

    Attributes
    ----------
    run_id, digest
        What the client calls it; the worker plans it anew and must come to the same.
    levels, repetition
        Which run of the study it is.
    study
        The digest of the message of the study.
    interface, fabric_threads
        As `LabExecutor` takes them.
    """

    run_id: str
    digest: str
    levels: Mapping[str, str]
    repetition: int
    study: str
    interface: str
    fabric_threads: int | Literal["auto"] | None


def study_message(study: Study) -> bytes:
    """A study with all that it needs: its file, the changes, the files beside it."""
    content = {
        "file": study.document.file,
        "text": study.text,
        "changes": dict(study.changes),
        "beside": dict(study.beside.items()),
    }
    return json.dumps(content, ensure_ascii=False).encode()


def asked(message: bytes) -> Asked:
    """Read what `json.dumps` made of the fields of an `Asked`; raises `ClusterError` for anything else."""
    try:
        return Asked(**json.loads(message))
    except (ValueError, TypeError, RecursionError) as error:
        raise ClusterError(f"the request for a run cannot be read: {error}") from None


def packed_made(run: PlannedRun, made: Made) -> bytes:
    """A run that was made, as bytes."""
    header: dict[str, Any] = {"run": run.id, "digest": run.digest, "record": made.record}
    blobs: list[bytes] = []
    if isinstance(made.result, Measured):
        for name, attribute in _TABLES.items():
            blobs.append(as_parquet(getattr(made.result, attribute)))
            header.setdefault("tables", {})[name] = len(blobs[-1])
        blobs += made.result.captures.values()
        header["captures"] = {name: len(content) for name, content in made.result.captures.items()}
        fidelity = made.result.fidelity
        judged = {"verdict": fidelity.verdict, "reasons": list(fidelity.reasons), "record": dict(fidelity.record)}
        header |= {"status": "finished", "fidelity": judged, "notes": dict(made.result.notes)}
    else:
        header |= {"status": "failed", "error": dict(made.result)}
    packed = _packed(header, blobs)
    if len(packed) <= LARGEST_MESSAGE_BYTES and len(packed) - sum(map(len, blobs)) <= LARGEST_HEADER_BYTES:
        return packed
    error = {
        "name": "TooLarge",
        "message": f"the run's result has {len(packed)} bytes; at most {LARGEST_MESSAGE_BYTES} travel over the network"
        " (measure fewer ports or longer intervals)",
    }
    return _packed({"run": run.id, "digest": run.digest, "record": made.record, "status": "failed", "error": error}, [])


def packed_trouble(kind: Literal["study wanted", "refused", "interrupted"], message: str = "") -> bytes:
    """Return the reason why a worker has not made a run, as bytes."""
    return _packed({"status": kind, "message": message}, [])


def packed_together(messages: Sequence[bytes]) -> bytes:
    """The messages of several runs as one."""
    lengths = b"".join(_LENGTH.pack(len(one)) for one in messages)
    return b"".join([_HEAD_OF_MANY.pack(_MAGIC_OF_MANY, len(messages)), lengths, *messages])


def apart(message: object, count: int) -> list[bytes]:
    """The messages that a worker has packed together; raises `ClusterError` when they are not `count`, or cut off."""
    try:
        if not isinstance(message, bytes):
            raise ValueError("it is no message of a worker")
        magic, stated = _HEAD_OF_MANY.unpack_from(message)
        if (magic, stated) != (_MAGIC_OF_MANY, count):
            raise ValueError(f"it does not begin as a message of {count} runs does")
        start = _HEAD_OF_MANY.size + count * _LENGTH.size
        lengths = [_LENGTH.unpack_from(message, _HEAD_OF_MANY.size + place * _LENGTH.size)[0] for place in range(count)]
        if start + sum(lengths) != len(message):
            raise ValueError("it is cut off, or longer than it says")
    except (ValueError, struct.error) as error:
        raise ClusterError(f"the results of {count} runs cannot be read: {error}") from None
    found: list[bytes] = []
    for length in lengths:
        found.append(message[start : start + length])
        start += length
    return found


def _packed(header: Mapping[str, Any], blobs: list[bytes]) -> bytes:
    text = json.dumps(without_nan(header), ensure_ascii=False, allow_nan=False).encode()
    return b"".join([_HEAD.pack(_MAGIC, len(text), _digest_of(text, *blobs)), text, *blobs])


def _digest_of(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def made_from(message: object, run: PlannedRun) -> Made | tuple[str, str]:
    """The run that a worker has made, or the kind of trouble it had with a message.

    Raises
    ------
    ClusterError
        It is not the message of a worker, is too large, or is of another run.
    """
    try:
        return _read(message, run)
    except _UNREADABLE as error:
        raise ClusterError(f"the result of the run {run.id} cannot be read: {error}") from None


def _read(message: object, run: PlannedRun) -> Made | tuple[str, str]:
    if not isinstance(message, bytes) or not _HEAD.size <= len(message) <= LARGEST_MESSAGE_BYTES:
        raise ValueError("it is no message of a worker, or too large")
    magic, length, digest = _HEAD.unpack_from(message)
    if magic != _MAGIC or length > min(LARGEST_HEADER_BYTES, len(message) - _HEAD.size):
        raise ValueError("it does not begin as a message of a worker does")
    if _digest_of(memoryview(message)[_HEAD.size :]) != digest:
        raise ValueError("it was damaged on its way, or is cut off")
    header = json.loads(message[_HEAD.size : _HEAD.size + length])
    status = header["status"]
    if status in ("study wanted", "refused", "interrupted"):
        return status, str(header["message"])
    if (header["run"], header["digest"]) != (run.id, run.digest):
        raise ValueError(f"it is the run {header['run']!r}")
    record = _record(header["record"])
    if status == "failed":
        return Made(record, {"name": str(header["error"]["name"]), "message": str(header["error"]["message"])})
    if status != "finished":
        raise ValueError(f"its status is {status!r}")
    frames: dict[str, pl.DataFrame] = {}
    parquet: dict[str, bytes] = {}
    start = _HEAD.size + length
    for name in _TABLES:
        size = int(header["tables"][name])
        if not 0 <= size <= len(message) - start:
            raise ValueError(f"its table {name} is cut off")
        parquet[name] = message[start : start + size]
        frames[_TABLES[name]] = _frame(name, parquet[name])
        start += size
    captures: dict[str, bytes] = {}
    for name, size in header["captures"].items():
        if not CAPTURE_NAME.fullmatch(name) or not 0 <= int(size) <= len(message) - start:
            raise ValueError(f"its capture {name!r} is cut off, or no name")
        captures[name] = message[start : start + int(size)]
        start += int(size)
    judged = header["fidelity"]
    if judged["verdict"] not in ("valid", "doubtful", "invalid"):
        raise ValueError(f"its verdict is {judged['verdict']!r}")
    fidelity = Fidelity(judged["verdict"], tuple(str(one) for one in judged["reasons"]), dict(judged["record"]))
    notes = dict(header["notes"])
    return Made(record, Measured(fidelity=fidelity, notes=notes, parquet=parquet, captures=captures, **frames))


def _record(given: Mapping[str, Any]) -> dict[str, Any]:
    machine = given["machine"]
    if not isinstance(machine["name"], str) or not isinstance(machine["slot"], int):
        raise ValueError("it does not name its machine")
    elapsed_s = float(given["elapsed_s"])
    return {
        "versions": dict(given["versions"]),
        "started": str(given["started"]),
        "elapsed_s": elapsed_s if math.isfinite(elapsed_s) else 0.0,
        "machine": dict(machine),
    }


def _frame(name: str, content: bytes) -> pl.DataFrame:
    schema = pl.read_parquet_schema(io.BytesIO(content))
    if dict(schema) != {column: kind() if isinstance(kind, type) else kind for column, kind in TABLES[name].items()}:
        raise ValueError(f"its table {name} has the columns {schema}, not {list(TABLES[name])}")
    # One row more than may come, so that a small message that claims billions of rows takes no memory.
    frame = pl.read_parquet(io.BytesIO(content), n_rows=MOST_ROWS + 1)
    if frame.height > MOST_ROWS:
        raise ValueError(f"its table {name} has more than {MOST_ROWS} rows")
    return frame
