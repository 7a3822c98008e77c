"""What is said and written of a script's networks when they end: the verdict on the fabric, the network as a file, and
the page about the run."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from twinnet.lab.circling import told_of_circles
from twinnet.mininet.fabric import FABRIC
from twinnet.mininet.refused_commands import REFUSED_COMMANDS
from twinnet.mininet.wishes import EXPORT_VARIABLE, REPORT_VARIABLE, SCRIPT_VARIABLE

if TYPE_CHECKING:
    from twinnet.mininet.exported_network import ExportedNetwork
    from twinnet.mininet.net import Mininet
    from twinnet.results.fidelity import FidelityRecord

__all__ = ["OUTCOME", "Outcome"]


class Outcome:
    """The networks of this process that have not ended, and what is written of those that have; the module's `OUTCOME`
    is the only one."""

    def __init__(self) -> None:
        self._export: Path | None = None
        self._report: Path | None = None
        self._script = "a script"
        self._running: list[Mininet] = []
        self._described: list[ExportedNetwork] = []
        self._owner = os.getpid()
        self._registered = False

    def take_wishes(self, variables: MutableMapping[str, str]) -> None:
        """Take what is to be written out of the variables, so that no other process of the script writes it too."""
        export, report = variables.pop(EXPORT_VARIABLE, None), variables.pop(REPORT_VARIABLE, None)
        self._export, self._report = Path(export) if export else None, Path(report) if report else None
        self._script = variables.pop(SCRIPT_VARIABLE, self._script)
        if report:
            # At the end of a program it is too late to load what has threads.
            importlib.import_module("twinnet.mininet.run_page")
        if export or report:
            self._register()

    def _register(self) -> None:
        if not self._registered:
            self._registered = True
            atexit.register(self._tell)

    def begins(self, net: Mininet) -> None:
        """A network was made."""
        self._register()
        self._running.append(net)

    def ends(self, net: Mininet) -> None:
        """A network is about to be stopped: what is written of it is how it stands now."""
        if net not in self._running or os.getpid() != self._owner:
            return
        self._running.remove(net)
        if not (self._export or self._report) or not net.nameToNode:
            return
        from twinnet.mininet.exported_network import ExportedNetwork

        try:
            described = ExportedNetwork(net)
        except (OSError, ValueError, LookupError) as fault:
            # A node may have ended: the script goes on as it would without us.
            _say(f"the network cannot be described: {type(fault).__name__}: {fault}")
            return
        self._described.append(described)
        if self._export is not None:
            self._write(_numbered(self._export, len(self._described)), described)

    def _write(self, path: Path, described: ExportedNetwork) -> None:
        head = f"The network of {self._script}, a script of Mininet, as it was when it ended."
        try:
            path.write_text(described.text(head), encoding="utf-8")
        except OSError as refused:
            _say(f"{path} cannot be written: {refused.strerror}")
            return
        _say(f"the network is in {path}; twinnet lab {path} starts it")
        for note in described.notes:
            _say(f"not as in the script: {note}")

    def _tell(self) -> None:
        """Tell what is left to tell when the script ends."""
        if os.getpid() != self._owner:
            return
        for net in list(self._running):
            self.ends(net)
        FABRIC.end()
        record = max(FABRIC.records, key=_badness, default=None)
        if record is not None:
            _say(f"fidelity: {record}")
        circled = sum(counts["dropped_loop"] for counts in FABRIC.line_counts.values())
        if circled:
            _say(told_of_circles(circled))
        if FABRIC.shown["left out"]:
            _say(
                f"{FABRIC.shown['left out']:,} of {FABRIC.shown.total():,} frames between switches were too many for"
                " captures and counters of their interfaces; tc -s qdisc show has all"
            )
        if REFUSED_COMMANDS:
            _say(REFUSED_COMMANDS.told())
        if self._export is not None and not self._described:
            _say(f"{self._export} is not written: the script built no network")
        if self._report is not None:
            from twinnet.mininet.run_page import run_page

            page = run_page(self._script, self._described, record, FABRIC.line_counts)
            try:
                self._report.write_text(page, encoding="utf-8")
            except OSError as refused:
                _say(f"{self._report} cannot be written: {refused.strerror}")
                return
            _say(f"the page is in {self._report}")


def _badness(record: FidelityRecord) -> tuple[int, int]:
    """The order of records: by the verdict, and of those with the same the one with most frames is the last."""
    return ("valid", "doubtful", "invalid").index(record.verdict().state), record.handed_over


def _numbered(path: Path, number: int) -> Path:
    """The first network goes to `path`, further ones to files beside it."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _say(text: str) -> None:
    print(f"twinnet: {text}", file=sys.stderr, flush=True)


OUTCOME = Outcome()
"""The outcome of this process."""
