"""The captures of runs: made in a lab, kept beside the run's tables, found again in the results."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.network.network import Network
from twinnet.study.capture_settings import CaptureSettings
from twinnet.study.plan import PlannedRun
from twinnet.units import Bytes, format_size

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.lab.parts import Capture

__all__ = ["CAPTURE_NAME", "RunCaptures", "capture_paths", "captures_in", "captures_in_words"]

_FOLDER = "captures"
CAPTURE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.pcapng")
"""The name of a capture's file: that of its port."""


@dataclass(frozen=True)
class _Running:
    port: str
    path: Path
    capture: Capture


class RunCaptures:
    """The captures of one run, in a folder of their own until its results are written; used with ``with``.

    Parameters
    ----------
    run
        The run; one whose study asks for none, or not for this repetition, has none.
    network
        Its network.
    """

    def __init__(self, run: PlannedRun, network: Network) -> None:
        asked = run.specification.capture
        self._asked = asked if asked is not None and run.repetition <= asked.repetitions else None
        self._ports = self._asked.ports(network) if self._asked is not None else []
        self._folder = tempfile.TemporaryDirectory(prefix="twinnet-captures-") if self._ports else None
        self._running: list[_Running] = []
        self.files: dict[str, bytes] = {}
        self.notes: list[dict[str, Any]] = []

    def __enter__(self) -> RunCaptures:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def begin(self, lab: Lab) -> None:
        """Capture from now on."""
        if self._asked is None or self._folder is None:
            return
        snap = None if self._asked.snap_bytes is None else Bytes(self._asked.snap_bytes)
        for port in self._ports:
            path = Path(self._folder.name) / f"{port}.pcapng"
            running = lab.capture(port, path, Bytes(self._asked.limit_bytes), snap, direction=self._asked.direction)
            self._running.append(_Running(port, path, running))

    def end(self) -> None:
        """End the captures: `files` has their contents by name then, and `notes` what the run's record says of
        them."""
        for one in self._running:
            one.capture.stop()
            content = one.path.read_bytes()
            self.files[one.path.name] = content
            kept = {"port": one.port, "file": f"{_FOLDER}/{one.path.name}", "bytes": len(content)}
            counts = {"frames": one.capture.frames, "not_kept": one.capture.dropped}
            failed = {} if one.capture.failure is None else {"failure": one.capture.failure}
            self.notes.append(kept | counts | failed)


def captures_in(folder: Path) -> list[Path]:
    """The captures that `folder` keeps, of one run or of all runs of a study, in the order of their names."""
    return sorted([*folder.glob(f"{_FOLDER}/*.pcapng"), *folder.glob(f"*/{_FOLDER}/*.pcapng")])


def captures_in_words(
    asked: CaptureSettings, plan: Sequence[PlannedRun], network: Network
) -> tuple[str, dict[str, Any]]:
    """The files that the runs of `plan` keep and their size at most: in words, and for programs."""
    ports = asked.ports(network)
    runs = sum(run.repetition <= asked.repetitions for run in plan)
    files, most = runs * len(ports), runs * len(ports) * asked.limit_bytes
    repeated = "repetition 1" if asked.repetitions == 1 else f"repetitions 1 to {asked.repetitions}"
    said = (
        f"Captures of {', '.join(ports)} in {repeated} of each combination: {files} file{'' if files == 1 else 's'}"
        f" of at most {format_size(asked.limit_bytes)}, {format_size(most)} together."
    )
    return said, {"ports": ports, "files": files, "most_bytes": most}


def capture_paths(folder: Path, files: Mapping[str, bytes]) -> dict[Path, bytes]:
    """Where the captures `files` of the run in `folder` stand; makes their folder."""
    if files:
        (folder / _FOLDER).mkdir()
    return {folder / _FOLDER / name: content for name, content in files.items()}
